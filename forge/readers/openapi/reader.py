"""An OpenAPI document of any version as an APISpec. What is bad is left out and listed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from forge import access
from forge.document import Document, Problem, escape
from forge.errors import NotAnApiDescription, NoUsableOperation
from forge.openapi import bodies, parameters, paths, security, servers, tags
from forge.openapi.context import Context, Dialect, LeftOut, Problems
from forge.openapi.references import Node, References, Unresolved
from forge.openapi.schemas import Schemas
from forge.prose import clean, visible
from sandbox.apispec import APISpec, Operation, Schema, SecurityScheme

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_METHOD = re.compile(r"[A-Z][A-Z0-9_-]{0,19}\Z")
MAX_OPERATIONS = 5000


@dataclass(frozen=True)
class Reading:
    """What was read, and what could not be."""

    spec: APISpec
    problems: tuple[Problem, ...]


def read(document: Document, base_url: str | None = None) -> Reading:
    """The API that a document describes; `base_url` replaces its servers and basePath whole.

    Raises NotAnApiDescription, and NoUsableOperation where every operation is left out.
    """
    dialect = _dialect(document)
    problems = Problems(dict.fromkeys(document.problems))
    references = References(document)
    schemas = Schemas(references, dialect == "3.1", problems.add)
    context = Context(dialect, references, schemas, problems, tags.declared(references.root))
    base = _given(document, base_url) if base_url else None
    root_url = base or servers.base_url(context, [references.root], document.url)
    schemes = security.schemes(context, root_url)
    forgotten = security.unapplied(context, schemes)
    schemes.setdefault(security.AUTHORIZATION.name, security.AUTHORIZATION)
    operations = tuple(_operations(context, document, base, security.Known(schemes, forgotten)))
    named = context.schemas.named()
    for problem in (*references.problems, *_clashes(document, operations, named)):
        problems.add(problem)
    found = problems.all(document.name)
    if not operations:
        causes = "; ".join(map(str, found[:3])) or "the document lists none"
        raise NoUsableOperation(document.name, f"no operation can be used ({causes})", found)
    used = {name for o in operations for names in o.security for name in names}
    info = references.root.get("info")
    spec = APISpec(
        title=clean(info.get("title").value, 120) or "API",
        version=visible(info.get("version").value, 40),
        source=visible(document.url or document.name, 500),
        dialect=f"{'swagger' if dialect == '2.0' else 'openapi'} {_written(document, dialect)}",
        operations=operations,
        description=clean(info.get("description").value, 1000),
        security_schemes=tuple(s for s in _unique(schemes) if s.name in used),
        schemas=named,
    )
    return Reading(spec, found)


def _dialect(document: Document) -> Dialect:
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


def _written(document: Document, dialect: Dialect) -> str:
    """The version to tell of; 3.2 is read as 3.1 with additions."""
    return "3.2" if str(document.root.get("openapi") or "").startswith("3.2") else dialect


def _clashes(
    document: Document, operations: Iterable[Operation], schemas: Mapping[str, Schema]
) -> Iterator[Problem]:
    """Where two parameters of an operation cannot be told apart on the wire."""
    for operation in operations:
        pointer = f"/paths/{escape(operation.written)}/{operation.method.lower()}/parameters"
        for name in parameters.clashes(operation.parameters, schemas):
            reason = f"two parameters write {name[:60]!r} into the query; what is given is sent"
            yield Problem(document.name, pointer, reason)


def _given(document: Document, base_url: str) -> str:
    url = servers.absolute(base_url)
    if not url:
        raise NoUsableOperation(document.name, f"the base URL {base_url!r} is no http(s) URL")
    return url


def _operations(
    context: Context, document: Document, base: str | None, schemes: security.Known
) -> Iterator[Operation]:
    taken: set[str] = set()
    count = 0
    for path, item, method, node in _entries(context):
        if count == MAX_OPERATIONS:
            reason = f"only the first {MAX_OPERATIONS} operations are compiled"
            context.problems.add(context.references.root.get("paths").problem(reason))
            return
        count += 1
        try:
            levels = [node, item, context.references.root]
            server = base or servers.base_url(context, levels, document.url)
            if not server:
                raise LeftOut(node.problem("no server is an absolute http(s) URL; give a base URL"))
            operation = _operation(context, path, item, method, node, server, schemes)
        except LeftOut as error:
            reason = f"{error.problem.reason}; the operation {method.upper()} {path} is left out"
            at = error.problem
            context.problems.add(Problem(at.file, at.pointer, visible(reason, 500)))
            continue
        yield _distinct(operation, path, taken)


def _entries(context: Context) -> Iterator[tuple[str, Node, str, Node]]:
    """Path, path item, method and operation of each operation that the document lists."""
    for path, written in context.references.root.get("paths").items():
        try:
            item = context.references.follow(written)
        except Unresolved as error:
            reason = f"{error.problem.reason}; the path is left out"
            context.problems.add(written.problem(reason))
            continue
        if not isinstance(item.value, dict):
            context.problems.add(written.problem("a path must be an object; it is left out"))
            continue
        own = item
        if item is not written:
            beside = {key: value for key, value in written.value.items() if key != "$ref"}
            own = Node({**item.value, **beside}, item.file, item.pointer)
        for method in METHODS:
            if own.value.get(method) is not None:
                yield path, own, method, own.child(method)
        # 3.2: https://spec.openapis.org/oas/v3.2.0.html#path-item-object
        for method, node in own.get("additionalOperations").items():
            if _METHOD.match(method) and method.lower() not in METHODS:
                yield path, own, method, node
            else:
                context.problems.add(node.problem("this is no further method; it is left out"))


def _operation(
    context: Context,
    path: str,
    item: Node,
    method: str,
    node: Node,
    server: str,
    known: security.Known,
) -> Operation:
    node = _followed(context, node)
    nodes = parameters.collect(context, item, node)
    written, path = path, paths.plain(path, nodes)
    template, query = paths.template(path, node)
    required = security.requirements(context, node, known.schemes)
    placeholders = paths.placeholders(path)
    read = parameters.read(context, nodes, placeholders, security.places(required, known))
    body = (
        bodies.swagger_body(context, nodes, node)
        if context.dialect == "2.0"
        else bodies.request_body(context, node)
    )
    answers = bodies.responses(context, node)
    operation_id = visible(node.get("operationId").value, 200)
    summary = clean(node.get("summary").value, 200)
    return Operation(
        id=operation_id,
        method=method.upper(),
        path=template,
        server=server,
        access=access.judge(
            method.upper(),
            template,
            operation_id,
            summary,
            paths.query_values(read, query),
            [response.status for response in answers if response.status.startswith("2")],
        ),
        summary=summary,
        description=clean(node.get("description").value, 1000),
        tags=tags.of(node, context.tags),
        parameters=paths.with_query(read, query, template),
        body=body,
        responses=answers,
        security=required or security.forgotten(nodes, known),
        deprecated=parameters.truth(node.get("deprecated").value),
        written=written,
    )


def _followed(context: Context, node: Node) -> Node:
    """The operation itself, where a reference stands for it. Raises LeftOut."""
    try:
        found = context.references.follow(node)
    except Unresolved as error:
        raise LeftOut(error.problem) from error
    if not isinstance(found.value, dict):
        raise LeftOut(found.problem("an operation must be an object"))
    return found


def _distinct(operation: Operation, path: str, taken: set[str]) -> Operation:
    """The operation under an id of its own: the document's, or method and path."""
    written = f"{operation.method} {visible(path, 2000)}"
    name = operation.id if operation.id and operation.id not in taken else written
    number = 1
    while name in taken:
        number += 1
        name = f"{written} {number}"
    taken.add(name)
    return operation if name == operation.id else replace(operation, id=name)


def _unique(schemes: dict[str, SecurityScheme]) -> list[SecurityScheme]:
    return list({scheme.name: scheme for scheme in schemes.values()}.values())
