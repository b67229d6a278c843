"""Places of a tool's arguments in the request: the annotation `x-in` of its input schema.

`path:id`, `query:name`, `header:X-Name`, `cookie:name`, `body`, or `variable:name` of a GraphQL
document. The author of the bundle claims them, so they are checked against the operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.apispec import Operation, Parameter
from sandbox.bundle.model import ToolDefinition

LOCATIONS = frozenset({"path", "query", "header", "cookie", "variable"})
PAGES = "pages"
"""The `x-in` of the argument that is no parameter: how many items to follow the pages for."""
IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})
"""Header parameters of these names have no meaning (OpenAPI 3.1, section 4.8.12.2.1)."""


@dataclass(frozen=True)
class ArgumentPlace:
    """A parameter's location and name, or ("body", "")."""

    location: str
    name: str

    def __str__(self) -> str:
        return f"{self.location} {self.name}".strip()


def find_places(tool: ToolDefinition) -> Mapping[str, ArgumentPlace]:
    """The claimed place of every argument that has a readable claim."""
    claimed = {}
    for argument, schema in tool.input_schema.get("properties", {}).items():
        claim = schema.get("x-in") if isinstance(schema, Mapping) else None
        if isinstance(claim, str):
            location, _, name = claim.partition(":")
            if claim == "body" or (location in LOCATIONS and name):
                claimed[argument] = ArgumentPlace(location, name)
    return claimed


def find_pager(tool: ToolDefinition) -> str:
    """The argument that says how many items to follow the pages for; "" where there is none."""
    properties = tool.input_schema.get("properties", {}).items() if tool.paging else ()
    found = (n for n, s in properties if isinstance(s, Mapping) and s.get("x-in") == PAGES)
    return next(found, "")


def find_asking_place(tool: ToolDefinition, operation: Operation) -> ArgumentPlace | None:
    """The place of what asks for a page; None for a tool without pages, or where a URL does."""
    if tool.paging is None or not tool.paging.parameter:
        return None
    return ArgumentPlace("variable" if operation.document else "query", tool.paging.parameter)


def check_claims(
    tool: ToolDefinition, operation: Operation, credentials: frozenset[ArgumentPlace] = frozenset()
) -> tuple[str, ...]:
    """The problems with a tool's claims: arguments without a place in the operation, two with the
    same place, and parameters that no argument fills. `credentials` are places that the broker
    fills.
    """
    claimed = find_places(tool)
    known = {get_place(parameter): parameter for parameter in operation.parameters}
    problems = []
    asks = find_asking_place(tool, operation)
    if asks is not None and asks not in known:
        problems.append(f"the pages go by {asks}, which the operation does not have")
    for argument in tool.input_schema.get("properties", {}):
        place = claimed.get(argument)
        if place is None and argument == find_pager(tool):
            continue
        if place is None:
            problems.append(f"the argument {argument} does not say where it goes")
        elif place.location == "body":
            if operation.body is None:
                problems.append(f"{argument} goes into a body that the operation does not have")
        elif place not in known:
            problems.append(f"{argument} goes to {place}, which the operation does not have")
    if len(set(claimed.values())) != len(claimed):
        problems.append("two arguments go to the same place")
    missing = set(known) - set(claimed.values()) - credentials - set(find_constants(operation))
    problems += [
        f"no argument fills {place}" for place in sorted(map(str, missing - _list_ignored()))
    ]
    if operation.body is not None and ArgumentPlace("body", "") not in claimed.values():
        problems.append("no argument fills the body")
    return tuple(problems)


def find_constants(operation: Operation) -> dict[ArgumentPlace, Any]:
    """The required parameters that can have one value only, which need no argument."""
    return {
        get_place(parameter): parameter.schema["const"]
        for parameter in operation.parameters
        if parameter.required
        and isinstance(parameter.schema, Mapping)
        and "const" in parameter.schema
    }


def get_place(parameter: Parameter) -> ArgumentPlace:
    """The place of a parameter, with its name as written."""
    return ArgumentPlace(parameter.location, parameter.name)


def _list_ignored() -> set[ArgumentPlace]:
    names = ("Accept", "Content-Type", "Authorization")
    return {ArgumentPlace("header", form) for name in names for form in (name, name.lower())}
