"""The class of a call: whether it does what its tool was found to do.

A tool reads by its operation's method, and by what its document says of the values that choose what
is done: a fixed `?action=list`, a word of the path, the body of a POST that a person classified.
A schema that is a claim (`sandbox.schemas.accepted`) refuses no other value. Such a value may be of
another operation: a call with it is a write, and one that no rule and no record vouches for.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

from sandbox.bundle.apispec import Schema
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.verbs import ACTS, COMMANDS, DESTROYING, find_base_verb, split_words
from sandbox.schemas.accepted import get_place, is_claim
from sandbox.schemas.keywords import parts
from sandbox.schemas.validator import get_checker
from sandbox.wire.policy import SAFE_METHODS

_CHOOSING = COMMANDS | DESTROYING | {"verb", "operation", "func", "function", "task", "mutation"}
"""Words of parameters that say what is done."""
_WRITTEN = ("query", "header", "cookie")
MAX_LOOKED_AT = 2_000


def find_other_class(bundle: Bundle, tool: ToolDefinition, arguments: Mapping[str, Any]) -> str:
    """Why a call of this tool may do something else than its document describes; "" where it does
    not, and for tools whose own schema refuses all others.
    """
    if not is_claim(bundle, tool) or _is_graphql(tool):
        return ""
    reads = tool.access == "read"
    if reads and any(request.method not in SAFE_METHODS for request in tool.requests):
        problem = get_checker(tool.input_schema).find_problem(arguments)
        return "" if problem is None else str(problem)
    claimed = tool.input_schema
    for name, part in claimed.get("properties", {}).items():
        if not isinstance(part, Mapping):
            continue
        location, sent = get_place(part)
        if name not in arguments:
            # A write without what is required may be a larger one: `dryRun`, a filter, a version.
            needed = name in claimed.get("required", ()) and location != "path"
            if needed and (not reads or is_choosing_name(sent)):
                return f"/{name} is not given"
            continue
        problem = get_checker({**part, "$defs": claimed.get("$defs", {})}).find_problem(
            arguments[name]
        )
        if problem is None:
            continue
        if _may_act(bundle, location, sent, part, claimed, arguments[name]):
            return f"/{name}{problem.where}: {problem.reason}"
    return ""


def _is_graphql(tool: ToolDefinition) -> bool:
    """Whether all that the tool sends is one document, which no argument is part of."""
    return bool(tool.requests) and all(request.document for request in tool.requests)


def _may_act(
    bundle: Bundle,
    location: str,
    sent: str,
    part: Mapping[str, Any],
    claimed: Mapping[str, Any],
    value: Any,
) -> bool:
    """Whether a value that its document does not describe may choose what is done."""
    if location == "path":
        return _has_listed(part, claimed) or _names_act(value) or _is_route(bundle, value)
    if location not in _WRITTEN:
        return location == "body"
    if isinstance(value, Mapping):
        # Its keys may stand in the request as names of parameters.
        return _names_act(value) or any(map(is_choosing_name, value))
    return is_choosing_name(sent) or (_has_listed(part, claimed) and _names_act(value))


def is_choosing_name(sent: str) -> bool:
    """Whether a parameter says what is done, by its name: `action`, `method`, `purge`."""
    return bool(_CHOOSING & {*split_words(sent)})


def _has_listed(part: Schema, claimed: Mapping[str, Any]) -> bool:
    """Whether a schema or a part of it lists the values that there are."""
    waiting, seen = [part], set[str]()
    for _ in range(MAX_LOOKED_AT):
        if not waiting:
            return False
        schema = waiting.pop()
        if not isinstance(schema, Mapping):
            continue
        if "const" in schema or "enum" in schema:
            return True
        reference = str(schema.get("$ref", ""))
        if reference and reference not in seen:
            seen.add(reference)
            waiting.append(claimed.get("$defs", {}).get(reference.removeprefix("#/$defs/"), True))
        waiting += parts(schema)
    return True


def _names_act(value: Any) -> bool:
    """Whether a value has a word that is an act's name: `delete`, `forceDelete`, `deletes`."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    words = split_words(unicodedata.normalize("NFKC", text))
    return any(word in ACTS or find_base_verb([word]) in ACTS for word in words)


def _is_route(bundle: Bundle, value: Any) -> bool:
    """Whether a value is a word of some operation's path, which would lead to that one."""
    text = str(value).lower()
    return any(
        text == piece.lower()
        for tool in bundle.tools
        for request in tool.requests
        for piece in request.url.partition("?")[0].split("/")[3:]
        if "{" not in piece
    )
