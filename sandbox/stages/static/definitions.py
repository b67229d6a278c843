"""Rules on the tool definitions, on their own and against the code and the API."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sandbox.apispec import Operation
from sandbox.asked import READING, is_asked
from sandbox.bundle import Bundle, Credential, RequestPattern, ToolDefinition
from sandbox.contract.places import Place, check_claims
from sandbox.graphql import kind_of
from sandbox.policy import granted_hosts, origin_of
from sandbox.static.schemas import schema_problems
from sandbox.static.source import FunctionNode, Source

Found = Iterator[tuple[str, str]]
"""Where in `tools.json` (a tool's name and a pointer) and the detail."""
Rule = Callable[[Bundle], Found]

_VISIBLE_CONTROLS = frozenset("\n\t")
_INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "QUERY", "TRACE"})
"""RFC 9110, section 9.2.1, and draft-ietf-httpbis-safe-method-w-body."""
_PROSE = frozenset({"description", "title"})


def invalid_schema(bundle: Bundle) -> Found:
    """An input or output schema is not valid on its own."""
    for tool in bundle.tools:
        for key, schema in _schemas(tool):
            for where, reason in schema_problems(schema):
                yield f"{tool.name}/{key}{where}", reason


def _schemas(tool: ToolDefinition) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return ("input_schema", tool.input_schema), ("output_schema", tool.output_schema)


def hidden_text(bundle: Bundle) -> Found:
    """A text that a model reads holds characters that a person cannot see."""
    for tool in bundle.tools:
        for where, text in texts(tool):
            hidden = hidden_characters(text)
            if hidden:
                yield f"{tool.name}/{where}", hidden


def texts(tool: ToolDefinition) -> Iterator[tuple[str, str]]:
    """What a model reads of a tool, and where it stands."""
    yield from (("name", tool.name), ("title", tool.title), ("description", tool.description))
    for key, schema in _schemas(tool):
        for where, text in _prose(schema):
            yield f"{key}{where}", text


def hidden_characters(text: str) -> str:
    """The invisible and control characters of a text, by code point; "" where there are none."""
    if text.isascii() and text.isprintable():
        return ""
    found = {
        f"U+{ord(letter):04X}"
        for letter in text
        if unicodedata.category(letter) in _INVISIBLE and letter not in _VISIBLE_CONTROLS
    }
    return ", ".join(sorted(found)[:8])


def _prose(schema: Any) -> Iterator[tuple[str, str]]:
    """The titles and descriptions in a schema."""
    pending: list[tuple[str, Any]] = [("", schema)]
    while pending:
        where, node = pending.pop()
        if isinstance(node, Mapping):
            for key, value in node.items():
                if key in _PROSE and isinstance(value, str):
                    yield f"{where}/{key}", value
                elif isinstance(value, Mapping | list):
                    pending.append((f"{where}/{key}", value))
        elif isinstance(node, list):
            pending += [(f"{where}/{at}", item) for at, item in enumerate(node)]


def undeclared_host(bundle: Bundle) -> Found:
    """A tool asks for a host that the bundle's permissions do not name."""
    hosts = granted_hosts(bundle)
    for tool in bundle.tools:
        for request in tool.requests:
            origin = origin_of(request.url.replace("{", "").replace("}", ""))
            if is_asked(request):
                if request.url not in bundle.permissions:
                    yield f"{tool.name}/requests", f"{request.url[:120]} is not permitted"
            elif origin is None:
                yield f"{tool.name}/requests", f"{request.url[:120]} is no http or https URL"
            elif not {origin.host, f"{origin.host}:{origin.port}"} & hosts:
                yield f"{tool.name}/requests", f"{origin} is not permitted"


def unknown_operation(bundle: Bundle) -> Found:
    """A tool names an operation that the API does not have."""
    known = _operations(bundle)
    for tool in bundle.tools:
        if tool.operation and tool.operation not in known:
            yield f"{tool.name}/operation", tool.operation[:120]


def unproved_request(bundle: Bundle) -> Found:
    """A tool asks for the network without an operation that it could be proved against."""
    for tool in bundle.tools:
        sent = [request for request in tool.requests if not is_asked(request)]
        if sent and not tool.operation:
            yield f"{tool.name}/requests", f"{sent[0].method} {sent[0].url[:120]}"


def other_request(bundle: Bundle) -> Found:
    """A tool declares requests other than its operation's own."""
    for tool, operation in pairs(bundle):
        own = RequestPattern(operation.method.upper(), _bare(operation.url), operation.document)
        declared = [RequestPattern(r.method, _bare(r.url), r.document) for r in tool.requests]
        if declared != [own]:
            said = ", ".join(f"{r.method} {r.url}" for r in declared)[:160] or "none"
            yield f"{tool.name}/requests", f"{said}; the operation is {own.method} {own.url[:120]}"


def _bare(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def understated_access(bundle: Bundle) -> Found:
    """A tool that writes is declared as one that reads."""
    for tool, operation in pairs(bundle):
        if tool.access == "read" and operation.access == "write":
            yield f"{tool.name}/access", f"{operation.id} is a write"


def unsafe_read(bundle: Bundle) -> Found:
    """A tool with a request that may write is declared as one that reads."""
    for tool in bundle.tools:
        for request in tool.requests if tool.access == "read" else ():
            if is_asked(request) and request.method in READING:
                continue
            if request.method.upper() not in _SAFE_METHODS and kind_of(request.document) != "query":
                yield f"{tool.name}/access", f"{request.method} {request.url[:120]}"


def wrong_places(bundle: Bundle) -> Found:
    """The arguments and the operation's parameters do not correspond."""
    for tool, operation in pairs(bundle):
        named = {name for alternative in operation.security for name in alternative}
        filled = [place for c in bundle.credentials if c.name in named for place in _filled(c)]
        for problem in check_claims(tool, operation, frozenset(filled)):
            yield f"{tool.name}/input_schema", problem


def _filled(credential: Credential) -> Iterator[Place]:
    """The places that the broker fills for a credential."""
    if credential.kind == "apiKey":
        yield Place(credential.location, credential.parameter)
    for place in credential.places:
        yield Place(place.location, place.parameter)


def _operations(bundle: Bundle) -> dict[str, Operation]:
    return {operation.id: operation for operation in bundle.spec.operations} if bundle.spec else {}


def pairs(bundle: Bundle) -> Iterator[tuple[ToolDefinition, Operation]]:
    """The tools that call an operation of the spec, with it."""
    known = _operations(bundle)
    for tool in bundle.tools:
        if tool.operation in known:
            yield tool, known[tool.operation]


RULES: tuple[Rule, ...] = (
    invalid_schema,
    hidden_text,
    undeclared_host,
    unknown_operation,
    unproved_request,
    other_request,
    understated_access,
    unsafe_read,
    wrong_places,
)


def mismatches(source: Source, bundle: Bundle) -> Iterator[tuple[int, str]]:
    """The code's tools and the definitions do not correspond."""
    functions: dict[str, FunctionNode] = {}
    for function in source.tools:
        if function.name in functions:
            yield function.lineno, f"{function.name} is defined twice"
        functions[function.name] = function
    defined = {tool.name: tool for tool in bundle.tools}
    for name in functions.keys() - defined.keys():
        yield functions[name].lineno, f"{name} is not in tools.json"
    for name, tool in defined.items():
        if name not in functions:
            yield 0, f"{name} of tools.json has no function"
        else:
            for problem in _parameters(functions[name].args, tool.input_schema):
                yield functions[name].lineno, f"{name}: {problem}"


def _parameters(arguments: ast.arguments, schema: Mapping[str, Any]) -> Iterator[str]:
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        yield "parameters must be named one by one"
    names = [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)]
    properties = set(schema.get("properties", {}))
    for name in sorted(set(names) - properties):
        yield f"the parameter {name} is not in the input schema"
    for name in sorted(properties - set(names)):
        yield f"the property {name} has no parameter"
    optional = set(arguments.args and [a.arg for a in arguments.args][-len(arguments.defaults) :])
    if not arguments.defaults:
        optional = set()
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    optional |= {argument.arg for argument, default in pairs if default is not None}
    for name in sorted(set(names) & properties - optional - set(schema.get("required", ()))):
        yield f"the parameter {name} is optional and needs a default"
