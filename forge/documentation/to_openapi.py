"""An OpenAPI document made of what documentation bears out, compiled like any other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from forge.compile import Compilation, compile_document
from forge.document import Document, Problem, escape
from forge.errors import NoUsableOperation
from forge.prosedocs.checking import Answered, Checked, checked, told
from forge.prosedocs.claims import AnswerClaim, FieldClaim, OperationClaim
from forge.prosedocs.page import Page
from forge.recorded.curl import KEY, read_curl
from forge.recorded.described import described
from forge.recorded.request import PLACEHOLDER, Credential, Recording
from forge.recorded.shape import shape
from sandbox.apispec import SecurityScheme
from sandbox.pace import Pace, slower
from sandbox.policy import DEFAULT_PORTS, granted_hosts, origin_of

DIALECT = "prose"
_BODILESS = ("GET", "HEAD", "DELETE", "OPTIONS")
_JSON = "application/json"


@dataclass(frozen=True)
class Derived:
    """`root` is the OpenAPI 3.1 document; `source` where the documentation is, `digest` the sha256
    of its first page. `places` leads from the root's pointers back to (page, pointer). `author` is
    who read it, such as `openai m-1`, and `prompt` the sha256 of all that was asked; both are ""
    where nobody was.
    """

    source: str
    digest: str
    root: Mapping[str, Any] = field(repr=False)
    rate: tuple[int, float] | None = None
    problems: tuple[Problem, ...] = ()
    places: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    author: str = ""
    prompt: str = ""

    @property
    def name(self) -> str:
        return self.source

    def to_json(self) -> dict[str, Any]:
        told = {**vars(self), "rate": list(self.rate) if self.rate else None}
        problems = [[problem.file, problem.pointer, problem.reason] for problem in self.problems]
        return {
            **told,
            "problems": problems,
            "places": {k: list(v) for k, v in self.places.items()},
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Derived:
        rate = data["rate"]
        return Derived(
            **{
                **data,
                "rate": (int(rate[0]), float(rate[1])) if rate else None,
                "problems": tuple(Problem(*problem) for problem in data["problems"]),
                "places": {key: (at[0], at[1]) for key, at in data["places"].items()},
            }
        )


def derived(
    pages: Sequence[Page],
    answers: Sequence[Answered],
    author: str = "",
    prompts: Iterable[str] = (),
) -> Derived:
    """What the answers and the curl commands of the pages come to. Raises NoUsableOperation where
    no request is borne out.
    """
    check = checked(answers, pages)
    first = pages[0]
    root, places = _document(check, first)
    more, left_out = _from_commands(root, pages, check)
    problems = (*check.problems, *left_out)
    if not root["paths"]:
        reason = f"nothing in it is evidence of a request ({told(problems) or 'there is none'})"
        raise NoUsableOperation(first.location, reason, problems)
    asked = list(prompts)
    digest = hashlib.sha256("\n".join(asked).encode()).hexdigest() if asked else ""
    return Derived(
        first.location,
        first.digest,
        root,
        check.rate,
        problems,
        {**places, **more},
        author if asked else "",
        digest,
    )


def compiled(
    made: Derived, *, name: str | None, base_url: str | None, auth: tuple[SecurityScheme, ...] = ()
) -> Compilation:
    """The bundle of a derived document, held to the pace that the documentation states. Raises as
    `compile_document`.
    """
    compilation = compile_document(_opened(made), name=name, base_url=base_url, auth=auth)
    bundle = compilation.bundle
    author = {"model": made.author, "prompt_digest": made.prompt}
    provenance = replace(bundle.provenance, source_digest=made.digest, **author)
    spec = replace(bundle.spec, dialect=DIALECT) if bundle.spec else None
    paced = replace(bundle, provenance=provenance, spec=spec)
    if made.rate:
        host = _host(bundle.base_url)
        if host in granted_hosts(bundle):
            paced = replace(paced, paces=slower(paced.paces, Pace(host, *made.rate)))
    return Compilation(paced, tuple(_located(made, problem) for problem in compilation.problems))


def _opened(made: Derived) -> Document:
    url = made.source if origin_of(made.source) else None
    content = json.dumps(made.root, ensure_ascii=False).encode()
    return Document(made.source, content, made.root, made.problems, url=url)


def _located(made: Derived, problem: Problem) -> Problem:
    """A problem of the derived document at its place in the documentation."""
    for pointer, (location, place) in made.places.items():
        if problem.pointer.startswith(pointer):
            return replace(problem, file=location, pointer=place)
    return problem


def _host(url: str) -> str:
    """A URL's host as a bundle's permissions name it."""
    origin = origin_of(url)
    if origin is None:
        return ""
    default = DEFAULT_PORTS[origin.scheme] == origin.port
    return origin.host if default else f"{origin.host}:{origin.port}"


def _document(check: Checked, first: Page) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    schemes = {_scheme_name(made): _scheme(made) for made in check.credentials}
    paths: dict[str, dict[str, Any]] = {}
    places = {}
    for claim, location, place in check.operations:
        item = paths.setdefault(_same_route(paths, claim.path), {})
        item[claim.method.lower()] = _operation(claim)
        path = _same_route(paths, claim.path)
        places[f"/paths/{escape(path)}/{claim.method.lower()}"] = location, place
    origin = origin_of(check.base_url or first.location)
    root: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": first.title or (origin.host if origin else "API"), "version": ""},
        "paths": paths,
        "components": {"securitySchemes": schemes},
    }
    if check.base_url:
        root["servers"] = [{"url": check.base_url}]
    if schemes:
        root["security"] = [{name: []} for name in schemes]
    return root, places


def _same_route(paths: Mapping[str, Any], path: str) -> str:
    """The path as it is among those that are there, whatever its placeholders are called."""
    wanted = PLACEHOLDER.sub("{}", path)
    return next((known for known in paths if PLACEHOLDER.sub("{}", known) == wanted), path)


def _operation(claim: OperationClaim) -> dict[str, Any]:
    described_in_path = {field.name: field for field in claim.fields if field.location == "path"}
    parameters = [
        _parameter(described_in_path.get(name) or FieldClaim(name, "path", "string", True, "", ""))
        for name in dict.fromkeys(PLACEHOLDER.findall(claim.path))
    ]
    others = [field for field in claim.fields if field.location in ("query", "header")]
    made: dict[str, Any] = {
        "summary": claim.summary,
        "parameters": [*parameters, *map(_parameter, others)],
        "responses": _responses(claim.answers),
    }
    body = [field for field in claim.fields if field.location == "body"]
    if (body or claim.has_body) and claim.method not in _BODILESS:
        made["requestBody"] = _body(claim, body)
    return made


def _parameter(field: FieldClaim) -> dict[str, Any]:
    return {
        "name": field.name,
        "in": field.location,
        "required": field.required or field.location == "path",
        "description": field.description,
        "schema": _schema(field),
    }


def _schema(field: FieldClaim) -> dict[str, Any]:
    if field.type == "array":
        return {"type": "array", "items": {"type": "string"}}
    known = ("string", "integer", "number", "boolean", "object")
    return {"type": field.type if field.type in known else "string"}


def _body(claim: OperationClaim, fields: Sequence[FieldClaim]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {f.name: {**_schema(f), "description": f.description} for f in fields},
    }
    required = [field.name for field in fields if field.required]
    if required:
        schema["required"] = required
    media_type = claim.media_type if "/" in claim.media_type else _JSON
    return {"required": bool(required), "content": {media_type: {"schema": schema}}}


def _responses(answers: Sequence[AnswerClaim]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for status in sorted({answer.status for answer in answers}):
        mine = [answer for answer in answers if answer.status == status]
        text = next((answer.description for answer in mine if answer.description), "")
        made[str(status)] = {"description": text}
        examples = [json.loads(answer.example) for answer in mine if answer.example]
        if examples:
            made[str(status)]["content"] = {_JSON: {"schema": shape(examples)}}
    return made if any(status < "4" for status in made) else {"default": _ANY, **made}


_ANY: Mapping[str, Any] = {"description": "as the API answers"}


def _scheme_name(made: Credential) -> str:
    return made.parameter or made.kind


def _scheme(made: Credential) -> dict[str, Any]:
    if made.kind == "apiKey":
        return {"type": "apiKey", "in": made.location, "name": made.parameter}
    if made.kind == "oauth2" and made.token_url:
        flow = {"tokenUrl": made.token_url, "scopes": {}}
        return {"type": "oauth2", "flows": {"clientCredentials": flow}}
    scheme = "bearer" if made.kind == "oauth2" else made.kind
    return {"type": "http", "scheme": scheme}


def _from_commands(
    root: dict[str, Any], pages: Sequence[Page], check: Checked
) -> tuple[dict[str, tuple[str, str]], tuple[Problem, ...]]:
    """Add the operations of the pages' curl commands that are not there yet: evidence that needs no
    model. Where they came from, and what of them is left out.
    """
    places: dict[str, tuple[str, str]] = {}
    problems: list[Problem] = []
    for page in pages:
        recording = read_curl({KEY: page.text})
        made = described(_of_the_api(recording, root, page))
        left_out = (*recording.left_out, *made.left_out)
        problems += [Problem(page.location, where, why) for where, why in left_out[:20]]
        if not root.get("servers") and made.root.get("servers"):
            root["servers"] = made.root["servers"]
        base = _base_path(root)
        for path, item in made.root["paths"].items():
            if base and not path.startswith(f"{base}/"):
                reason = f"{path[:200]} is not below the base URL; it is left out"
                problems.append(Problem(page.location, "/curl", reason))
                continue
            inside = path[len(base) :]
            target = root["paths"].setdefault(_same_route(root["paths"], inside), {})
            for method, operation in item.items():
                if method not in target:
                    target[method] = _without_servers(operation, bool(root.get("security")))
                    pointer = made.places.get(f"/paths/{escape(path)}/{method}", "/curl")
                    known = _same_route(root["paths"], inside)
                    places[f"/paths/{escape(known)}/{method}"] = page.location, pointer
        schemes = root["components"]["securitySchemes"]
        if not root.get("security"):
            schemes.update(made.root["components"]["securitySchemes"])
    root["paths"] = {path: item for path, item in root["paths"].items() if item}
    return places, tuple(problems)


def _of_the_api(recording: Recording, root: Mapping[str, Any], page: Page) -> Recording:
    """The commands for the API's own host; without a base URL, for the host of the first."""
    known = root.get("servers")
    named = [request.origin for request in recording.requests if request.origin]
    own = origin_of(known[0]["url"]) if known else origin_of(page.location)
    wanted = own or (origin_of(named[0]) if named else None)
    kept = [r for r in recording.requests if not r.origin or origin_of(r.origin) == wanted]
    left = [
        (r.where, f"{r.origin} is another host than the API's; the command is left out")
        for r in recording.requests
        if r.origin and origin_of(r.origin) != wanted
    ]
    return replace(recording, requests=tuple(kept), left_out=(*recording.left_out, *left))


def _base_path(root: Mapping[str, Any]) -> str:
    servers = root.get("servers")
    url = str(servers[0]["url"]) if servers else ""
    origin = origin_of(url)
    return "/" + "/".join(url.split("/")[3:]).strip("/") if origin and url.count("/") > 2 else ""


def _without_servers(operation: Mapping[str, Any], drop_security: bool) -> dict[str, Any]:
    dropped = {"servers", *(["security"] if drop_security else [])}
    return {key: value for key, value in operation.items() if key not in dropped}
