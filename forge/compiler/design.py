"""What will be built: an API's operations as tools that a model can choose and call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from forge import media, paging
from forge.argumentschemas import argument_schema, body_schema
from forge.brevity import Brevity
from forge.grouping import groups
from forge.naming import argument_names, body_name, pager_name, server_name, tool_names
from forge.projection import Projection
from forge.prose import clean, first_sentence, shorten
from forge.toolschemas import (
    LIMITS,
    Allowance,
    Argument,
    BodyArgument,
    ToolDraft,
    documented,
    fits,
    input_schema,
    output_schema,
)
from sandbox.apispec import APISpec, Operation, Parameter, SecurityScheme
from sandbox.authscheme import TokenEndpoint
from sandbox.bundle import Credential, RequestPattern, ToolDefinition
from sandbox.graphql import kind_of
from sandbox.policy import DEFAULT_PORTS, origin_of
from sandbox.verbs import creates

MAX_DESCRIPTION = 400
_IDEMPOTENT = frozenset({"PUT", "DELETE"})


@dataclass(frozen=True)
class ToolSpec:
    """One tool to write. `constants` are parameters that have one possible value each.

    `pager` is the argument that says how many items to follow the pages for, where there is one.
    `trimmed` names the schemas ("input", "output") that were too large to be kept whole.
    """

    definition: ToolDefinition
    operation: Operation
    arguments: tuple[Argument, ...]
    constants: tuple[Parameter, ...] = ()
    body: BodyArgument | None = None
    pager: str = ""
    trimmed: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServerSpec:
    """What `render` writes and a bundle is made of."""

    name: str
    title: str
    description: str
    base_url: str
    api: APISpec
    tools: tuple[ToolSpec, ...]
    permissions: tuple[str, ...]
    credentials: tuple[Credential, ...]


def design(api: APISpec, name: str | None = None) -> ServerSpec:
    """The server for an API; `name` is by default made from the title."""
    tools = _tools(api)
    used = {name for operation in api.operations for names in operation.security for name in names}
    return ServerSpec(
        name=name or server_name(api.title),
        title=api.title,
        description=api.description,
        base_url=Counter(operation.server for operation in api.operations).most_common(1)[0][0],
        api=api,
        tools=tools,
        permissions=_permissions(api),
        credentials=tuple(
            _credential(scheme) for scheme in api.security_schemes if scheme.name in used
        ),
    )


def _credential(scheme: SecurityScheme) -> Credential:
    known = scheme.token_url or scheme.discovery
    return Credential(
        scheme.name,
        scheme.kind,
        scheme.location,
        scheme.parameter,
        tokens=TokenEndpoint(scheme.token_url, scheme.discovery, scheme.grants) if known else None,
        given=scheme.given,
    )


def _tools(api: APISpec) -> tuple[ToolSpec, ...]:
    names, grouped = tool_names(api.operations), groups(api)
    schemas = Allowance(
        Projection(api.schemas, "request"), Projection(api.schemas, "response"), Brevity()
    )
    drafts = [_draft(api, operation, schemas) for operation in api.operations]
    fitting = (limits for limits in LIMITS[:-1] if fits(drafts, schemas, limits))
    bounded = replace(schemas, limits=next(fitting, LIMITS[-1]))
    return tuple(
        _tool(draft, names[draft.operation.id], grouped.get(draft.operation.id, ""), bounded)
        for draft in drafts
    )


def _draft(api: APISpec, operation: Operation, schemas: Allowance) -> ToolDraft:
    free = [p for p in operation.parameters if constant(p) is None]
    arguments = tuple(map(Argument, argument_names(free), free))
    body = _body(api, operation, {argument.name for argument in arguments})
    pages = paging.paging(api, operation)
    takes = [argument_schema(argument.parameter, api.schemas) for argument in arguments]
    if body is not None:
        described = operation.body.description if operation.body else ""
        takes.append(body_schema(body.media, body.kind, described, api.schemas))
    return ToolDraft(
        operation,
        arguments,
        body,
        pages,
        pager_name([argument.name for argument in arguments]) if pages else "",
        schemas.request.roots(takes),
        schemas.response.roots(documented(operation)),
    )


def _tool(draft: ToolDraft, name: str, group: str, schemas: Allowance) -> ToolSpec:
    operation = draft.operation
    takes, taken = input_schema(draft, schemas)
    gives, given = output_schema(draft, schemas)
    is_read = operation.access == "read"
    title = operation.summary or first_sentence(operation.description, 80)
    definition = ToolDefinition(
        name=name,
        description=describe(operation),
        input_schema=takes,
        output_schema=gives,
        access=operation.access,
        operation=operation.id,
        title=shorten(title, 80),
        idempotent=is_read or operation.method in _IDEMPOTENT,
        destructive=not is_read and not creates(operation.method, operation.id, operation.summary),
        requests=(RequestPattern(operation.method, operation.url, operation.document),),
        security=operation.security,
        path=operation.written or operation.path,
        group=group,
        paging=draft.paging,
    )
    parts = {"input": taken, "output": given}
    trimmed = tuple(which for which, part in parts.items() if not part.whole)
    constants = tuple(p for p in operation.parameters if constant(p) is not None)
    return ToolSpec(
        definition, operation, draft.arguments, constants, draft.body, draft.pager, trimmed
    )


def describe(operation: Operation) -> str:
    """What a model chooses by: what it does, method and path, then the document's own words."""
    told = operation.description
    lead = operation.summary or first_sentence(told, 200)
    rest = told.removeprefix(lead).lstrip(" .")
    lead = lead.rstrip(" .") + ". " if lead else ""
    mark = "Deprecated. " if operation.deprecated else ""
    kind = kind_of(operation.document)
    route = f"GraphQL {kind}" if kind else f"{operation.method} {operation.path}"
    return clean(f"{mark}{lead}{route}. {rest}", MAX_DESCRIPTION)


def constant(parameter: Parameter) -> str | int | float | None:
    """The one value that a required parameter can have, or None."""
    schema = parameter.schema
    if parameter.required and isinstance(schema, Mapping) and parameter.media_type is None:
        value = schema.get("const")
        return value if isinstance(value, str | int | float) else None
    return None


def _body(api: APISpec, operation: Operation, taken: set[str]) -> BodyArgument | None:
    if operation.body is None or not operation.body.content:
        return None
    chosen, kind = media.choose(operation.body.content, api.schemas)
    return BodyArgument(body_name(taken), chosen, kind, operation.body.required)


def _permissions(api: APISpec) -> tuple[str, ...]:
    made: dict[str, None] = {}
    for operation in api.operations:
        origin = origin_of(operation.server)
        if origin is not None:
            is_default = DEFAULT_PORTS[origin.scheme] == origin.port
            made["network:" + origin.host + ("" if is_default else f":{origin.port}")] = None
    return tuple(made)
