"""Construction of an OpenAPI document from checked claims, and its compilation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from forge.compiler.compile import Compilation, compile_document
from forge.documentation.checking import CheckedClaims, LocatedClaims, check_claims, format_problems
from forge.documentation.claims import AnswerClaim, FieldClaim, OperationClaim
from forge.errors import NoUsableOperation
from forge.readers.document import Document, DocumentProblem, escape_token
from forge.readers.page import Page
from forge.readers.recorded.curl import KEY, read_curl
from forge.readers.recorded.request import PLACEHOLDER, RecordedCredential, RequestRecording
from forge.readers.recorded.to_openapi import infer_document, infer_schema
from sandbox.bundle.apispec import SecurityScheme
from sandbox.bundle.ratelimit import Pace, add_slower_pace
from sandbox.wire.policy import DEFAULT_PORTS, list_granted_hosts, parse_origin

DIALECT = "prose"
_BODILESS = ("GET", "HEAD", "DELETE", "OPTIONS")
_JSON = "application/json"


@dataclass(frozen=True)
class DerivedDocument:
    """An OpenAPI 3.1 document (`root`) made from documentation at `source`; `digest` is the sha256
    of its first page. `places` maps the root's pointers to (page, pointer). `author` is the model
    that read it, such as `openai m-1`, and `prompt` the sha256 of all prompts; both are "" where no
    model was asked.
    """

    source: str
    digest: str
    root: Mapping[str, Any] = field(repr=False)
    rate: tuple[int, float] | None = None
    problems: tuple[DocumentProblem, ...] = ()
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
    def from_json(data: Mapping[str, Any]) -> DerivedDocument:
        rate = data["rate"]
        return DerivedDocument(
            **{
                **data,
                "rate": (int(rate[0]), float(rate[1])) if rate else None,
                "problems": tuple(DocumentProblem(*problem) for problem in data["problems"]),
                "places": {key: (at[0], at[1]) for key, at in data["places"].items()},
            }
        )


def derive_document(
    pages: Sequence[Page],
    answers: Sequence[LocatedClaims],
    author: str = "",
    prompts: Iterable[str] = (),
) -> DerivedDocument:
    """Build the document from the answers and from the curl commands of the pages. Raises
    NoUsableOperation where no request has evidence.
    """
    check = check_claims(answers, pages)
    first = pages[0]
    root, places = _build_document(check, first)
    more, left_out = _add_curl_operations(root, pages, check)
    problems = (*check.problems, *left_out)
    if not root["paths"]:
        found = format_problems(problems) or "there is none"
        reason = f"nothing in it is evidence of a request ({found})"
        raise NoUsableOperation(first.location, reason, problems)
    asked = list(prompts)
    digest = hashlib.sha256("\n".join(asked).encode()).hexdigest() if asked else ""
    return DerivedDocument(
        first.location,
        first.digest,
        root,
        check.rate,
        problems,
        {**places, **more},
        author if asked else "",
        digest,
    )


def compile_derived(
    made: DerivedDocument,
    *,
    name: str | None,
    base_url: str | None,
    auth: tuple[SecurityScheme, ...] = (),
) -> Compilation:
    """Compile a derived document to a bundle that keeps to the documented rate limit. Raises as
    `compile_document`.
    """
    compilation = compile_document(_to_document(made), name=name, base_url=base_url, auth=auth)
    bundle = compilation.bundle
    author = {"model": made.author, "prompt_digest": made.prompt}
    provenance = replace(bundle.provenance, source_digest=made.digest, **author)
    spec = replace(bundle.spec, dialect=DIALECT) if bundle.spec else None
    paced = replace(bundle, provenance=provenance, spec=spec)
    if made.rate:
        host = _format_host(bundle.base_url)
        if host in list_granted_hosts(bundle):
            paced = replace(paced, paces=add_slower_pace(paced.paces, Pace(host, *made.rate)))
    return Compilation(
        paced, tuple(_locate_problem(made, problem) for problem in compilation.problems)
    )


def _to_document(made: DerivedDocument) -> Document:
    url = made.source if parse_origin(made.source) else None
    content = json.dumps(made.root, ensure_ascii=False).encode()
    return Document(
        made.source, content, made.root, made.problems, url=url, believed=not made.author
    )


def _locate_problem(made: DerivedDocument, problem: DocumentProblem) -> DocumentProblem:
    """Return a problem of the derived document at its place in the documentation."""
    for pointer, (location, place) in made.places.items():
        if problem.pointer.startswith(pointer):
            return replace(problem, file=location, pointer=place)
    return problem


def _format_host(url: str) -> str:
    """Return a URL's host in the form of a bundle's permissions."""
    origin = parse_origin(url)
    if origin is None:
        return ""
    default = DEFAULT_PORTS[origin.scheme] == origin.port
    return origin.host if default else f"{origin.host}:{origin.port}"


def _build_document(
    check: CheckedClaims, first: Page
) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    schemes = {_name_scheme(made): _build_scheme(made) for made in check.credentials}
    paths: dict[str, dict[str, Any]] = {}
    places = {}
    for claim, location, place in check.operations:
        item = paths.setdefault(_find_route(paths, claim.path), {})
        item[claim.method.lower()] = _build_operation(claim)
        path = _find_route(paths, claim.path)
        places[f"/paths/{escape_token(path)}/{claim.method.lower()}"] = location, place
    origin = parse_origin(check.base_url or first.location)
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


def _find_route(paths: Mapping[str, Any], path: str) -> str:
    """Return the known path that differs from this one only in the names of its placeholders, else
    the path.
    """
    wanted = PLACEHOLDER.sub("{}", path)
    return next((known for known in paths if PLACEHOLDER.sub("{}", known) == wanted), path)


def _build_operation(claim: OperationClaim) -> dict[str, Any]:
    described_in_path = {field.name: field for field in claim.fields if field.location == "path"}
    parameters = [
        _build_parameter(
            described_in_path.get(name) or FieldClaim(name, "path", "string", True, "", "")
        )
        for name in dict.fromkeys(PLACEHOLDER.findall(claim.path))
    ]
    others = [field for field in claim.fields if field.location in ("query", "header")]
    made: dict[str, Any] = {
        "summary": claim.summary,
        "parameters": [*parameters, *map(_build_parameter, others)],
        "responses": _build_responses(claim.answers),
    }
    body = [field for field in claim.fields if field.location == "body"]
    if (body or claim.has_body) and claim.method not in _BODILESS:
        made["requestBody"] = _build_body(claim, body)
    return made


def _build_parameter(field: FieldClaim) -> dict[str, Any]:
    return {
        "name": field.name,
        "in": field.location,
        "required": field.required or field.location == "path",
        "description": field.description,
        "schema": _build_field_schema(field),
    }


def _build_field_schema(field: FieldClaim) -> dict[str, Any]:
    if field.type == "array":
        return {"type": "array", "items": {"type": "string"}}
    known = ("string", "integer", "number", "boolean", "object")
    return {"type": field.type if field.type in known else "string"}


def _build_body(claim: OperationClaim, fields: Sequence[FieldClaim]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            f.name: {**_build_field_schema(f), "description": f.description} for f in fields
        },
    }
    required = [field.name for field in fields if field.required]
    if required:
        schema["required"] = required
    media_type = claim.media_type if "/" in claim.media_type else _JSON
    return {"required": bool(required), "content": {media_type: {"schema": schema}}}


def _build_responses(answers: Sequence[AnswerClaim]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for status in sorted({answer.status for answer in answers}):
        mine = [answer for answer in answers if answer.status == status]
        text = next((answer.description for answer in mine if answer.description), "")
        made[str(status)] = {"description": text}
        examples = [json.loads(answer.example) for answer in mine if answer.example]
        if examples:
            made[str(status)]["content"] = {_JSON: {"schema": infer_schema(examples)}}
    return made if any(status < "4" for status in made) else {"default": _ANY, **made}


_ANY: Mapping[str, Any] = {"description": "as the API answers"}


def _name_scheme(made: RecordedCredential) -> str:
    return made.parameter or made.kind


def _build_scheme(made: RecordedCredential) -> dict[str, Any]:
    if made.kind == "apiKey":
        return {"type": "apiKey", "in": made.location, "name": made.parameter}
    if made.kind == "oauth2" and made.token_url:
        flow = {"tokenUrl": made.token_url, "scopes": {}}
        return {"type": "oauth2", "flows": {"clientCredentials": flow}}
    scheme = "bearer" if made.kind == "oauth2" else made.kind
    return {"type": "http", "scheme": scheme}


def _add_curl_operations(
    root: dict[str, Any], pages: Sequence[Page], check: CheckedClaims
) -> tuple[dict[str, tuple[str, str]], tuple[DocumentProblem, ...]]:
    """Add the operations of the pages' curl commands that are not there yet; they need no model.
    Returns their places and the problems.
    """
    places: dict[str, tuple[str, str]] = {}
    problems: list[DocumentProblem] = []
    for page in pages:
        recording = read_curl({KEY: page.text})
        made = infer_document(_select_api_requests(recording, root, page))
        left_out = (*recording.left_out, *made.left_out)
        problems += [DocumentProblem(page.location, where, why) for where, why in left_out[:20]]
        if not root.get("servers") and made.root.get("servers"):
            root["servers"] = made.root["servers"]
        base = _find_base_path(root)
        for path, item in made.root["paths"].items():
            if base and not path.startswith(f"{base}/"):
                reason = f"{path[:200]} is not below the base URL; it is left out"
                problems.append(DocumentProblem(page.location, "/curl", reason))
                continue
            inside = path[len(base) :]
            target = root["paths"].setdefault(_find_route(root["paths"], inside), {})
            for method, operation in item.items():
                if method not in target:
                    target[method] = _strip_servers(operation, bool(root.get("security")))
                    pointer = made.places.get(f"/paths/{escape_token(path)}/{method}", "/curl")
                    known = _find_route(root["paths"], inside)
                    places[f"/paths/{escape_token(known)}/{method}"] = page.location, pointer
        schemes = root["components"]["securitySchemes"]
        if not root.get("security"):
            schemes.update(made.root["components"]["securitySchemes"])
    root["paths"] = {path: item for path, item in root["paths"].items() if item}
    return places, tuple(problems)


def _select_api_requests(
    recording: RequestRecording, root: Mapping[str, Any], page: Page
) -> RequestRecording:
    """Keep the commands for the API's own host; without a base URL, for the host of the first
    command.
    """
    known = root.get("servers")
    named = [request.origin for request in recording.requests if request.origin]
    own = parse_origin(known[0]["url"]) if known else parse_origin(page.location)
    wanted = own or (parse_origin(named[0]) if named else None)
    kept = [r for r in recording.requests if not r.origin or parse_origin(r.origin) == wanted]
    left = [
        (r.where, f"{r.origin} is another host than the API's; the command is left out")
        for r in recording.requests
        if r.origin and parse_origin(r.origin) != wanted
    ]
    return replace(recording, requests=tuple(kept), left_out=(*recording.left_out, *left))


def _find_base_path(root: Mapping[str, Any]) -> str:
    servers = root.get("servers")
    url = str(servers[0]["url"]) if servers else ""
    origin = parse_origin(url)
    return "/" + "/".join(url.split("/")[3:]).strip("/") if origin and url.count("/") > 2 else ""


def _strip_servers(operation: Mapping[str, Any], drop_security: bool) -> dict[str, Any]:
    dropped = {"servers", *(["security"] if drop_security else [])}
    return {key: value for key, value in operation.items() if key not in dropped}
