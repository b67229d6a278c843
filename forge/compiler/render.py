"""Rendering of `server.py`: the source of a server, one short function per tool.

Text of a document reaches the source only as a string literal, as a docstring without quotes or
escapes, or as a name that `forge.naming` made.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Collection, Mapping
from typing import Any

from forge.compiler.annotations import render_annotation
from forge.compiler.bodies import Wrapper, build_xml_hint, find_root_name, find_wrappers
from forge.compiler.design import ServerSpec, ToolSpec, find_constant
from forge.compiler.tool_schemas import BodyArgument, ToolArgument
from forge.naming import API, PAGES, STYLES
from forge.schemas.media import DEFAULT_TYPES, is_json, strip_parameters
from forge.schemas.projection import resolve_schema
from forge.text import sanitize_line
from sandbox.bundle.apispec import Operation, Parameter, Schema
from sandbox.bundle.model import Paging
from sandbox.wire.graphql import classify_document

WIDTH = 88
_WORD = re.compile(r"\w+")
_STRING = re.compile(r'''"""(?s:.*?)"""|"(?:[^"\\\n]|\\.)*"''' r"|'(?:[^'\\\n]|\\.)*'")
"""A string literal or docstring as this module writes them."""
_DELIMITED = {"spaceDelimited": "ssv", "pipeDelimited": "pipes", "tabDelimited": "tsv"}
_OF_RANGES = {"audio/*": "audio/mpeg", "image/*": "image/png", "video/*": "video/mp4"}
"""What is sent for a range of types: servers look at the content more than at its exact type."""
_PREFIXED = frozenset({"label", "matrix"})
_FIRST = {"page": 1}
"""The first page's number where the code does not say one."""
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
_NOT_CALLED = {"Answer", "Any", "UNSET", "Unset", "tool"}
_USES = {
    **{name: f"{name}(" for name in API - _NOT_CALLED},
    **{name: f"{name}.request(" for name in ("graphql", "http")},
    **{name: name for name in _NOT_CALLED},
}
"""What stands in the code where a name of the runtime's API is used."""
_LONGEST_USE = max(map(len, _USES.values()))


def render_server(server: ServerSpec) -> str:
    """Render the source for the runtime of docs/runtime-protocol.md, section 4."""
    functions = ["\n".join(_render_function(tool, server)) for tool in server.tools]
    used = _find_used_names(functions)
    count = f"{len(server.tools)} operation{'s' if len(server.tools) != 1 else ''}"
    head = _render_docstring(f"{server.title}: {count}, compiled from {server.api.source}.", "")
    lines = [*head, "", "from __future__ import annotations", ""]
    if "Any" in used:
        lines += ["from typing import Any", ""]
    for module, names in (
        ("toolwright", ("UNSET", "Answer", "Unset", "graphql", "http", "tool")),
        ("toolwright.pages", PAGES),
        ("toolwright.styles", STYLES),
    ):
        lines += _render_import(module, used & set(names))
    return "\n\n\n".join(["\n".join(lines), *functions]) + "\n"


def _find_used_names(functions: Collection[str]) -> set[str]:
    """Return the names of the runtime's API that the functions use; a word in a string does not
    count.
    """
    found: set[str] = set()
    whole = "\n".join(functions)
    # Most names are called nowhere, not even in a string: little stands before the brackets.
    called = "".join({f"{before[-_LONGEST_USE:]}(" for before in whole.split("(")})
    for name, use in _USES.items():
        # What is used, is used soon.
        if name not in found and use in (called if use.endswith("(") else whole):
            for text in (each for each in functions if use in each):
                found |= API.intersection(_WORD.findall(_STRING.sub("", text)))
                if name in found:
                    break
    return found


def format_literal(value: str | int | float) -> str:
    """Format a Python literal, a string in double quotes where that needs no escape."""
    if not isinstance(value, str) or '"' in value:
        return repr(value)
    # repr() takes double quotes for a text with an apostrophe; the one put in front is cut off.
    return '"' + repr("'" + value)[2:]


def _render_import(module: str, names: Collection[str]) -> list[str]:
    if not names:
        return []
    ordered = sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
    single = f"from {module} import {', '.join(ordered)}"
    return (
        [single]
        if len(single) <= WIDTH
        else _render_list(f"from {module} import (", ordered, ")", "")
    )


def _render_function(tool: ToolSpec, server: ServerSpec) -> list[str]:
    body, definition = tool.body, tool.definition
    needed = [_render_argument(a.name, tool) for a in tool.arguments if a.parameter.required]
    optional = [
        _render_optional_argument(a.name, tool) for a in tool.arguments if not a.parameter.required
    ]
    if body is not None and body.required:
        needed.append(_render_argument(body.name, tool))
    elif body is not None:
        optional.append(_render_optional_argument(body.name, tool))
    if tool.pager:
        optional.append(_render_optional_argument(tool.pager, tool))
    text = tool.operation.summary or definition.title or tool.operation.id
    fields = _render_fields(body, server.api.schemas) if body is not None else []
    return [
        *_render_document_constant(tool),
        "@tool",
        *_render_list(f"def {definition.name}(", [*needed, *optional], ") -> Answer:", ""),
        *_render_docstring(sanitize_line(text, 300), "    "),
        *(_render_field_wrapping(body, fields) if body is not None else []),
        *_render_request(tool, server),
    ]


def _render_document_constant(tool: ToolSpec) -> list[str]:
    """Render the constant with a tool's GraphQL document; nothing in it needs an escape."""
    if not tool.operation.document:
        return []
    return [*f'{_name_document(tool)} = """\\\n{tool.operation.document}"""'.split("\n"), "", ""]


def _name_document(tool: ToolSpec) -> str:
    kind = classify_document(tool.operation.document) or "document"
    return f"{tool.definition.name}_{kind}".upper()


def _render_argument(name: str, tool: ToolSpec) -> str:
    takes = tool.definition.input_schema
    return f"{name}: {render_annotation(takes['properties'][name], takes.get('$defs', {}))}"


def _render_optional_argument(name: str, tool: ToolSpec) -> str:
    typed = _render_argument(name, tool)
    if typed.endswith(" | None"):
        return f"{typed.removesuffix(' | None')} | Unset | None = UNSET"
    return f"{typed} | Unset = UNSET"


def _render_request(tool: ToolSpec, server: ServerSpec) -> list[str]:
    operation = tool.operation
    is_relative = operation.server == server.base_url
    route = operation.path if is_relative else operation.url
    if operation.document:
        return _render_graphql_request(tool, route)
    written = [
        [f"        {format_literal(operation.method)},"],
        [f"        {format_literal(route)},"],
    ]
    pairs: dict[str, list[str]] = {}
    for argument in tool.arguments:
        name, value = argument.parameter.name, _render_value(argument, server.api.schemas)
        here = pairs.setdefault(argument.parameter.location, [])
        here.append(f"{format_literal(name)}: {value}")
    for fixed in tool.constants:
        here = pairs.setdefault(fixed.location, [])
        here.append(f"{format_literal(fixed.name)}: {format_literal(find_constant(fixed) or '')}")
    for location in ("path", "query", "header", "cookie"):
        if location in pairs:
            written.append(_render_list(f"{location}={{", pairs[location], "},", "        "))
    if tool.body is not None:
        written += _render_body(tool.body, server.api.schemas)
    accepted = _find_accepted_types(operation)
    if accepted:
        written.append([f"        accept={format_literal(accepted)},"])
    return _render_call(written + _render_paging(tool))


def _render_graphql_request(tool: ToolSpec, route: str) -> list[str]:
    """Render `return graphql.request(…)` with the arguments as variables."""
    pairs = [f"{format_literal(a.parameter.name)}: {a.name}" for a in tool.arguments]
    given = [format_literal(route), _name_document(tool)]
    single = ", ".join([*given, f"{{{', '.join(pairs)}}}"] if pairs else given)
    paged = _render_paging(tool)
    # 28: the rest of the line, `    return graphql.request()`.
    if len(single) + 28 <= WIDTH and not paged:
        return [f"    return graphql.request({single})"]
    lines = [f"        {item}," for item in given]
    return [
        "    return graphql.request(",
        *lines,
        *(_render_list("{", pairs, "},", "        ") if pairs else ()),
        *itertools.chain(*paged),
        "    )",
    ]


def _render_paging(tool: ToolSpec) -> list[list[str]]:
    """Render `pages=` and `max_items=`, each as its lines; nothing for a tool without pages."""
    paging = tool.definition.paging
    if paging is None or not tool.pager:
        return []
    return [_render_pages(paging), [f"        max_items={tool.pager},"]]


def _render_pages(paging: Paging) -> list[str]:
    """Render a call of `toolwright.pages` with the arguments that the style needs."""
    given = [format_literal(paging.parameter)] if paging.parameter else []
    if paging.next:
        given.append(f"{'item' if paging.style == 'id' else 'next'}={format_literal(paging.next)}")
    given.append(f"items={format_literal(paging.items)}")
    if paging.first != _FIRST.get(paging.style, 0):
        given.append(f"first={paging.first}")
    if paging.more:
        given.append(f"more={format_literal(paging.more)}")
    single = _render_list(f"pages=by_{paging.style}(", given, "),", "        ")
    joined = f"            {', '.join(given)}"
    return single if len(single) == 1 or len(joined) > WIDTH else [single[0], joined, single[-1]]


def _find_accepted_types(operation: Operation) -> str:
    """Return the Accept value where no success is JSON; "" leaves it to the runtime, which prefers
    JSON.
    """
    kinds = [
        content.type
        for response in operation.responses
        if response.status.startswith("2")
        for content in response.content
    ]
    if "application/json" in kinds:
        return ""
    plain = dict.fromkeys(sanitize_line(kind, 100) for kind in kinds)
    return "" if any(is_json(kind) or kind == "*/*" for kind in plain) else ", ".join(plain)[:300]


def _render_call(arguments: list[list[str]]) -> list[str]:
    """Render `return http.request(…)` on one line where it fits, else one argument per line."""
    if max(map(len, arguments)) == 1:
        short = ", ".join(lines[0].strip().removesuffix(",") for lines in arguments)
        single = f"    return http.request({short})"
        if len(single) <= WIDTH:
            return [single]
    return ["    return http.request(", *(line for lines in arguments for line in lines), "    )"]


def _render_value(argument: ToolArgument, schemas: Mapping[str, Schema]) -> str:
    parameter, value = argument.parameter, argument.name
    if parameter.style == "whole":
        return (
            f"whole(json_text({value}))"
            if is_json(parameter.media_type or "")
            else f"whole({value})"
        )
    if parameter.style == "cookie":
        return f"unescaped({value}{'' if parameter.explode else ', explode=False'})"
    if parameter.media_type is not None:
        return f"json_text({value})" if is_json(parameter.media_type) else value
    if not _is_scalar(parameter, schemas) or parameter.style in _PREFIXED:
        value = _render_styled_value(parameter, value)
    return f"raw({value})" if parameter.allow_reserved else value


def _render_styled_value(parameter: Parameter, value: str) -> str:
    style, explode = parameter.style, parameter.explode
    if style in _PREFIXED:
        return f"{style}({value}{', explode=True' if explode else ''})"
    if style == "deepObject":
        return f"deep({value})"
    if parameter.location in ("query", "cookie"):
        return value if explode else f"{_DELIMITED.get(style, 'csv')}({value})"
    if style in _DELIMITED:
        return f"{_DELIMITED[style]}({value})"
    return f"exploded({value})" if explode else value


def _is_scalar(parameter: Parameter, schemas: Mapping[str, Schema]) -> bool:
    """Whether style and explode make no difference: the value is neither array nor object."""
    kinds = resolve_schema(parameter.schema, schemas).get("type", "object")
    return kinds in _SCALARS if isinstance(kinds, str) else _SCALARS.issuperset(kinds)


def _render_body(body: BodyArgument, schemas: Mapping[str, Schema]) -> list[list[str]]:
    if body.kind == "lines":
        function = "json_sequence" if "json-seq" in body.media.type else "json_lines"
        written = [[f"        text={function}({body.name}),"]]
    elif body.kind == "xml":
        written = [_render_xml_body(body, schemas)]
    else:
        written = [[f"        {body.kind}={body.name},"]]
    kind = _choose_concrete_type(body)
    if kind != DEFAULT_TYPES[body.kind]:
        written.append([f"        content_type={format_literal(kind)},"])
    return written


def _choose_concrete_type(body: BodyArgument) -> str:
    """The media type of a body, a usual one for a range: none can be sent."""
    kind = strip_parameters(body.media.type)
    if "*" in kind:
        return _OF_RANGES.get(kind, DEFAULT_TYPES[body.kind])
    return kind if kind == DEFAULT_TYPES[body.kind] else sanitize_line(body.media.type, 200)


def _render_xml_body(body: BodyArgument, schemas: Mapping[str, Schema]) -> list[str]:
    """Render `text=xml_text(…)`, with a literal for what differs from the default form."""
    schema = True if body.media.schema is None else body.media.schema
    arguments = [body.name, format_literal(find_root_name(schema, schemas))]
    told = build_xml_hint(schema, schemas)
    if told:
        arguments.append(_format_data(told, " " * 12))
    return _render_list("text=xml_text(", arguments, "),", "        ")


def _format_data(value: Any, indent: str) -> str:
    """Format nested mappings of scalars as a literal, one member per line where one line is too
    short.
    """
    if not isinstance(value, Mapping):
        return format_literal(value)
    members = [f"{format_literal(k)}: {_format_data(v, indent + '    ')}" for k, v in value.items()]
    single = f"{{{', '.join(members)}}}"
    if len(indent) + len(single) < WIDTH and "\n" not in single:
        return single
    return "\n".join(["{", *(f"{indent}    {member}," for member in members), f"{indent}}}"])


def _render_field_wrapping(body: BodyArgument, fields: list[str]) -> list[str]:
    """Render the statement that wraps the fields of a body, where there is one: callers may leave
    out what the document requires.
    """
    if not fields:
        return []
    head = f"{body.name} = {{"
    return [
        f"    if not isinstance({body.name}, Unset):",
        *_render_list(head, fields, "}", "        "),
    ]


def _render_fields(body: BodyArgument, schemas: Mapping[str, Schema]) -> list[str]:
    if body.kind not in ("form", "multipart"):
        return []
    wrapped = find_wrappers(body.media, schemas)
    pairs = [
        _render_wrapped_field(
            format_literal(name), wrapper, f"{body.name}.get({format_literal(name)}, UNSET)"
        )
        for name, wrapper in wrapped.items()
    ]
    return [f"**{body.name}", *pairs] if pairs else []


def _render_wrapped_field(key: str, wrapper: Wrapper, value: str) -> str:
    """Render a member of the body's fields, the arguments of a long call on a line of their own."""
    named = [f"{name}={format_literal(text)}" for name, text in wrapper.arguments.items()]
    inner, indent = ", ".join([value, *named]), " " * 12
    single = f"{key}: {wrapper.function}({inner})"
    if len(indent) + len(single) < WIDTH:
        return single
    return f"{key}: {wrapper.function}(\n{indent}    {inner}\n{indent})"


def _render_list(head: str, items: list[str], tail: str, indent: str) -> list[str]:
    """Render `head item, item tail` on one line, or one item per line where that is too long."""
    single = f"{indent}{head}{', '.join(items)}{tail}"
    if len(single) <= WIDTH and "\n" not in single:
        return [single]
    return [f"{indent}{head}", *(f"{indent}    {item}," for item in items), f"{indent}{tail}"]


def _render_docstring(text: str, indent: str) -> list[str]:
    safe = text.replace("\\", "\\\\").replace('"', "'") or "…"
    if len(indent) + len(safe) + 6 <= WIDTH:
        return [f'{indent}"""{safe}"""']
    # Narrower, so that there are two lines at least: formatters join what would fit on one.
    first, *rest = textwrap.wrap(safe, WIDTH - len(indent) - 12, break_on_hyphens=False)
    return [f'{indent}"""{first}', *(indent + line for line in rest), f'{indent}"""']
