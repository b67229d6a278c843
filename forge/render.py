"""`server.py`: the source of a server, one short function per tool.

Nothing of a document reaches the source but as a string literal, a docstring without quotes or
escapes, or a name that `forge.naming` made.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from forge.design import Argument, BodyArgument, ServerSpec, ToolSpec, constant
from forge.media import DEFAULT_TYPES, bare, is_json
from forge.naming import STYLES
from forge.projection import merged_properties, target
from forge.prose import visible
from sandbox.apispec import Encoding, MediaType, Parameter, Schema

WIDTH = 88
_WRAPPERS = {
    "spaceDelimited": "ssv",
    "pipeDelimited": "pipes",
    "tabDelimited": "tsv",
    "label": "label",
    "matrix": "matrix",
}
_SCALARS = frozenset({"string", "integer", "number", "boolean"})


def render(server: ServerSpec) -> str:
    """The source for the runtime of docs/runtime-protocol.md, section 4."""
    functions = [_function(tool, server) for tool in server.tools]
    code = "\n\n\n".join(functions)
    count = f"{len(server.tools)} operation" + ("s" if len(server.tools) != 1 else "")
    head = _docstring(f"{server.title}: {count}, compiled from {server.api.source}.", "")
    names = [name for name in ("UNSET", "http", "tool") if name != "UNSET" or "UNSET" in code]
    lines = [head, "", f"from toolwright import {', '.join(names)}"]
    styles = [name for name in STYLES if f"{name}(" in code and _calls(functions, name)]
    if styles:
        lines.append(f"from toolwright.styles import {', '.join(sorted(styles))}")
    return "\n".join(lines) + "\n\n\n" + code + "\n"


def literal(text: str | int | float) -> str:
    """A Python literal, in double quotes where that needs no escape."""
    if not isinstance(text, str):
        return repr(text)
    # A leading apostrophe makes repr() choose double quotes unless the text holds one.
    return '"' + repr("'" + text)[2:] if '"' not in text else repr(text)


def _function(tool: ToolSpec, server: ServerSpec) -> str:
    name = tool.definition.name
    required = [a.name for a in tool.arguments if a.parameter.required]
    optional = [f"{a.name}=UNSET" for a in tool.arguments if not a.parameter.required]
    if tool.body is not None:
        (required if tool.body.required else optional).append(
            tool.body.name if tool.body.required else f"{tool.body.name}=UNSET"
        )
    text = tool.operation.summary or tool.definition.title or tool.operation.id
    signature = _wrapped(f"def {name}(", [*required, *optional], "):", 0)
    docstring = _docstring(visible(text, 300), "    ")
    return "\n".join(["@tool", *signature, docstring, *_request(tool, server)])


def _request(tool: ToolSpec, server: ServerSpec) -> list[str]:
    operation = tool.operation
    is_relative = operation.server == server.base_url
    template = operation.path if is_relative else operation.url
    parts = [literal(operation.method), literal(template)]
    lines = [f"        {part}," for part in parts]
    for location in ("path", "query", "header", "cookie"):
        pairs = [
            f"{literal(argument.parameter.name)}: {_value(argument, server.api.schemas)}"
            for argument in tool.arguments
            if argument.parameter.location == location
        ]
        pairs += [
            f"{literal(parameter.name)}: {literal(_constant(parameter))}"
            for parameter in tool.constants
            if parameter.location == location
        ]
        if pairs:
            parts.append(f"{location}={{{', '.join(pairs)}}}")
            lines += _wrapped(f"        {location}={{", pairs, "},", 8)
    if tool.body is not None:
        for name, value in _body(tool.body, server.api.schemas):
            parts.append(f"{name}={value}")
            lines += _body_lines(name, value, tool.body)
    single = f"    return http.request({', '.join(parts)})"
    if len(single) <= WIDTH and len(parts) <= 3:
        return [single]
    return ["    return http.request(", *lines, "    )"]
