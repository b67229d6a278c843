"""A GraphQL schema as an APISpec: an operation for each query and each mutation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote, urlsplit, urlunsplit

from forge.document import Document, Problem
from forge.errors import NoUsableOperation
from forge.graphql.inputs import definitions, variable_schema
from forge.graphql.schema import Field, GraphqlSchema, Input, Ref, introspected, read_schema
from forge.graphql.selection import selection
from forge.naming import snake
from forge.openapi.reader import MAX_OPERATIONS, Reading
from forge.openapi.servers import absolute
from forge.prose import clean, first_sentence, visible
from sandbox.apispec import Access, APISpec, MediaType, Operation, Parameter, Response
from sandbox.graphql import Kind, kind_of
from sandbox.verbs import ACTS, words

DIALECT = "graphql"
ENDPOINT = "graphql"
INTROSPECTION = (
    "{__schema{queryType{name}mutationType{name}types{kind name description "
    "fields(includeDeprecated:true){name description args{...I}type{...T}isDeprecated}"
    "inputFields{...I}enumValues{name}possibleTypes{name}}}}"
    "fragment I on __InputValue{name description type{...T}defaultValue}"
    "fragment T on __Type{kind name ofType{kind name ofType{kind name ofType{kind name "
    "ofType{kind name}}}}}"
)
_RESULT = re.compile(r"(?:Connection|Payload|Edge|Result|Response|Output)\Z")


def is_graphql(root: object) -> bool:
    return introspected(root) is not None


def introspection_url(url: str) -> str:
    """Where a GraphQL endpoint tells its schema to a GET; "" where the URL is like none."""
    parts = urlsplit(url)
    if not parts.path.rstrip("/").lower().endswith(ENDPOINT) or parts.query:
        return ""
    return urlunsplit((*parts[:3], f"query={quote(INTROSPECTION, safe='')}", ""))


def read_graphql(document: Document, base_url: str | None = None) -> Reading:
    """The API that an introspection's result describes, at `base_url` or where it came from.

    Subscriptions are left aside. Raises NoUsableOperation.
    """
    problems: dict[Problem, None] = dict.fromkeys(document.problems)

    def complain(pointer: str, reason: str) -> None:
        problems[Problem(document.name, pointer, reason)] = None

    told = introspected(document.root)
    assert told is not None
    schema = read_schema(told, complain)
    endpoint = _endpoint(base_url or (document.url or "").partition("?")[0])
    if endpoint is None:
        reason = "it does not say where the API is; give the endpoint's URL as the base URL"
        raise NoUsableOperation(document.name, reason)
    operations = tuple(_operations(schema, endpoint))[:MAX_OPERATIONS]
    if not operations:
        raise NoUsableOperation(document.name, "it has no query and no mutation", tuple(problems))
    spec = APISpec(
        title=urlsplit(endpoint[0]).hostname or "API",
        version="",
        source=visible(document.name if not document.url else endpoint[0] + endpoint[1], 500),
        dialect=DIALECT,
        operations=operations,
        schemas=definitions(schema),
    )
    return Reading(spec, tuple(problems))


def _endpoint(url: str) -> tuple[str, str] | None:
    """(server, path) of an endpoint: a URL without a path has it at `/graphql`."""
    known = absolute(url) if url else ""
    if not known:
        return None
    parts = urlsplit(known)
    directory, _, last = parts.path.rpartition("/")
    return f"{parts.scheme}://{parts.netloc}{directory}", f"/{last or ENDPOINT}"


def _operations(schema: GraphqlSchema, endpoint: tuple[str, str]) -> Iterator[Operation]:
    taken: set[str] = set()
    kinds: tuple[tuple[Kind, str], ...] = (("query", schema.query), ("mutation", schema.mutation))
    for kind, root in kinds:
        type_ = schema.types.get(root)
        for field in type_.fields if type_ else ():
            name = field.name if field.name not in taken else f"{field.name}_{kind}"
            taken.add(name)
            yield _operation(schema, endpoint, kind, field, name)


def _operation(
    schema: GraphqlSchema, endpoint: tuple[str, str], kind: Kind, field: Field, name: str
) -> Operation:
    server, path = endpoint
    asked = selection(schema, field.type)
    answer = {
        "type": "object",
        "properties": {
            "data": {"type": ["object", "null"], "properties": {field.name: asked.schema}}
        },
    }
    return Operation(
        id=name,
        method="POST",
        path=path,
        server=server,
        access=_access(kind, field),
        summary=first_sentence(clean(field.description, 400), 120),
        description=clean(field.description, 400),
        tags=(_group(field),),
        parameters=tuple(
            Parameter(argument.name, "variable", variable_schema(schema, argument), argument.needed)
            for argument in field.arguments
        ),
        responses=(Response("200", content=(MediaType("application/json", answer),)),),
        deprecated=field.deprecated,
        document=_document(kind, field, name, asked.lines),
    )


def _access(kind: Kind, field: Field) -> Access:
    """A query whose name says that it acts counts as a write."""
    first = words(field.name)[:1]
    return "write" if kind == "mutation" or (first and first[0] in ACTS) else "read"


def _group(field: Field) -> str:
    named = field.type.named
    return snake(_RESULT.sub("", named) or named)


def _declared(argument: Input) -> Ref:
    """A variable's type. Where the schema has a default it may be left out (section 5.8.5)."""
    return argument.type if argument.needed else replace(argument.type, required=False)


def _document(kind: Kind, field: Field, name: str, lines: tuple[str, ...]) -> str:
    declared = ", ".join(f"${a.name}: {_declared(a)}" for a in field.arguments)
    given = ", ".join(f"{a.name}: ${a.name}" for a in field.arguments)
    head = f"{kind} {name}({declared}) {{" if declared else f"{kind} {name} {{"
    asked = f"  {field.name}({given})" if given else f"  {field.name}"
    body = [f"{asked} {{", *(f"    {line}" for line in lines), "  }"] if lines else [asked]
    document = "\n".join([head, *body, "}"])
    assert kind_of(document) == kind
    return document
