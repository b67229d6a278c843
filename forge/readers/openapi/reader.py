"""Conversion of an OpenAPI document of any version to an APISpec. Invalid parts are left out and
reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from forge.errors import NotAnApiDescription, NoUsableOperation
from forge.readers import access
from forge.readers.document import Document, DocumentProblem, escape_token
from forge.readers.openapi import bodies, parameters, paths, security, servers
from forge.readers.openapi.context import Dialect, OperationSkipped, ProblemLog, ReaderContext
from forge.readers.openapi.references import Node, References, UnresolvedReference
from forge.readers.openapi.schemas import SchemaConverter
from forge.text import sanitize_line, sanitize_prose
from sandbox.bundle.apispec import APISpec, Operation, Schema, SecurityScheme

MAX_TAGS = 16
MAX_PARENTS = 4
_NOT_FOR_FINDING = frozenset({"audience", "badge"})
"""Kinds of tag that say something else than where an operation belongs."""


def read_declared_tags(root: Node) -> dict[str, Node]:
    """Return the tags that the document declares, by name."""
    return {_read_text(tag, "name"): tag for tag in root.get("tags").list_elements()}


def _read_tags(context: ReaderContext, tags: Node) -> tuple[str, ...]:
    """Return the tags of an operation, those that classify it first; before them the path of the
    first one where it has parents: `Animals / Pets`.

    https://spec.openapis.org/oas/v3.2.0.html#tag-object
    """
    known = context.tags
    bears = [sanitize_line(tag.value, 60) for tag in tags.list_elements()[:MAX_TAGS]]
    names = list(dict.fromkeys(filter(None, bears)))
    names.sort(key=lambda name: _read_text(known.get(name), "kind") in _NOT_FOR_FINDING)
    line = _find_ancestors(names[0], known) if names else []
    return (" / ".join(line), *names) if len(line) > 1 else tuple(names)


def _find_ancestors(name: str, known: Mapping[str, Node]) -> list[str]:
    line = [name]
    while len(line) <= MAX_PARENTS:
        parent = _read_text(known.get(line[0]), "parent")
        if not parent or parent in line or parent not in known:
            break
        line.insert(0, parent)
    return line


def _read_text(tag: Node | None, key: str) -> str:
    return sanitize_line(tag.read(key), 60) if tag is not None else ""


METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_PATH_ITEM = frozenset("$ref summary description servers parameters additionalOperations".split())
_OF_OPERATIONS = frozenset({"operationId", "responses", "requestBody", "parameters"})
_METHOD = re.compile(r"[A-Z][A-Z0-9_-]{0,19}\Z")
MAX_OPERATIONS = 5000


@dataclass(frozen=True)
class ParsedApi:
    """The spec read from a document, and the problems found."""

    spec: APISpec
    problems: tuple[DocumentProblem, ...]


def read_openapi(document: Document, base_url: str | None = None) -> ParsedApi:
    """Read the API of a document; `base_url` replaces its servers and basePath.

    Raises NotAnApiDescription, and NoUsableOperation where every operation is left out.
    """
    dialect = _detect_dialect(document)
    problems = ProblemLog(dict.fromkeys(document.problems))
    references = References(document)
    schemas = SchemaConverter(references, dialect == "3.1", problems.add)
    context = ReaderContext(
        dialect,
        references,
        schemas,
        problems,
        read_declared_tags(references.root),
        document.believed,
        document.served,
        document.prefix,
    )
    base = _parse_base_url(document, base_url) if base_url else None
    root_url = base or servers.find_base_url(context, [references.root], document.url)
    schemes = security.read_schemes(context, root_url)
    forgotten = security.find_unapplied_schemes(context, schemes)
    schemes.setdefault(security.AUTHORIZATION.name, security.AUTHORIZATION)
    operations = tuple(
        _read_operations(context, document, base, security.KnownSchemes(schemes, forgotten))
    )
    named = context.schemas.collect_named_schemas()
    for problem in (*references.problems, *_find_clashes(document, operations, named)):
        problems.add(problem)
    found = problems.list_problems(document.name)
    if not operations:
        causes = "; ".join(map(str, found[:3])) or "the document lists none"
        raise NoUsableOperation(
            document.name, f"no operation can be used ({causes})", found, empty=not found
        )
    used = {name for o in operations for names in o.security for name in names}
    info = references.root.get("info")
    family = "swagger" if dialect == "2.0" else "openapi"
    spec = APISpec(
        title=sanitize_prose(info.read("title"), 120) or "API",
        version=sanitize_line(info.read("version"), 40),
        source=sanitize_line(document.url or document.name, 500),
        dialect=f"{family} {_format_version(document, dialect)}",
        operations=operations,
        description=sanitize_prose(info.read("description"), 1000),
        security_schemes=tuple(s for s in _list_unique_schemes(schemes) if s.name in used),
        schemas=named,
    )
    return ParsedApi(spec, found)


def _detect_dialect(document: Document) -> Dialect:
    root = document.root
    if not isinstance(root, dict):
        raise NotAnApiDescription(document.name, "it is not a mapping")
    version = str(root.get("openapi") or root.get("swagger") or "").strip()
    if version.startswith("3"):
        return "3.0" if version.startswith("3.0") or version == "3" else "3.1"
    if version.startswith("2"):
        return "2.0"
    if not version and isinstance(root.get("paths"), dict):
        return "2.0" if "definitions" in root or "basePath" in root else "3.0"
    if version:
        raise NotAnApiDescription(document.name, f"version {version[:40]!r} cannot be read")
    other = next((key for key in ("asyncapi", "openrpc", "raml", "$schema") if key in root), None)
    reason = f"it is a document with `{other}`" if other else "it names no `openapi` version"
    raise NotAnApiDescription(document.name, reason)


def _format_version(document: Document, dialect: Dialect) -> str:
    """Return the version for display; 3.2 is read as 3.1 with additions."""
    return "3.2" if str(document.root.get("openapi") or "").startswith("3.2") else dialect


def _find_clashes(
    document: Document, operations: Iterable[Operation], schemas: Mapping[str, Schema]
) -> Iterator[DocumentProblem]:
    """Yield a problem for each pair of parameters that write the same name into the query."""
    for operation in operations:
        for name in parameters.find_clashes(operation.parameters, schemas):
            path, method = escape_token(operation.written), operation.method.lower()
            pointer = f"/paths/{path}/{method}/parameters"
            reason = f"two parameters write {name[:60]!r} into the query; what is given is sent"
            yield DocumentProblem(document.name, pointer, reason)


def _parse_base_url(document: Document, base_url: str) -> str:
    url = servers.normalize_url(base_url)
    if not url:
        raise NoUsableOperation(document.name, f"the base URL {base_url!r} is no http(s) URL")
    return url


def _read_operations(
    context: ReaderContext, document: Document, base: str | None, schemes: security.KnownSchemes
) -> Iterator[Operation]:
    taken: set[str] = set()
    count = 0
    for path, item, method, node in _iterate_operations(context):
        if count == MAX_OPERATIONS:
            reason = f"only the first {MAX_OPERATIONS} operations are compiled"
            context.problems.add(context.references.root.get("paths").to_problem(reason))
            return
        count += 1
        try:
            levels = [node, item, context.references.root]
            server = base or paths.find_origin(path)
            server = server or servers.find_base_url(context, levels, document.url)
            if not server:
                raise OperationSkipped(
                    node.to_problem("no server is an absolute http(s) URL; give a base URL")
                )
            if not path:
                # The URL of the server itself, which a slash at its end would be another one than.
                server, path = paths.split_server(server)
            operation = _read_operation(context, path, item, method, node, server, schemes)
        except OperationSkipped as error:
            reason = f"{error.problem.reason}; the operation {method.upper()} {path} is left out"
            at = error.problem
            context.problems.add(DocumentProblem(at.file, at.pointer, sanitize_line(reason, 500)))
            continue
        yield _assign_id(operation, path, taken)


def _iterate_operations(context: ReaderContext) -> Iterator[tuple[str, Node, str, Node]]:
    """Yield the path, path item, method and operation of each operation in the document."""
    for path, written in context.references.root.get("paths").list_items():
        try:
            item = context.references.resolve_node(written)
        except UnresolvedReference as error:
            reason = f"{error.problem.reason}; the path is left out"
            context.problems.add(written.to_problem(reason))
            continue
        if not isinstance(item.value, dict):
            context.problems.add(written.to_problem("a path must be an object; it is left out"))
            continue
        own = item
        if item is not written:
            beside = {key: value for key, value in written.value.items() if key != "$ref"}
            own = Node({**item.value, **beside}, item.file, item.place)
        for method in METHODS:
            if method in own.value and own.value[method] is not None:
                yield path, own, method, own.get_child(method)
        meant = {key.lower(): own.get_child(key) for key in own.value if _is_misnamed(own, key)}
        for method, node in meant.items():
            if method in METHODS and own.value.get(method) is None:
                context.problems.add(
                    node.to_problem(f"methods are in small letters; {method} is meant")
                )
                yield path, own, method, node
            else:
                context.problems.add(node.to_problem("no method has this name; it is left out"))
        # 3.2: https://spec.openapis.org/oas/v3.2.0.html#path-item-object
        for method, node in own.get("additionalOperations").list_items():
            if _METHOD.match(method) and method.lower() not in METHODS:
                yield path, own, method, node
            else:
                context.problems.add(node.to_problem("this is no further method; it is left out"))


def _is_misnamed(item: Node, key: str) -> bool:
    """Whether what a path holds is an operation by its content and none by its name."""
    value, named = item.value[key], key in METHODS or key in _PATH_ITEM or key.startswith("x-")
    return not named and isinstance(value, dict) and not _OF_OPERATIONS.isdisjoint(value)


def _read_operation(
    context: ReaderContext,
    path: str,
    item: Node,
    method: str,
    node: Node,
    server: str,
    known: security.KnownSchemes,
) -> Operation:
    node = _follow_operation(context, node)
    nodes = parameters.collect_parameters(context, item, node)
    nodes += paths.list_expressed(path, nodes, node)
    written, path = path, paths.rename_placeholders(path, nodes)
    template, query = paths.parse_template(path, node)
    wanted = security.read_requirement(context, node, known)
    required = security.join_required_credentials(wanted.alternatives, nodes, known)
    placeholders = paths.list_placeholders(path)
    of_body, others = bodies.split_body_parameters(context, nodes, node)
    read = parameters.read_parameters(
        context, others, placeholders, security.find_credential_places(required, known)
    )
    body = bodies.read_body(context, of_body, node)
    answers = bodies.read_responses(context, node)
    operation_id = sanitize_line(node.read("operationId"), 200)
    summary = sanitize_prose(node.read("summary"), 200)
    return Operation(
        id=operation_id,
        method=method.upper(),
        path=template,
        server=server,
        access=access.classify_access(
            method.upper(),
            template,
            operation_id,
            summary,
            paths.list_query_values(read, query),
            [response.status for response in answers if response.status.startswith("2")],
            context.believed,
        ),
        summary=summary,
        description=sanitize_prose(node.read("description"), 1000),
        tags=context.read_once(_read_tags, node.get("tags")),
        parameters=paths.merge_query(read, query, template),
        body=body,
        responses=answers,
        scopes=wanted.scopes,
        security=required or security.find_forgotten_requirements(node, nodes, known),
        deprecated=parameters.is_true(node.read("deprecated")),
        written=written,
    )


def _follow_operation(context: ReaderContext, node: Node) -> Node:
    """Resolve a reference that stands for an operation. Raises OperationSkipped."""
    try:
        found = context.references.resolve_node(node)
    except UnresolvedReference as error:
        raise OperationSkipped(error.problem) from error
    if not isinstance(found.value, dict):
        raise OperationSkipped(found.to_problem("an operation must be an object"))
    return found


def _assign_id(operation: Operation, path: str, taken: set[str]) -> Operation:
    """Return the operation with a unique id: the document's, or method and path."""
    if operation.id and operation.id not in taken:
        taken.add(operation.id)
        return operation
    name = written = f"{operation.method} {sanitize_line(path, 2000)}"
    number = 1
    while name in taken:
        number += 1
        name = f"{written} {number}"
    taken.add(name)
    return replace(operation, id=name)


def _list_unique_schemes(schemes: dict[str, SecurityScheme]) -> list[SecurityScheme]:
    return list({scheme.name: scheme for scheme in schemes.values()}.values())
