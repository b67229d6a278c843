"""Rules that compare what a tool declares with the operation that it calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.bundle.apispec import Operation, SecurityScheme
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.verbs import is_creation
from sandbox.injection import MAX_READ, find_instruction
from sandbox.stages.contract.places import ArgumentPlace, find_places
from sandbox.stages.static.definitions import (
    Found,
    Rule,
    iterate_calls,
    iterate_pairs,
    iterate_texts,
)
from sandbox.wire.policy import list_granted_hosts, list_token_origins, parse_template_origin

_REPEATABLE = frozenset({"PUT", "DELETE"})
"""Methods of writes that are idempotent (RFC 9110, section 9.2.2)."""
_UNREAD = frozenset({"description", "pattern", "title", "x-in"})
"""Keywords whose texts other rules check, or that hold no texts."""
_SECRET = re.compile(
    r"(?:^|_)(?:api_?key|key|token|secret|password|passwd|credentials?|auth)(?:$|_)", re.IGNORECASE
)
_HANDED_ON = re.compile(
    r"\b(?:always|must|every\s(?:call|time))\b[^.\n]{0,20}\b(?:pass|send|include|give|provide|supply)"
    r"|\b(?:pass|send|include|give|provide|supply)\b[^.\n]{0,20}\b(?:always|every\s(?:call|time))\b"
    r"|\byour\s(?:own\s)?(?:api[\s_-]?key|token|credentials?|password)\b|\benviron",
    re.IGNORECASE,
)
_ROUTE = re.compile(r"\b(GET|PUT|POST|DELETE|PATCH|HEAD|OPTIONS) (/[^\s,;]*)")


def understated_destruction(bundle: Bundle) -> Found:
    """A tool that can destroy is declared as one that only adds."""
    for tool, operation in (*iterate_pairs(bundle), *iterate_calls(bundle)):
        adds = is_creation(operation.method.upper(), operation.id, operation.summary)
        if operation.access == "write" and not tool.destructive and not adds:
            yield f"{tool.name}/destructive", f"{operation.method} {operation.path[:120]}"


def overstated_idempotence(bundle: Bundle) -> Found:
    """A write that may not be repeated is declared as idempotent."""
    for tool, operation in (*iterate_pairs(bundle), *iterate_calls(bundle)):
        repeatable = operation.access == "read" or operation.method.upper() in _REPEATABLE
        if tool.idempotent and not repeatable:
            yield f"{tool.name}/idempotent", f"{operation.method} {operation.path[:120]}"


def other_security(bundle: Bundle) -> Found:
    """A tool asks for other credentials than its operation."""
    for tool, operation in (*iterate_pairs(bundle), *iterate_calls(bundle)):
        own, wanted = _to_alternatives(tool.security), _to_alternatives(operation.security)
        if own != wanted:
            said = " or ".join("+".join(names) or "none" for names in operation.security)
            yield f"{tool.name}/security", f"the operation wants {said[:120] or 'none'}"


def _to_alternatives(security: tuple[tuple[str, ...], ...]) -> set[frozenset[str]]:
    return {frozenset(names) for names in security}


def other_credential(bundle: Bundle) -> Found:
    """A credential is missing, or goes elsewhere than the API reads it."""
    declared = {credential.name: credential for credential in bundle.credentials}
    schemes: Mapping[str, SecurityScheme] = {
        scheme.name: scheme for scheme in (bundle.spec.security_schemes if bundle.spec else ())
    }
    called = (*iterate_pairs(bundle), *iterate_calls(bundle))
    used = {name for _, operation in called for alt in operation.security for name in alt}
    for name in sorted(used & schemes.keys()):
        scheme, own = schemes[name], declared.get(name)
        if own is None:
            yield "credentials", f"{name[:80]} is not declared"
        elif scheme.kind == own.kind == "apiKey" and (own.location, own.parameter) != (
            scheme.location,
            scheme.parameter,
        ):
            place = f"{scheme.location} {scheme.parameter}"
            yield "credentials", f"{name[:80]} belongs into {place[:120]}"


def needless_host(bundle: Bundle) -> Found:
    """A host is permitted that nothing in the bundle asks for."""
    if bundle.spec is None:
        return
    urls = [request.url for tool in bundle.tools for request in tool.requests]
    needed = {parse_template_origin(url) for url in urls}
    needed |= list_token_origins(bundle.credentials)
    names = {name for o in needed if o for name in (o.host, f"{o.host}:{o.port}")}
    for host in sorted(list_granted_hosts(bundle) - names):
        yield "permissions", host[:120]


def other_requirement(bundle: Bundle) -> Found:
    """An argument is required that its operation does without, or the other way round."""
    for tool, operation in iterate_pairs(bundle):
        needed = set(tool.input_schema.get("required", ()))
        for name, place in find_places(tool).items():
            wanted = _is_required(operation, place)
            if wanted is not None and wanted != (name in needed):
                says = "is required" if wanted else "is not required"
                yield f"{tool.name}/input_schema/required", f"{name}: {place} {says}"


def _is_required(operation: Operation, place: ArgumentPlace) -> bool | None:
    if place.location == "body":
        return operation.body.required if operation.body else None
    found = (p for p in operation.parameters if ArgumentPlace(p.location, p.name) == place)
    return next((parameter.required for parameter in found), None)


def open_input(bundle: Bundle) -> Found:
    """A tool takes arguments that it does not name."""
    for tool, _ in iterate_pairs(bundle):
        if tool.input_schema.get("additionalProperties", True) is not False:
            yield f"{tool.name}/input_schema", "additionalProperties is not false"


def other_route(bundle: Bundle) -> Found:
    """A description tells of another tool's request and not of its own."""
    routes = {
        tool.name: set(_list_routes(tool, operation)) for tool, operation in iterate_pairs(bundle)
    }
    known = set().union(*routes.values())
    for tool, _ in iterate_pairs(bundle):
        told = {(method, path.rstrip(".")) for method, path in _ROUTE.findall(tool.description)}
        if told & known and not told & routes[tool.name]:
            method, path = min(told & known)
            yield f"{tool.name}/description", f"{method} {path[:120]}"


def _list_routes(tool: ToolDefinition, operation: Operation) -> Iterator[tuple[str, str]]:
    for path in (operation.path, operation.written, tool.path):
        if path:
            yield operation.method.upper(), path.rstrip(".")


def instructions(bundle: Bundle) -> Found:
    """A text that a model reads tells it what to do."""
    for tool in bundle.tools:
        for where, text in (*iterate_texts(tool), *_iterate_values(tool.input_schema)):
            found = find_instruction(text)
            if found:
                yield f"{tool.name}/{where}", repr(found)


def _iterate_values(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names of arguments and the values that a schema shows: a model reads those as well."""
    pending: list[tuple[str, Any]] = [("input_schema", schema)]
    while pending:
        where, node = pending.pop()
        if isinstance(node, str):
            yield where, node
        elif isinstance(node, Mapping):
            for key, value in node.items():
                if " " in key or "_" in key:
                    yield f"{where}/{key}", key.replace("_", " ")
                if key not in _UNREAD:
                    pending.append((f"{where}/{key}", value))
        elif isinstance(node, list):
            pending += [(f"{where}/{at}", item) for at, item in enumerate(node)]


def needless_secret(bundle: Bundle) -> Found:
    """A tool that calls no API asks for a secret of whoever calls it."""
    for tool in bundle.tools if bundle.launch is None else ():
        if tool.requests or tool.operation:
            continue
        for where, name, schema in _iterate_arguments(tool.input_schema):
            told = schema.get("description", "") if isinstance(schema, Mapping) else ""
            found = _HANDED_ON.search(str(told), 0, MAX_READ) if _SECRET.search(name) else None
            if found:
                yield f"{tool.name}/{where}", f"{name[:80]}: {found[0][:120]!r}"


def _iterate_arguments(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The arguments of a tool and those within: where, the name, its schema."""
    pending: list[tuple[str, Any]] = [("input_schema", schema)]
    while pending:
        where, node = pending.pop()
        if isinstance(node, Mapping):
            properties = node.get("properties")
            for name, part in properties.items() if isinstance(properties, Mapping) else ():
                yield f"{where}/properties/{name}", name, part
            pending += [(f"{where}/{key}", value) for key, value in node.items()]
        elif isinstance(node, list):
            pending += [(f"{where}/{at}", item) for at, item in enumerate(node)]


RULES: tuple[Rule, ...] = (
    understated_destruction,
    overstated_idempotence,
    other_security,
    other_credential,
    needless_host,
    other_requirement,
    open_input,
    other_route,
    instructions,
    needless_secret,
)
