"""Rules on the tool definitions, on their own and against the code and the API."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sandbox.bundle.apispec import Operation
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle, RequestPattern, ToolDefinition
from sandbox.bundle.permissions import READING, is_permission_request
from sandbox.bundle.source import FunctionNode, ParsedSource
from sandbox.injection import BEFORE_CALLS, IGNORING, ROLE, SECRETS
from sandbox.schemas.wellformed import find_schema_problems
from sandbox.stages.contract.places import ArgumentPlace, check_claims
from sandbox.wire.graphql import classify_document
from sandbox.wire.policy import COMPILER, list_granted_hosts, parse_template_origin

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
        for key, schema in _list_schemas(tool):
            for where, reason in find_schema_problems(schema):
                yield f"{tool.name}/{key}{where}", reason


def _list_schemas(tool: ToolDefinition) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return ("input_schema", tool.input_schema), ("output_schema", tool.output_schema)


def hidden_text(bundle: Bundle) -> Found:
    """A text that a model reads holds characters that a person cannot see."""
    for tool in bundle.tools:
        for where, text in iterate_texts(tool):
            hidden = find_hidden_characters(text)
            if hidden:
                yield f"{tool.name}/{where}", hidden


def iterate_texts(tool: ToolDefinition) -> Iterator[tuple[str, str]]:
    """The texts of a tool that a model reads, each with its pointer."""
    yield from (("name", tool.name), ("title", tool.title), ("description", tool.description))
    for key, schema in _list_schemas(tool):
        for where, text in _iterate_prose(schema):
            yield f"{key}{where}", text


def find_hidden_characters(text: str) -> str:
    """The invisible and control characters of a text, by code point; "" where there are none."""
    if text.isascii() and text.isprintable():
        return ""
    found = {
        f"U+{ord(letter):04X}"
        for letter in text
        if unicodedata.category(letter) in _INVISIBLE and letter not in _VISIBLE_CONTROLS
    }
    return ", ".join(sorted(found)[:8])


def _iterate_prose(schema: Any) -> Iterator[tuple[str, str]]:
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
    hosts = list_granted_hosts(bundle)
    for tool in bundle.tools:
        for request in tool.requests:
            origin = parse_template_origin(request.url)
            if is_permission_request(request):
                if request.url not in bundle.permissions:
                    yield f"{tool.name}/requests", f"{request.url[:120]} is not permitted"
            elif origin is None:
                yield f"{tool.name}/requests", f"{request.url[:120]} is no http or https URL"
            elif not {origin.host, f"{origin.host}:{origin.port}"} & hosts:
                yield f"{tool.name}/requests", f"{origin} is not permitted"


def unknown_operation(bundle: Bundle) -> Found:
    """A tool names an operation that the API does not have."""
    known = _map_operations(bundle)
    for tool in bundle.tools:
        if tool.operation and tool.operation not in known:
            yield f"{tool.name}/operation", tool.operation[:120]


def unproved_request(bundle: Bundle) -> Found:
    """A tool asks for the network without an operation that it could be proved against."""
    known = {_build_own_request(operation) for operation in _map_operations(bundle).values()}
    if bundle.provenance.author == COMPILER:
        known = set()  # What is compiled is one operation a tool; it has no cases to be proved by.
    for tool in find_programs(bundle):
        for request in tool.requests:
            if not is_permission_request(request) and _to_bare_request(request) not in known:
                yield f"{tool.name}/requests", f"{request.method} {request.url[:120]}"
                break


def other_request(bundle: Bundle) -> Found:
    """A tool declares requests other than its operation's own."""
    for tool, operation in iterate_pairs(bundle):
        own = _build_own_request(operation)
        declared = list(map(_to_bare_request, tool.requests))
        if declared != [own]:
            said = ", ".join(f"{r.method} {r.url}" for r in declared)[:160] or "none"
            yield f"{tool.name}/requests", f"{said}; the operation is {own.method} {own.url[:120]}"


def _build_own_request(operation: Operation) -> RequestPattern:
    return RequestPattern(operation.method.upper(), _strip_query(operation.url), operation.document)


def _to_bare_request(request: RequestPattern) -> RequestPattern:
    return RequestPattern(request.method, _strip_query(request.url), request.document)


def _strip_query(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def understated_access(bundle: Bundle) -> Found:
    """A tool that writes is declared as one that reads."""
    for tool, operation in (*iterate_pairs(bundle), *iterate_calls(bundle)):
        if tool.access == "read" and operation.access == "write":
            yield f"{tool.name}/access", f"{operation.id} is a write"


def unsafe_read(bundle: Bundle) -> Found:
    """A tool with a request that may write is declared as one that reads."""
    for tool in bundle.tools:
        for request in tool.requests if tool.access == "read" else ():
            if is_permission_request(request) and request.method in READING:
                continue
            if (
                request.method.upper() not in _SAFE_METHODS
                and classify_document(request.document) != "query"
            ):
                yield f"{tool.name}/access", f"{request.method} {request.url[:120]}"


def wrong_places(bundle: Bundle) -> Found:
    """The arguments and the operation's parameters do not correspond."""
    for tool, operation in iterate_pairs(bundle):
        named = {name for alternative in operation.security for name in alternative}
        filled = [
            place for c in bundle.credentials if c.name in named for place in _find_filled_places(c)
        ]
        for problem in check_claims(tool, operation, frozenset(filled)):
            yield f"{tool.name}/input_schema", problem


def _find_filled_places(credential: Credential) -> Iterator[ArgumentPlace]:
    """The places that the broker fills for a credential."""
    if credential.kind == "apiKey":
        yield ArgumentPlace(credential.location, credential.parameter)
    for place in credential.places:
        yield ArgumentPlace(place.location, place.parameter)


def _map_operations(bundle: Bundle) -> dict[str, Operation]:
    return {operation.id: operation for operation in bundle.spec.operations} if bundle.spec else {}


def iterate_pairs(bundle: Bundle) -> Iterator[tuple[ToolDefinition, Operation]]:
    """The tools that call an operation of the spec, with it."""
    known = _map_operations(bundle)
    for tool in bundle.tools:
        if tool.operation in known:
            yield tool, known[tool.operation]


def find_programs(bundle: Bundle) -> tuple[ToolDefinition, ...]:
    """The tools whose own code makes requests, without being one operation of the API."""
    return tuple(
        tool
        for tool in bundle.tools
        if not tool.operation and not all(map(is_permission_request, tool.requests))
    )


def iterate_calls(bundle: Bundle) -> Iterator[tuple[ToolDefinition, Operation]]:
    """The tools whose own code makes requests, with each operation of the spec that these are."""
    operations = _map_operations(bundle).values()
    for tool in find_programs(bundle):
        asked = set(map(_to_bare_request, tool.requests))
        yield from ((tool, o) for o in operations if _build_own_request(o) in asked)


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


def mismatches(source: ParsedSource, bundle: Bundle) -> Iterator[tuple[int, str]]:
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
            for problem in _check_parameters(functions[name].args, tool.input_schema):
                yield functions[name].lineno, f"{name}: {problem}"


def _check_parameters(arguments: ast.arguments, schema: Mapping[str, Any]) -> Iterator[str]:
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


MAX_TEXT = 100_000
_WORDS = re.IGNORECASE | re.DOTALL
_ORDERS = {
    "pretends to be markup that a model obeys": re.compile(
        r"<\s*+/?\s*+(?:important|system|secret|hidden|instructions?|assistant|admin)\s*+>", _WORDS
    ),
    "tells a model to ignore what it was told": re.compile(
        r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|other|all|"
        r"any|system|user'?s?)\b.{0,40}\b(?:instructions?|rules|prompts?|messages?|guidelines|"
        r"directions)\b",
        _WORDS,
    ),
    "tells a model to keep something from the user": re.compile(
        r"\b(?:do not|don't|never|must not|without)\s+(?:ever\s+)?(?:tell|mention|inform|"
        r"notify|reveal|alert|ask)(?:ing)?\b"
        r".{0,60}\b(?:user|human|operator)\b",
        _WORDS,
    ),
    "gives orders about other tools": re.compile(
        r"\b(?:before|after|when(?:ever)?|instead of)\s+(?:you\s+)?(?:using|calling|use|call)"
        r"\s+(?:this|any|every|all|other|another|the other)\b.{0,80}\b(?:must|always|first|also)\b",
        _WORDS,
    ),
    "asks for secrets or for the conversation": re.compile(
        r"\b(?:read|open|send|include|attach|pass|copy|provide|append|cat|put|paste)\b.{0,80}"
        r"(?:~/\.|\.ssh\b|\bid_(?:rsa|ed25519)\b|\.aws/|\bmcp\.json|\.cursor/|/etc/passwd"
        r"|\bsystem prompt|\b(?:conversation|chat) history|\bprevious messages)",
        _WORDS,
    ),
    "pretends to be a turn of the conversation": ROLE,
    "tells a model to do otherwise than it was told": IGNORING,
    "gives orders for every call": BEFORE_CALLS,
    "asks for a secret of whoever calls": SECRETS,
    "holds encoded text that nobody reads": re.compile(r"[A-Za-z0-9+/_-]{400,}={0,2}"),
    "holds an image, which sends what it is asked for": re.compile(
        r"!\[(?:(?!!\[)[^\]])*+\]\(\s*+\w+:"
    ),
}


def find_orders(text: str) -> str:
    """The problem with a text that gives a model orders; "" where there is none."""
    for told, pattern in _ORDERS.items():
        found = pattern.search(text[:MAX_TEXT])
        if found:
            return f"it {told}: {' '.join(found[0].split())[:120]!r}"
    return ""


def orders(bundle: Bundle) -> Iterator[tuple[str, str]]:
    """A tool's definition gives a model orders."""
    for tool in bundle.tools:
        for where, text in (
            ("title", tool.title),
            ("description", tool.description),
            *(
                ("input_schema" + place, text)
                for place, text in _iterate_all_texts(tool.input_schema)
            ),
            *(
                ("output_schema" + place, text)
                for place, text in _iterate_all_texts(tool.output_schema)
            ),
        ):
            problem = find_orders(text)
            if problem:
                yield f"{tool.name}/{where}", problem


def _iterate_all_texts(schema: Any) -> Iterator[tuple[str, str]]:
    """Every text of a schema, names and values: a model reads all of it."""
    pending: list[tuple[str, Any]] = [("", schema)]
    while pending:
        where, node = pending.pop()
        if isinstance(node, str):
            yield where, node
        elif isinstance(node, Mapping):
            for key, value in node.items():
                yield f"{where}/{key}"[:200], key
                pending.append((f"{where}/{key}"[:200], value))
        elif isinstance(node, list):
            pending += [(f"{where}/{at}", item) for at, item in enumerate(node)]
