"""The design of a server: an API's operations as tools that a model can choose and call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from forge.compiler import paging
from forge.compiler.bodies import has_file
from forge.compiler.selection import group_operations
from forge.compiler.tool_schemas import (
    LIMITS,
    BodyArgument,
    BoundedSchema,
    SchemaBudget,
    ToolArgument,
    ToolDraft,
    build_argument_schema,
    build_body_schema,
    build_input_schema,
    build_output_schema,
    is_within_total,
    list_success_schemas,
)
from forge.naming import (
    find_resource,
    name_arguments,
    name_body_argument,
    name_pager_argument,
    name_server,
    name_tools,
)
from forge.schemas import media
from forge.schemas.concise import SchemaShortener
from forge.schemas.projection import Projection
from forge.schemas.walk import memoize, memoize_pairs
from forge.text import extract_first_sentence, sanitize_prose, shorten_text
from sandbox.bundle.apispec import APISpec, Operation, Parameter, Schema, SecurityScheme
from sandbox.bundle.credential import Credential, CredentialPlace, TokenEndpoint
from sandbox.bundle.model import RequestPattern, ToolDefinition
from sandbox.bundle.verbs import is_creation
from sandbox.wire.graphql import classify_document
from sandbox.wire.policy import DEFAULT_PORTS, parse_origin

MAX_DESCRIPTION = 400
MAX_SCOPES = 100
_IDEMPOTENT = frozenset({"PUT", "DELETE"})


@dataclass(frozen=True)
class ToolSpec:
    """One tool to render. `constants` are parameters that have one possible value each.

    `pager` is the argument that limits the items collected over pages, "" where there is none.
    `trimmed` names the schemas ("input", "output") that were too large to be kept whole.
    """

    definition: ToolDefinition
    operation: Operation
    arguments: tuple[ToolArgument, ...]
    constants: tuple[Parameter, ...] = ()
    body: BodyArgument | None = None
    pager: str = ""
    trimmed: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServerSpec:
    """The input of `render_server`, and the fields of the bundle that is built from it."""

    name: str
    title: str
    description: str
    base_url: str
    api: APISpec
    tools: tuple[ToolSpec, ...]
    permissions: tuple[str, ...]
    credentials: tuple[Credential, ...]


def design_server(api: APISpec, name: str | None = None) -> ServerSpec:
    """Design the server for an API; `name` is by default derived from the title."""
    tools = _build_tools(api)
    used = {name for operation in api.operations for names in operation.security for name in names}
    base_url = Counter(operation.server for operation in api.operations).most_common(1)[0][0]
    return ServerSpec(
        name=name or name_server(api.title, base_url, map(find_resource, api.operations)),
        title=api.title,
        description=api.description,
        base_url=base_url,
        api=api,
        tools=tools,
        permissions=_list_permissions(api),
        credentials=tuple(
            build_credential(scheme, api.operations)
            for scheme in api.security_schemes
            if scheme.name in used
        ),
    )


def build_credential(scheme: SecurityScheme, operations: Iterable[Operation] = ()) -> Credential:
    """What the broker has to know of a scheme to use it; its scopes are what `operations` need."""
    if scheme.prefix:
        place = CredentialPlace("header", scheme.parameter, f"{scheme.prefix} {{secret}}")
        return Credential(scheme.name, "template", places=(place,), given=scheme.given)
    scopes = {scope for each in operations for name, scope in each.scopes if name == scheme.name}
    endpoint = TokenEndpoint(
        scheme.token_url,
        scheme.discovery,
        scheme.grants,
        authorization_url=scheme.authorization_url,
        device_url=scheme.device_url,
        login_url=scheme.login_url,
        needed_scopes=tuple(sorted(scopes)[:MAX_SCOPES]),
    )
    return Credential(
        scheme.name,
        scheme.kind,
        scheme.location,
        scheme.parameter,
        tokens=endpoint if endpoint != TokenEndpoint() else None,
        given=scheme.given,
    )


def _build_tools(api: APISpec) -> tuple[ToolSpec, ...]:
    names, grouped = name_tools(api.operations), group_operations(api)
    request = Projection(api.schemas, "request")

    def project_argument(parameter: Parameter) -> Schema:
        return request.project_root(build_argument_schema(parameter, api.schemas))

    schemas = SchemaBudget(
        request,
        Projection(api.schemas, "response"),
        SchemaShortener(),
        memoize(project_argument),
    )
    drafts = [_draft_tool(api, operation, schemas) for operation in api.operations]
    fitting = (limits for limits in LIMITS[:-1] if is_within_total(drafts, schemas, limits))
    bounded = replace(schemas, limits=next(fitting, LIMITS[-1]))

    def build_output(gives: tuple[Schema, ...], is_paged: bool) -> BoundedSchema:
        return build_output_schema(gives, is_paged, bounded)

    # Every second operation answers as another one does.
    outputs = memoize_pairs(build_output)
    return tuple(
        _build_tool(
            draft,
            names[draft.operation.id],
            grouped.get(draft.operation.id, ""),
            build_input_schema(draft, bounded),
            outputs(draft.gives, draft.paging is not None),
        )
        for draft in drafts
    )


def _draft_tool(api: APISpec, operation: Operation, schemas: SchemaBudget) -> ToolDraft:
    constants = tuple(p for p in operation.parameters if find_constant(p) is not None)
    free = operation.parameters
    if constants:
        free = tuple(p for p in free if find_constant(p) is None)
    arguments = tuple(map(ToolArgument, name_arguments(free), free))
    body = _choose_body(api, operation, {argument.name for argument in arguments})
    pages = paging.detect_paging(api, operation)
    takes = [*map(schemas.project_argument, free)]
    if body is not None:
        described = operation.body.description if operation.body else ""
        written = build_body_schema(body.media, body.kind, described, api.schemas)
        takes.append(schemas.request.project_root(written))
    return ToolDraft(
        operation,
        arguments,
        constants,
        body,
        pages,
        name_pager_argument([argument.name for argument in arguments]) if pages else "",
        schemas.request.share_roots(takes),
        schemas.response.project_roots(list_success_schemas(operation)),
    )


def _build_tool(
    draft: ToolDraft,
    name: str,
    group: str,
    takes: BoundedSchema,
    gives: BoundedSchema,
) -> ToolSpec:
    operation = draft.operation
    is_read = operation.access == "read"
    title = operation.summary or extract_first_sentence(operation.description, 80)
    definition = ToolDefinition(
        name=name,
        description=describe_operation(operation),
        input_schema=takes[0],
        output_schema=gives[0],
        access=operation.access,
        operation=operation.id,
        title=shorten_text(title, 80),
        idempotent=is_read or operation.method in _IDEMPOTENT,
        destructive=not is_read
        and not is_creation(operation.method, operation.id, operation.summary),
        requests=(RequestPattern(operation.method, operation.url, operation.document),),
        security=operation.security,
        path=operation.written or operation.path,
        group=group,
        paging=draft.paging,
    )
    parts = {"input": takes[1], "output": gives[1]}
    trimmed = tuple(which for which, part in parts.items() if not part.whole)
    return ToolSpec(
        definition, operation, draft.arguments, draft.constants, draft.body, draft.pager, trimmed
    )


def describe_operation(operation: Operation) -> str:
    """Build the description by which a model chooses a tool: the summary, method and path, then the
    rest of the document's own words.
    """
    told = operation.description
    lead = operation.summary or extract_first_sentence(told, 200)
    # `Up` of a function `up` is no beginning of "Upload a picture".
    repeated = told.startswith(lead) and not told[len(lead) : len(lead) + 1].isalnum()
    rest = (told.removeprefix(lead) if repeated else told).lstrip(" .")
    lead = lead.rstrip(" .") + ". " if lead else ""
    mark = "Deprecated. " if operation.deprecated else ""
    kind = classify_document(operation.document)
    route = f"GraphQL {kind}" if kind else f"{operation.method} {operation.path}"
    return sanitize_prose(f"{mark}{lead}{route}. {rest}", MAX_DESCRIPTION)


def find_constant(parameter: Parameter) -> str | int | float | None:
    """Return the one value that a required parameter can have, or None."""
    if not parameter.required or parameter.media_type is not None:
        return None
    value = None if isinstance(parameter.schema, bool) else parameter.schema.get("const")
    return value if isinstance(value, str | int | float) else None


def _choose_body(api: APISpec, operation: Operation, taken: set[str]) -> BodyArgument | None:
    if operation.body is None or not operation.body.content:
        return None
    content = operation.body.content
    chosen, kind = media.choose_media_type(content, api.schemas)
    form = media.DEFAULT_TYPES["multipart"]
    parts = [each for each in content if media.strip_parameters(each.type) == form]
    if parts and kind in ("json", "form") and has_file(chosen, api.schemas):
        # Neither carries a file's bytes. Frameworks list the same schema for all their parsers.
        chosen, kind = media.choose_media_type(parts, api.schemas)
    return BodyArgument(name_body_argument(taken), chosen, kind, operation.body.required)


def _list_permissions(api: APISpec) -> tuple[str, ...]:
    made: dict[str, None] = {}
    for server in dict.fromkeys(operation.server for operation in api.operations):
        origin = parse_origin(server)
        if origin is not None:
            is_default = DEFAULT_PORTS[origin.scheme] == origin.port
            made["network:" + origin.host + ("" if is_default else f":{origin.port}")] = None
    return tuple(made)
