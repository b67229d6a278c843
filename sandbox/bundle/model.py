"""The bundle, which is a forged server's directory, as a value; reading and writing its files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, Literal

from sandbox.bundle.apispec import Access, APISpec
from sandbox.bundle.apispec import from_json as spec_from_json
from sandbox.bundle.apispec import to_json as spec_to_json
from sandbox.bundle.credential import Credential, parse_credential, quote_toml, render_credential
from sandbox.bundle.launch import Launch
from sandbox.bundle.launch import from_json as launch_from_json
from sandbox.bundle.launch import to_json as launch_to_json
from sandbox.bundle.packages import Dependency, parse_dependencies, render_dependencies
from sandbox.bundle.ratelimit import Pace, parse_paces, render_paces
from sandbox.bundle.widening import Widening, parse_widenings, render_widenings
from sandbox.errors import BundleInvalid

_NEVER_SHARED = 2
"""Mappings with so few members are not cached: looking them up takes as long as writing them."""


def format_json(value: Any) -> str:
    """The text of `json.dumps(value, indent=1, ensure_ascii=False)`, and its errors.

    With an indent `json` writes in Python, and a mapping anew for each place that it stands in; a
    large description would take up to a fifth longer to compile.
    """
    return _JsonWriter().write_value(value, "\n")


class _JsonWriter:
    """Writes JSON and caches the text of each mapping by its identity and indentation."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], str] = {}

    def write_value(self, value: Any, line: str) -> str:
        """`line` is the line break with the indentation of the value's last line."""
        kind = value.__class__
        if kind is str:
            return encode_basestring(value)
        if kind is dict:
            return self._write_mapping(value, line) if value else "{}"
        if kind is list or kind is tuple:
            return self._write_list(value, line) if value else "[]"
        if value is None or value is True or value is False:
            return _CONSTANTS[value]
        if kind is int:
            return repr(value)
        # Asking an abstract class takes longer than writing most values.
        if isinstance(value, Mapping):
            return self._write_mapping(value, line) if value else "{}"
        if isinstance(value, list | tuple):
            return self._write_list(value, line) if value else "[]"
        return json.dumps(value, ensure_ascii=False)

    def _write_list(self, value: Sequence[Any], line: str) -> str:
        inner = f"{line} "
        items = [
            encode_basestring(item) if item.__class__ is str else self.write_value(item, inner)
            for item in value
        ]
        return f"[{inner}{f',{inner}'.join(items)}{line}]"

    def _write_mapping(self, value: Mapping[Any, Any], line: str) -> str:
        is_shared = len(value) > _NEVER_SHARED
        key = (id(value), len(line)) if is_shared else (0, 0)
        if is_shared and key in self._known:
            return self._known[key]
        inner = f"{line} "
        # Most names and values are strings, for which a call would cost more than their text.
        members = [
            f"{encode_basestring(name) if name.__class__ is str else _format_name(name)}: "
            f"{encode_basestring(item) if item.__class__ is str else self.write_value(item, inner)}"
            for name, item in value.items()
        ]
        made = f"{{{inner}{f',{inner}'.join(members)}{line}}}"
        if is_shared:
            self._known[key] = made
        return made


def _format_name(key: Any) -> str:
    if isinstance(key, str):
        return encode_basestring(key)
    # What JSON makes of a number or None as a name.
    return json.dumps({key: 0}, ensure_ascii=False)[1:-4]


_CONSTANTS = {None: "null", True: "true", False: "false"}
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
BY_REFERENCE = "x-toolwright-file"
MAX_FILE_BYTES = 32 * 1024 * 1024
MAX_CREDENTIALS = 1000
MAX_REFUSALS, MAX_REFUSAL_TEXT = 20, 300
"""Codes of a tool, and characters of when one is raised."""
FILES = ("bundle.toml", "server.py", "tools.json", "spec.json", "launch.json")
"""Files of a version. `tests/`, `reports/` and `history/` lie beside them and are not digested."""
OPTIONAL = frozenset({"spec.json", "launch.json"})


@dataclass(frozen=True)
class RequestPattern:
    """A request a tool may make: a method and an absolute URL template such as
    `https://api.example.com/v1/zones/{id}`. A template's query is not part of it. Where there is a
    GraphQL `document`, the request has to carry just that one.
    """

    method: str
    url: str
    document: str = ""


@dataclass(frozen=True)
class Paging:
    """The paging style of a tool's list, where the API's document shows it.

    `items` and `next` are JSON pointers into an answer's body: the list, and the next page's cursor
    or URL. `parameter` is the query parameter, or the variable of a GraphQL document, that asks for
    a page, `first` what it is for the first page of an `offset` or `page` style. In the style `id`
    the next page is asked for by the last item: `next` is a pointer into that. `more` is one to the
    body's word whether there are more.
    """

    style: Literal["cursor", "offset", "page", "url", "link", "id"]
    items: str
    parameter: str = ""
    next: str = ""
    first: int = 0
    more: str = ""


def follow_pointer(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) of `Paging` leads to, through objects only; or None."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


@dataclass(frozen=True)
class ToolDefinition:
    """One tool. `operation` is the APISpec operation it calls ("" for pure code).

    `requests` is all it may ask the broker for; `security` lists the alternatives of credential
    names as in `sandbox.bundle.apispec.Operation`. Schemas are self-contained JSON Schema 2020-12
    with an object root. `path` is the operation's path as its document writes it ("" for pure
    code). `group` is what a person looks for the tool under: the document's tag or the path's first
    part. With `paging` one argument, marked `x-in: pages`, is how many items to follow the pages
    for. `refusals` are the codes with which its code refuses a caller (`Refused`), and when.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    access: Access
    operation: str = ""
    title: str = ""
    idempotent: bool = False
    destructive: bool = False
    requests: tuple[RequestPattern, ...] = ()
    security: tuple[tuple[str, ...], ...] = ()
    path: str = ""
    group: str = ""
    paging: Paging | None = None
    refusals: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The arguments that accept a file of this machine, as `file:///PATH`, instead
        of its text.
        """
        return find_file_arguments(self.input_schema)

    def build_annotations(self) -> dict[str, Any]:
        """MCP tool annotations (revision 2025-03-26 and later)."""
        return {
            "readOnlyHint": self.access == "read",
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": bool(self.requests),
        }

    def build_listing(self, base_url: str) -> dict[str, Any]:
        """The tool as `tools/list` shows it. Where it knows no path of its own, the one in its
        `_meta` is its first request's, relative to `base_url`.
        """
        meta: dict[str, Any] = {"access": self.access}
        if self.operation:
            meta["operation"] = self.operation
        if self.group:
            meta["group"] = self.group
        if self.requests and "://" in self.requests[0].url:
            first = self.requests[0]
            meta |= {
                "method": first.method,
                "path": self.path or _to_relative_path(first.url, base_url),
            }
        return {
            "name": self.name,
            "title": self.title or self.name,
            "description": self.description,
            "inputSchema": dict(self.input_schema),
            "outputSchema": dict(self.output_schema),
            "annotations": self.build_annotations(),
            "_meta": {"toolwright": meta},
        }


def compute_operation_digest(tool: ToolDefinition) -> str:
    """sha256 over what decides what a tool's operation does: its key and every request it may make,
    with method, URL template and GraphQL document.
    """
    requests = [[request.method, request.url, request.document] for request in tool.requests]
    text = json.dumps([tool.operation or tool.name, requests], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def find_file_arguments(input_schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The properties of an input schema that are marked as texts that may be files."""
    properties = input_schema.get("properties")
    listed = properties.items() if isinstance(properties, dict) else ()
    return tuple(n for n, part in listed if isinstance(part, dict) and part.get(BY_REFERENCE))


@dataclass(frozen=True)
class Provenance:
    """The origin of a bundle: the document and its sha256, the author of the code (`compiler`,
    `client`, `openai`), the model and the prompt's sha256 where a model wrote it, and the base
    image's id. The model of compiled code is the one that read the documentation.
    `parent` is the bundle it was changed from, as `name@version:digest`, or "".
    """

    source: str
    source_digest: str
    author: str = "compiler"
    model: str = ""
    prompt_digest: str = ""
    base_image: str = ""
    parent: str = ""


@dataclass(frozen=True)
class Bundle:
    """A forged server as data. `base_url` is what relative request templates in `server.py` extend.

    `permissions` are `network:HOST[:PORT]` and later `env:NAME`, `fs:PATH:MODE`; a request to a
    host that is not among them is refused whatever a tool declares. `launch` is set for
    third-party servers, which are started by it and not by the runtime. `paces` limit how often the
    broker lets it send requests to a host, `widened` is what its answer schemas accept beyond the
    document; both were learned from answers. `packages` are those of PyPI that the code imports,
    with all that they need. `registered` is the digest that its files were registered with and
    read by, "" for a bundle that is not from there.
    """

    name: str
    version: int
    title: str
    base_url: str
    source_code: str
    tools: tuple[ToolDefinition, ...]
    provenance: Provenance
    permissions: tuple[str, ...] = ()
    credentials: tuple[Credential, ...] = ()
    spec: APISpec | None = None
    description: str = ""
    launch: Launch | None = None
    paces: tuple[Pace, ...] = ()
    widened: tuple[Widening, ...] = ()
    packages: tuple[Dependency, ...] = ()
    registered: str = field(default="", compare=False, repr=False)

    def get_tool(self, name: str) -> ToolDefinition:
        """The tool of that name. Raises KeyError."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> Mapping[str, ToolDefinition]:
        # Of two tools with one name, which the static stage refuses, the first.
        return {tool.name: tool for tool in reversed(self.tools)}

    def compute_digest(self) -> str:
        """sha256 over the names and contents of the version's files, in hex."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        # What a bundle holds is never changed; a forge asks for the digest five times.
        return _hash_files(render_files(self))

    @property
    def program(self) -> str:
        """sha256 of the code where somebody wrote it; "" for code that the compiler wrote, which
        follows from the operations.
        """
        if self.provenance.author == "compiler" and self.launch is None:
            return ""
        return hashlib.sha256(self.source_code.encode()).hexdigest()

    def build_manifest(self) -> dict[str, Any]:
        """The JSON object that the container-side runtime receives besides the code and
        the tools.
        """
        return {
            "name": self.name,
            "version": self.version,
            "title": self.title,
            "description": self.description,
            "base_url": self.base_url,
            "permissions": list(self.permissions),
            "credentials": [credential.to_public() for credential in self.credentials],
        }

    def list_runtime_tools(self) -> list[dict[str, Any]]:
        """The tools as the container-side runtime receives them (and `tools.json` holds them)."""
        return [_tool_to_json(tool) for tool in self.tools]


def _to_relative_path(url: str, base_url: str) -> str:
    """The path of a URL template below the base URL, or its own whole path."""
    base = base_url.rstrip("/")
    if url.startswith(f"{base}/"):
        return url.removeprefix(base)
    return "/" + url.partition("://")[2].partition("/")[2]


def render_files(bundle: Bundle) -> dict[str, bytes]:
    """The files of a bundle's version by name."""
    files = {
        "bundle.toml": _to_toml(bundle).encode(),
        "server.py": bundle.source_code.encode(),
        "tools.json": _encode_json({"tools": bundle.list_runtime_tools()}),
    }
    if bundle.spec is not None:
        files["spec.json"] = _encode_json(spec_to_json(bundle.spec))
    if bundle.launch is not None:
        files["launch.json"] = _encode_json(launch_to_json(bundle.launch))
    return files


def write_bundle(bundle: Bundle, directory: Path) -> None:
    """Write the bundle's files into an existing empty directory and flush them to disk."""
    for name, content in render_files(bundle).items():
        with (directory / name).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def compute_files_digest(directory: Path) -> str:
    """The digest of the files on disk. It is the bundle's own where `write_bundle` wrote them and
    they were not changed since. Raises BundleInvalid.
    """
    return _hash_files(_read_contents(directory))


def read_bundle(directory: Path, *, with_spec: bool = True) -> Bundle:
    """Read the bundle in a directory. Raises BundleInvalid naming the file and the reason.

    `with_spec=False` leaves out the spec, which can be the largest part and is needed only to prove
    the bundle; the digest differs then.

    Refuses symbolic links, special files, set-id bits and files over 32 MiB: the directory may have
    come from someone else.
    """
    return parse_files(_read_contents(directory, with_spec), str(directory))


def find_bundle(directory: Path, digest: str) -> Bundle | None:
    """The bundle in a directory where it has that digest. Raises BundleInvalid as `read_bundle`."""
    contents = _read_contents(directory)
    bundle = parse_files(contents, str(directory))
    # Files that a person laid out otherwise are the same bundle: that has to be written to be told.
    same = _hash_files(contents) == digest or bundle.compute_digest() == digest
    return bundle if same else None


def parse_files(contents: Mapping[str, bytes], where: str) -> Bundle:
    """Parse a bundle's files by name. Raises BundleInvalid naming the file and the reason."""
    name = "bundle.toml"
    try:
        head = tomllib.loads(contents[name].decode())
        name = "tools.json"
        tools = tuple(_tool_from_json(tool) for tool in json.loads(contents[name])["tools"])
        name = "spec.json"
        spec = spec_from_json(json.loads(contents[name])) if name in contents else None
        name = "launch.json"
        launch = launch_from_json(json.loads(contents[name])) if name in contents else None
        name = "server.py"
        source_code = contents[name].decode()
        name = "bundle.toml"
        bundle = Bundle(
            name=str(head["name"]),
            version=int(head["version"]),
            title=str(head["title"]),
            description=str(head.get("description", "")),
            base_url=str(head["base_url"]),
            permissions=tuple(map(str, head.get("permissions", ()))),
            credentials=_parse_credentials(head.get("credentials", [])),
            provenance=Provenance(**head["provenance"]),
            source_code=source_code,
            tools=tools,
            spec=spec,
            launch=launch,
            paces=parse_paces(head.get("rate", {})),
            widened=parse_widenings(head.get("widened", [])),
            packages=parse_dependencies(head.get("packages", [])),
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BundleInvalid(where, name, f"{type(error).__name__}: {error}") from error
    if not NAME.match(bundle.name):
        raise BundleInvalid(where, "bundle.toml", f"name {bundle.name!r} is not {NAME.pattern}")
    names = [tool.name for tool in tools]
    if len(set(names)) != len(names) or not all(NAME.match(tool) for tool in names):
        raise BundleInvalid(where, "tools.json", "tool names are not unique lower-case identifiers")
    return bundle


def _parse_credentials(listed: Any) -> tuple[Credential, ...]:
    """The credentials of `bundle.toml`. Raises ValueError that says which is wrong and how."""
    if not isinstance(listed, list) or len(listed) > MAX_CREDENTIALS:
        raise ValueError(f"credentials is no list of at most {MAX_CREDENTIALS} tables")
    made: dict[str, Credential] = {}
    for number, item in enumerate(listed):
        try:
            credential = parse_credential(item)
        except ValueError as error:
            raise ValueError(f"credentials[{number}]: {error}") from error
        if credential.name in made:
            raise ValueError(f"credentials[{number}]: {credential.name[:80]!r} is there already")
        made[credential.name] = credential
    return tuple(made.values())


def _read_contents(directory: Path, with_spec: bool = True) -> dict[str, bytes]:
    contents = {}
    for name in FILES:
        path = directory / name
        wanted = name not in OPTIONAL or path.is_symlink() or path.exists()
        if wanted and (with_spec or name != "spec.json"):
            contents[name] = read_regular_file(path)
    return contents


def _hash_files(files: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name, content in sorted(files.items()):
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def read_regular_file(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file from an untrusted directory: no symbolic link, no set-id bits, at most
    `limit` bytes. Raises BundleInvalid.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BundleInvalid(str(path.parent), path.name, error.strerror or str(error)) from error
    with _close_after(descriptor):
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            raise BundleInvalid(str(path.parent), path.name, "not a plain file")
        if status.st_size > limit:
            raise BundleInvalid(str(path.parent), path.name, f"larger than {limit} bytes")
        # No more than there are: memory is taken for all that is asked for.
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(status.st_size + 1)
    if len(content) > status.st_size:
        raise BundleInvalid(str(path.parent), path.name, "it grew while it was read")
    return content


@contextmanager
def _close_after(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


def _encode_json(value: Any) -> bytes:
    return f"{format_json(value)}\n".encode()


_LEFT_OUT = ("group", "paging", "refusals")
"""Fields of a tool that are not written where they are empty."""


def find_refusals_problem(value: Any) -> str:
    """Why a tool's `refusals` are none; "" where they are."""
    if not isinstance(value, dict) or len(value) > MAX_REFUSALS:
        return f"is no object of at most {MAX_REFUSALS} codes, each with when it is raised"
    for code, when in value.items():
        if not NAME.match(code):
            return f"has the code {code[:60]!r}, which is none of {NAME.pattern}"
        if not isinstance(when, str) or not when or len(when) > MAX_REFUSAL_TEXT:
            return f"says nothing of when {code} is raised, in {MAX_REFUSAL_TEXT} characters"
    return ""


def _tool_to_json(tool: ToolDefinition) -> dict[str, Any]:
    made = {**vars(tool), "requests": [_request_to_json(request) for request in tool.requests]}
    paging = vars(tool.paging) if tool.paging else {}
    made["paging"] = {key: value for key, value in paging.items() if value or key != "more"}
    return {key: value for key, value in made.items() if value or key not in _LEFT_OUT}


def _request_to_json(request: RequestPattern) -> dict[str, str]:
    return {key: value for key, value in vars(request).items() if value or key != "document"}


def _tool_from_json(data: Mapping[str, Any]) -> ToolDefinition:
    if data["access"] not in ("read", "write"):
        raise ValueError(f"access is {data['access']!r}, neither read nor write")
    for key in ("input_schema", "output_schema"):
        if not isinstance(data[key], dict) or data[key].get("type") != "object":
            raise ValueError(f"{key} of {data['name']} has no object root")
    if problem := find_refusals_problem(data.get("refusals", {})):
        raise ValueError(f"refusals of {data['name']}: {problem}")
    return ToolDefinition(
        **{
            **data,
            "requests": tuple(RequestPattern(**request) for request in data["requests"]),
            "security": tuple(tuple(names) for names in data["security"]),
            "paging": Paging(**data["paging"]) if data.get("paging") else None,
        }
    )


def _list_provenance(made: Provenance) -> list[tuple[str, str]]:
    # Without a parent nothing is said of it, so that what has none keeps its digest.
    return [(key, value) for key, value in vars(made).items() if value or key != "parent"]


def _to_toml(bundle: Bundle) -> str:
    lines = [
        f"name = {quote_toml(bundle.name)}",
        f"version = {bundle.version}",
        f"title = {quote_toml(bundle.title)}",
        f"description = {quote_toml(bundle.description)}",
        f"base_url = {quote_toml(bundle.base_url)}",
        f"permissions = [{', '.join(map(quote_toml, bundle.permissions))}]",
        "",
        "[provenance]",
        *(f"{key} = {quote_toml(value)}" for key, value in _list_provenance(bundle.provenance)),
    ]
    for credential in bundle.credentials:
        lines += ["", *render_credential(credential)]
    lines += [*render_paces(bundle.paces), *render_widenings(bundle.widened)]
    lines += render_dependencies(bundle.packages)
    return "\n".join(lines) + "\n"
