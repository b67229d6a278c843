"""Conversion of a GraphQL schema to an APISpec: one operation for each query and mutation field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import quote, urlsplit, urlunsplit

from forge.errors import NoUsableOperation
from forge.naming import to_snake_case
from forge.readers.document import Document, DocumentProblem
from forge.readers.graphql.inputs import build_definitions, build_variable_schema
from forge.readers.graphql.schema import (
    WRITTEN,
    GraphqlField,
    GraphqlSchema,
    InputValue,
    TypeRef,
    find_schema_object,
    read_schema,
)
from forge.readers.graphql.selection import PagingVariable, SelectionSet, select_fields
from forge.readers.openapi.reader import MAX_OPERATIONS, ParsedApi
from forge.readers.openapi.servers import normalize_url
from forge.text import extract_first_sentence, sanitize_line, sanitize_prose
from sandbox.bundle.apispec import Access, APISpec, MediaType, Operation, Parameter, Response
from sandbox.bundle.verbs import ACTS, split_words
from sandbox.wire.graphql import Kind, classify_document

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
# graphql-http, Apollo, Yoga, Strawberry, Ariadne, Graphene, gqlgen, Hot Chocolate, GraphiQL's page.
_HINT = re.compile(
    rb"graphi?ql|get query missing|must provide (?:a )?query|no operation provided"
    rb"|apollo-require-preflight",
    re.IGNORECASE,
)
_IDENTIFYING = frozenset("code guid id key number sku slug uuid".split())
"""Last words of arguments that tell one thing from others."""
_FILE = "Upload"
"""The scalar for a file, which goes into a form beside the document and not into its variables
(https://github.com/jaydenseric/graphql-multipart-request-spec).
"""
_TAKES_FILE = "it requires a file (Upload), which is sent by a form and not as JSON; left out"
_CLASS = re.compile(r"(?:Node|Type)\Z")
"""What Graphene's users name a type by beside the thing: `BookNode`, `BookType`."""
_RESULT = re.compile(r"(?:Connection|Payload|Edge|Result|Response|Output)\Z")


def is_graphql(root: object) -> bool:
    """Whether a parsed document is the result of an introspection."""
    return find_schema_object(root) is not None


def build_introspection_url(url: str) -> str:
    """Return the URL that asks a GraphQL endpoint for its schema by GET; "" where the URL does not
    look like an endpoint.
    """
    parts = urlsplit(url)
    if not parts.path.rstrip("/").lower().endswith(ENDPOINT) or parts.query:
        return ""
    return urlunsplit((*parts[:3], f"query={quote(INTROSPECTION, safe='')}", ""))


def build_introspection_body() -> bytes:
    """Return the body of the POST that asks a GraphQL endpoint for its schema."""
    return json.dumps({"query": INTROSPECTION}).encode()


def is_endpoint_hint(body: bytes) -> bool:
    """Whether a response is what a GraphQL server says to who asks without a query."""
    return _HINT.search(body[:65_536]) is not None


def read_graphql(document: Document, base_url: str | None = None) -> ParsedApi:
    """Read the API of an introspection's result, at `base_url` or where it came from, or of a
    schema in its own language, at `base_url`.

    Subscriptions are ignored. Raises NoUsableOperation.
    """
    problems: dict[DocumentProblem, None] = dict.fromkeys(document.problems)

    def complain(pointer: str, reason: str) -> None:
        problems[DocumentProblem(document.name, pointer, reason)] = None

    told = find_schema_object(document.root)
    assert told is not None
    schema = read_schema(told, complain)
    # A schema that somebody wrote down is no answer of its API.
    answered = "" if document.root.get(WRITTEN) else (document.url or "").partition("?")[0]
    endpoint = _split_endpoint(base_url) if base_url else _split_answering(answered)
    if endpoint is None:
        reason = "it does not say where the API is; give the endpoint's URL as the base URL"
        raise NoUsableOperation(document.name, reason)
    operations = tuple(_build_operations(schema, endpoint, complain))[:MAX_OPERATIONS]
    if not operations:
        raise NoUsableOperation(document.name, "it has no query and no mutation", tuple(problems))
    spec = APISpec(
        title=urlsplit(endpoint[0]).hostname or "API",
        version="",
        source=sanitize_line(document.name if not document.url else endpoint[0] + endpoint[1], 500),
        dialect=DIALECT,
        operations=operations,
        schemas=build_definitions(schema),
    )
    return ParsedApi(spec, tuple(problems))


def _split_endpoint(url: str) -> tuple[str, str] | None:
    """Split an endpoint to (server, path); a URL without a path gets `/graphql`."""
    split = _split_answering(url)
    return (split[0], f"/{ENDPOINT}") if split and split[1] == "/" else split


def _split_answering(url: str) -> tuple[str, str] | None:
    """Split the URL that gave a schema to (server, path). A slash at its end stays: Django and
    others know `/graphql/` only, and one that answers at `/` need not do so elsewhere.
    """
    known = normalize_url(url) if url else ""
    if not known:
        return None
    parts = urlsplit(known)
    directory, _, last = parts.path.rpartition("/")
    slash = "/" if last and urlsplit(url.strip()).path.endswith("/") else ""
    return f"{parts.scheme}://{parts.netloc}{directory}", f"/{last}{slash}"


def _build_operations(
    schema: GraphqlSchema, endpoint: tuple[str, str], complain: Callable[[str, str], None]
) -> Iterator[Operation]:
    taken: set[str] = set()
    kinds: tuple[tuple[Kind, str], ...] = (("query", schema.query), ("mutation", schema.mutation))
    for kind, root in kinds:
        type_ = schema.types.get(root)
        for each in type_.fields if type_ else ():
            field = _leave_out_files(schema, each)
            if any(
                argument.is_needed for argument in each.arguments if argument not in field.arguments
            ):
                complain(f"/types/{root}/fields/{each.name}", _TAKES_FILE)
                continue
            name = field.name if field.name not in taken else f"{field.name}_{kind}"
            taken.add(name)
            yield _build_operation(schema, endpoint, kind, field, name)


def _leave_out_files(schema: GraphqlSchema, field: GraphqlField) -> GraphqlField:
    """The field without the arguments that take a file."""
    type_ = schema.types.get(_FILE)
    is_known = type_ is not None and type_.kind == "SCALAR"
    kept = [a for a in field.arguments if not (is_known and a.type.innermost_name == _FILE)]
    return replace(field, arguments=tuple(kept))


def _build_operation(
    schema: GraphqlSchema, endpoint: tuple[str, str], kind: Kind, field: GraphqlField, name: str
) -> Operation:
    server, path = endpoint
    asked = select_fields(schema, field.type, {argument.name for argument in field.arguments})
    arguments = (*field.arguments, *map(_build_paging_argument, asked.variables))
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
        access=_classify_access(schema, kind, field),
        summary=extract_first_sentence(sanitize_prose(field.description, 400), 120),
        description=sanitize_prose(field.description, 400),
        tags=(_name_group(field),),
        parameters=tuple(
            Parameter(
                argument.name,
                "variable",
                build_variable_schema(schema, argument),
                argument.is_needed,
            )
            for argument in arguments
        ),
        responses=(Response("200", content=(MediaType("application/json", answer),)),),
        deprecated=field.deprecated,
        document=_render_document(kind, field, name, asked),
    )


def _classify_access(schema: GraphqlSchema, kind: Kind, field: GraphqlField) -> Access:
    """Classify a field; a query whose name begins with an acting verb counts as a write, unless the
    word is a noun there.
    """
    first = split_words(field.name)[:1]
    acts = bool(first) and first[0] in ACTS and not _names_thing(schema, field)
    return "write" if kind == "mutation" or acts else "read"


def _names_thing(schema: GraphqlSchema, field: GraphqlField) -> bool:
    """Whether a field is called as the type that it gives, or as a member of the union that it
    gives, `post(id: ID!): Post` or `postById`, and takes nothing but what tells one of them from
    others: a query does nothing else (GraphQL, October 2021, section 2.3), and its verb is none.
    """
    named, _, by = field.name.partition("By")
    told = [argument.name for argument in field.arguments] + ([by] if by else [])
    last = {(split_words(name) or [""])[-1] for name in told}
    given = schema.types.get(field.type.innermost_name)
    members = given.possible if given is not None and given.kind == "UNION" else ()
    names = (field.type.innermost_name, *members)
    called = [split_words(_CLASS.sub("", name) or name) for name in names]
    return split_words(named) in called and last <= _IDENTIFYING


def _name_group(field: GraphqlField) -> str:
    named = field.type.innermost_name
    return to_snake_case(_RESULT.sub("", named) or named)


def _find_variable_type(argument: InputValue) -> TypeRef:
    """Return the type that a variable is declared with. An argument with a default may be nullable
    (section 5.8.5).
    """
    return argument.type if argument.is_needed else replace(argument.type, required=False)


def _build_paging_argument(variable: PagingVariable) -> InputValue:
    """The argument as a caller of the tool sees it."""
    argument = replace(variable.argument, name=variable.name)
    return argument if variable.value is None else replace(argument, default=str(variable.value))


def _declare_paging_variable(variable: PagingVariable) -> str:
    declared = f"${variable.name}: {_find_variable_type(variable.argument)}"
    return declared if variable.value is None else f"{declared} = {variable.value}"


def _render_document(
    kind: Kind,
    field: GraphqlField,
    name: str,
    asked: SelectionSet,
) -> str:
    variables = [f"${a.name}: {_find_variable_type(a)}" for a in field.arguments]
    variables += map(_declare_paging_variable, asked.variables)
    declared = ", ".join(variables)
    given = ", ".join(f"{a.name}: ${a.name}" for a in field.arguments)
    head = f"{kind} {name}({declared}) {{" if declared else f"{kind} {name} {{"
    called = f"  {field.name}({given})" if given else f"  {field.name}"
    lines = [f"    {line}" for line in asked.lines]
    body = [f"{called} {{", *lines, "  }"] if lines else [called]
    document = "\n".join([head, *body, "}"])
    assert classify_document(document) == kind
    return document
