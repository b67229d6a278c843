"""`server.py`: the source of a server, one short function per tool.

Nothing of a document reaches the source but as a string literal, a docstring without quotes or
escapes, or a name that `forge.naming` made.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from forge.annotations import annotation
from forge.design import ServerSpec, ToolSpec, constant
from forge.fields import Wrapper, wrappers
from forge.media import DEFAULT_TYPES, bare, is_json
from forge.naming import API, PAGES, STYLES
from forge.projection import target
from forge.prose import visible
from forge.toolschemas import Argument, BodyArgument
from forge.xmlbody import hint, root_name
from sandbox.apispec import Operation, Parameter, Schema
from sandbox.bundle import Paging
from sandbox.graphql import kind_of

WIDTH = 88
_WORD = re.compile(r"\w+")
_DELIMITED = {"spaceDelimited": "ssv", "pipeDelimited": "pipes", "tabDelimited": "tsv"}
_PREFIXED = frozenset({"label", "matrix"})
_FIRST = {"page": 1}
"""The first page's number where the code does not say one."""
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})


def render(server: ServerSpec) -> str:
    """The source for the runtime of docs/runtime-protocol.md, section 4."""
    functions = ["\n".join(_function(tool, server)) for tool in server.tools]
    used = _used(functions)
    count = f"{len(server.tools)} operation{'s' if len(server.tools) != 1 else ''}"
    head = _docstring(f"{server.title}: {count}, compiled from {server.api.source}.", "")
    lines = [*head, "", "from __future__ import annotations", ""]
    if "Any" in used:
        lines += ["from typing import Any", ""]
    for module, names in (
        ("toolwright", ("UNSET", "Answer", "Unset", "graphql", "http", "tool")),
        ("toolwright.pages", PAGES),
        ("toolwright.styles", STYLES),
    ):
        lines += _import(module, used & set(names))
    return "\n\n\n".join(["\n".join(lines), *functions]) + "\n"


def _used(functions: Iterable[str]) -> set[str]:
    """The names of the API that the functions use; a word in a string is no use."""
    found: set[str] = set()
    for text in functions:
        if not found.issuperset(API.intersection(_WORD.findall(text))):
            tree = ast.parse(text)
            found |= API & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found


def literal(value: str | int | float) -> str:
    """A Python literal, a string in double quotes where that needs no escape."""
    if not isinstance(value, str) or '"' in value:
        return repr(value)
    # repr() takes double quotes for a text with an apostrophe; the one put in front is cut off.
    return '"' + repr("'" + value)[2:]


def _import(module: str, names: Collection[str]) -> list[str]:
    if not names:
        return []
    ordered = sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
    single = f"from {module} import {', '.join(ordered)}"
    return (
        [single] if len(single) <= WIDTH else _listed(f"from {module} import (", ordered, ")", "")
    )


def _function(tool: ToolSpec, server: ServerSpec) -> list[str]:
    body, definition = tool.body, tool.definition
    needed = [_typed(a.name, tool) for a in tool.arguments if a.parameter.required]
    optional = [_optional(a.name, tool) for a in tool.arguments if not a.parameter.required]
    if body is not None and body.required:
        needed.append(_typed(body.name, tool))
    elif body is not None:
        optional.append(_optional(body.name, tool))
    if tool.pager:
        optional.append(_optional(tool.pager, tool))
    text = tool.operation.summary or definition.title or tool.operation.id
    fields = _fields(body, server.api.schemas) if body is not None else []
    return [
        *_constant(tool),
        "@tool",
        *_listed(f"def {definition.name}(", [*needed, *optional], ") -> Answer:", ""),
        *_docstring(visible(text, 300), "    "),
        *(_replaced(body, fields) if body is not None and not body.required else []),
        *_request(tool, server, fields),
    ]


def _constant(tool: ToolSpec) -> list[str]:
    """The GraphQL document of the function below, which has nothing in it that needs an escape."""
    if not tool.operation.document:
        return []
    return [*f'{_document_name(tool)} = """\\\n{tool.operation.document}"""'.split("\n"), "", ""]


def _document_name(tool: ToolSpec) -> str:
    kind = kind_of(tool.operation.document) or "document"
    return f"{tool.definition.name}_{kind}".upper()


def _typed(name: str, tool: ToolSpec) -> str:
    takes = tool.definition.input_schema
    return f"{name}: {annotation(takes['properties'][name], takes.get('$defs', {}))}"


def _optional(name: str, tool: ToolSpec) -> str:
    typed = _typed(name, tool)
    if typed.endswith(" | None"):
        return f"{typed.removesuffix(' | None')} | Unset | None = UNSET"
    return f"{typed} | Unset = UNSET"


def _request(tool: ToolSpec, server: ServerSpec, fields: list[str]) -> list[str]:
    operation = tool.operation
    is_relative = operation.server == server.base_url
    route = operation.path if is_relative else operation.url
    if operation.document:
        return _asked(tool, route)
    written = [[f"        {literal(operation.method)},"], [f"        {literal(route)},"]]
    for location in ("path", "query", "header", "cookie"):
        here = [a for a in tool.arguments if a.parameter.location == location]
        pairs = [f"{literal(a.parameter.name)}: {_value(a, server.api.schemas)}" for a in here]
        fixed = [p for p in tool.constants if p.location == location]
        pairs += [f"{literal(p.name)}: {literal(constant(p) or '')}" for p in fixed]
        if pairs:
            written.append(_listed(f"{location}={{", pairs, "},", "        "))
    if tool.body is not None:
        written += _body(tool.body, fields, server.api.schemas)
    accepted = _accepted(operation)
    if accepted:
        written.append([f"        accept={literal(accepted)},"])
    if tool.pager and tool.definition.paging:
        written.append(_pages(tool.definition.paging))
        written.append([f"        max_items={tool.pager},"])
    return _call(written)


def _asked(tool: ToolSpec, route: str) -> list[str]:
    """`return graphql.request(…)` with the arguments as variables."""
    pairs = [f"{literal(a.parameter.name)}: {a.name}" for a in tool.arguments]
    given = [literal(route), _document_name(tool)]
    single = ", ".join([*given, f"{{{', '.join(pairs)}}}"] if pairs else given)
    if len(single) + 28 <= WIDTH:
        return [f"    return graphql.request({single})"]
    lines = [f"        {item}," for item in given]
    return [
        "    return graphql.request(",
        *lines,
        *(_listed("{", pairs, "},", "        ") if pairs else ()),
        "    )",
    ]


def _pages(paging: Paging) -> list[str]:
    """A call of `toolwright.pages` with what the style needs."""
    given = [literal(paging.parameter)] if paging.parameter else []
    if paging.next:
        given.append(f"{'item' if paging.style == 'id' else 'next'}={literal(paging.next)}")
    given.append(f"items={literal(paging.items)}")
    if paging.first != _FIRST.get(paging.style, 0):
        given.append(f"first={paging.first}")
    if paging.more:
        given.append(f"more={literal(paging.more)}")
    single = _listed(f"pages=by_{paging.style}(", given, "),", "        ")
    if len(single) == 1:
        return single
    return [single[0], f"            {', '.join(given)}", single[-1]]


def _accepted(operation: Operation) -> str:
    """What to ask for where no success is JSON, the runtime's own preference."""
    kinds = [
        content.type
        for response in operation.responses
        if response.status.startswith("2")
        for content in response.content
    ]
    plain = dict.fromkeys(visible(kind, 100) for kind in kinds)
    return "" if any(is_json(kind) or kind == "*/*" for kind in plain) else ", ".join(plain)[:300]


def _call(arguments: list[list[str]]) -> list[str]:
    """`return http.request(…)` on one line where that is short, else an argument a line."""
    short = ", ".join(lines[0].strip().removesuffix(",") for lines in arguments)
    single = f"    return http.request({short})"
    if all(len(lines) == 1 for lines in arguments) and len(single) <= WIDTH:
        return [single]
    return ["    return http.request(", *(line for lines in arguments for line in lines), "    )"]


def _value(argument: Argument, schemas: Mapping[str, Schema]) -> str:
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
        value = _styled(parameter, value)
    return f"raw({value})" if parameter.allow_reserved else value


def _styled(parameter: Parameter, value: str) -> str:
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
    """Whether style and explode cannot matter: the value is neither array nor object."""
    kinds = target(parameter.schema, schemas).get("type", "object")
    return _SCALARS.issuperset([kinds] if isinstance(kinds, str) else kinds)


def _body(body: BodyArgument, fields: list[str], schemas: Mapping[str, Schema]) -> list[list[str]]:
    if fields and body.required:
        written = [_listed(f"{body.kind}={{", fields, "},", "        ")]
    elif body.kind == "lines":
        function = "json_sequence" if "json-seq" in body.media.type else "json_lines"
        written = [[f"        text={function}({body.name}),"]]
    elif body.kind == "xml":
        written = [_markup(body, schemas)]
    else:
        written = [[f"        {body.kind}={body.name},"]]
    kind = bare(body.media.type)
    if "*" not in kind and kind != DEFAULT_TYPES[body.kind]:
        written.append([f"        content_type={literal(visible(body.media.type, 200))},"])
    return written


def _markup(body: BodyArgument, schemas: Mapping[str, Schema]) -> list[str]:
    """`text=xml_text(…)` with what differs from the plain form as a literal."""
    schema = True if body.media.schema is None else body.media.schema
    arguments = [body.name, literal(root_name(schema, schemas))]
    told = hint(schema, schemas)
    if told:
        arguments.append(_data(told, " " * 12))
    return _listed("text=xml_text(", arguments, "),", "        ")


def _data(value: Any, indent: str) -> str:
    """Nested mappings of scalars as a literal, one member a line where one line is too short."""
    if not isinstance(value, Mapping):
        return literal(value)
    members = [f"{literal(k)}: {_data(v, indent + '    ')}" for k, v in value.items()]
    single = f"{{{', '.join(members)}}}"
    if len(indent) + len(single) < WIDTH and "\n" not in single:
        return single
    return "\n".join(["{", *(f"{indent}    {member}," for member in members), f"{indent}}}"])


def _replaced(body: BodyArgument, fields: list[str]) -> list[str]:
    """The statement that wraps the fields of a body that may be absent."""
    if not fields:
        return []
    head = f"{body.name} = {{"
    return [f"    if not isinstance({body.name}, Unset):", *_listed(head, fields, "}", "        ")]


def _fields(body: BodyArgument, schemas: Mapping[str, Schema]) -> list[str]:
    if body.kind not in ("form", "multipart"):
        return []
    wrapped = wrappers(body.media, schemas)
    pairs = [
        _wrapped(literal(name), wrapper, f"{body.name}.get({literal(name)}, UNSET)")
        for name, wrapper in wrapped.items()
    ]
    return [f"**{body.name}", *pairs] if pairs else []


def _wrapped(key: str, wrapper: Wrapper, value: str) -> str:
    """A member of the body's fields, its call's arguments on a line of their own where that is
    long.
    """
    named = [f"{name}={literal(text)}" for name, text in wrapper.arguments.items()]
    inner, indent = ", ".join([value, *named]), " " * 12
    single = f"{key}: {wrapper.function}({inner})"
    if len(indent) + len(single) < WIDTH:
        return single
    return f"{key}: {wrapper.function}(\n{indent}    {inner}\n{indent})"


def _listed(head: str, items: list[str], tail: str, indent: str) -> list[str]:
    """`head item, item tail` on one line, or an item a line where that is too long."""
    single = f"{indent}{head}{', '.join(items)}{tail}"
    if len(single) <= WIDTH and "\n" not in single:
        return [single]
    return [f"{indent}{head}", *(f"{indent}    {item}," for item in items), f"{indent}{tail}"]


def _docstring(text: str, indent: str) -> list[str]:
    safe = text.replace("\\", "\\\\").replace('"', "'") or "…"
    if len(indent) + len(safe) + 6 <= WIDTH:
        return [f'{indent}"""{safe}"""']
    # Narrower, so that there are two lines at least: formatters join what would fit on one.
    first, *rest = textwrap.wrap(safe, WIDTH - len(indent) - 12, break_on_hyphens=False)
    return [f'{indent}"""{first}', *(indent + line for line in rest), f'{indent}"""']
