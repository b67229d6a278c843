"""A third-party server's `tools/list`, read as hostile text into definitions of ours."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.apispec import Access
from sandbox.bundle import NAME, ToolDefinition
from sandbox.cleantext import clean_json, clean_text
from sandbox.launch import RemoteTool
from sandbox.report import Finding
from sandbox.static.schemas import schema_problems

MAX_NAME = 40
MAX_ORIGINAL = 200
MAX_TITLE = 200
MAX_DESCRIPTION = 20_000
MAX_SCHEMA = 256 * 1024
MAX_DEPTH = 64
OPEN: Mapping[str, Any] = {"type": "object"}

READING = frozenset(
    "check count describe echo explain fetch find get has head info inspect is list lookup preview "
    "query read resolve search show stat status summarize tail tree validate verify view".split()
)
WRITING = frozenset(
    "add append apply approve archive assign book buy call cancel clear close commit convert copy "
    "create delete deploy destroy disable drop edit enable eval evaluate exec execute fill fork "
    "grant import insert install invite invoke kill launch lock merge modify move open order patch "
    "pay post publish purge push put register release remove rename replace reply reset restart "
    "restore revert revoke run save send set share sign start stop store submit subscribe sync "
    "terminate toggle transfer trigger uninstall unlock update upload upsert write".split()
)
"""A tool reads where it says so, its name begins with a reading verb, and none in it writes."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[^a-z0-9]+")
_DIALECT = frozenset({"$schema", "$id", "$comment"})
_RENAMED = {"definitions": "$defs"}
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_HELD = frozenset(
    "additionalProperties allOf anyOf contains else if items not oneOf prefixItems propertyNames "
    "then unevaluatedItems unevaluatedProperties".split()
)


@dataclass(frozen=True)
class Listing:
    """The tools that can be used, and how their server calls each; the problems of the rest; the
    pins of all.
    """

    tools: tuple[ToolDefinition, ...]
    remote: tuple[RemoteTool, ...]
    pins: Mapping[str, str]
    problems: tuple[Finding, ...] = ()


def read_listing(
    listed: Sequence[Mapping[str, Any]],
    *,
    reads: Collection[str] = (),
    writes: Collection[str] = (),
    clean: bool = True,
) -> Listing:
    """The definitions of a `tools/list`, in its order.

    `reads` and `writes` are the server's names of tools that a person classified; of all others,
    whatever is doubtful is a write. Without `clean`, texts are as they were sent, for whoever
    judges them. A tool whose name or schema cannot be used is left out, and said to be.
    """
    tools: list[ToolDefinition] = []
    remote: list[RemoteTool] = []
    problems: list[Finding] = []
    for number, tool in enumerate(listed):
        problem = _problem(tool, {made.original for made in remote})
        if problem:
            where = clean_text(str(tool.get("name", number)))[:MAX_NAME]
            problems.append(Finding("tools/list", where, *problem))
            continue
        original = tool["name"]
        access = access_of(tool, reads, writes)
        made = _definition(tool, _free(original, {other.name for other in tools}), access, clean)
        tools.append(made)
        checked = isinstance(tool.get("outputSchema"), Mapping)
        remote.append(RemoteTool(made.name, original, checked))
    pins = {str(tool.get("name")): definition_digest(tool) for tool in listed}
    return Listing(tuple(tools), tuple(remote), pins, tuple(problems))


def definition_digest(tool: Mapping[str, Any]) -> str:
    """sha256 (hex) of a definition as listed: all of it but `_meta`, which nobody is shown."""
    kept = {key: value for key, value in tool.items() if key != "_meta"}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def changes(pins: Mapping[str, str], listed: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What differs from the pinned definitions, in words; empty where nothing does."""
    now: dict[str, str] = {}
    twice: set[str] = set()
    for tool in listed:
        name = str(tool.get("name"))
        if name in now:
            twice.add(name)
        now[name] = definition_digest(tool)
    differing = {name for name in pins.keys() & now.keys() if pins[name] != now[name]}
    told = [
        *(f"{name} is listed twice" for name in sorted(twice)),
        *(f"{name} is new" for name in sorted(now.keys() - pins.keys())),
        *(f"{name} is gone" for name in sorted(pins.keys() - now.keys())),
        *(f"{name} was changed" for name in sorted(differing)),
    ]
    return tuple(clean_text(line)[:200] for line in told)


def access_of(
    tool: Mapping[str, Any], reads: Collection[str] = (), writes: Collection[str] = ()
) -> Access:
    """Whether a listed tool reads or writes. Its own annotations alone are not believed."""
    if tool["name"] in writes:
        return "write"
    if tool["name"] in reads:
        return "read"
    hints = tool.get("annotations")
    said = isinstance(hints, Mapping) and hints.get("readOnlyHint") is True
    denied = isinstance(hints, Mapping) and hints.get("destructiveHint") is True
    words = _snake(str(tool["name"])).split("_")
    plausible = bool(READING & set(words[:2])) and not WRITING & set(words)
    return "read" if said and plausible and not denied else "write"


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of any draft as 2020-12 says it: `definitions` are `$defs`, and the root is, where
    it does not say what it is, an object.
    """
    made: dict[str, Any] = _modern(schema, 0)
    if made.get("type") in (None, ["object"]):
        made["type"] = "object"
    return made


def _modern(node: Any, depth: int) -> Any:
    if not isinstance(node, Mapping) or depth > MAX_DEPTH:
        return node
    made = {
        _RENAMED.get(key, key): _inner(key, value, depth + 1)
        for key, value in node.items()
        if key not in _DIALECT
    }
    if isinstance(made.get("$ref"), str):
        made["$ref"] = made["$ref"].replace("#/definitions/", "#/$defs/", 1)
    if isinstance(made.get("items"), list):
        made["prefixItems"] = made.pop("items")
    for bound in ("exclusiveMinimum", "exclusiveMaximum"):
        if isinstance(made.get(bound), bool):
            del made[bound]
    return made


def _inner(key: str, value: Any, depth: int) -> Any:
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _modern(schema, depth) for name, schema in value.items()}
    if key in _HELD and isinstance(value, list):
        return [_modern(schema, depth) for schema in value]
    return _modern(value, depth) if key in _HELD else value


def _problem(tool: Mapping[str, Any], known: Collection[str]) -> tuple[str, str] | None:
    """The rule that a listed tool breaks, and how; None where it can be used."""
    name = tool.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_ORIGINAL:
        return "tool-name", "the name is no text of reasonable length"
    if name in known:
        return "tool-name", "the name is listed twice"
    for key in ("inputSchema", "outputSchema"):
        if key == "inputSchema" or tool.get(key) is not None:
            reason = _schema_problem(tool.get(key))
            if reason:
                return "invalid-schema", f"{key}: {reason}"[:300]
    return None


def _schema_problem(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "is no object"
    if len(json.dumps(schema)) > MAX_SCHEMA:
        return f"takes more than {MAX_SCHEMA} characters"
    made = plain_schema(schema)
    if made.get("type") != "object":
        return "its root is no object"
    found = next(schema_problems(made), None)
    return f"{found[0]}: {found[1]}" if found else ""


def _definition(tool: Mapping[str, Any], name: str, access: Access, clean: bool) -> ToolDefinition:
    hints = tool.get("annotations")
    hints = hints if isinstance(hints, Mapping) else {}
    title = tool.get("title") or hints.get("title")
    tidy, tidy_schema = (clean_text, clean_json) if clean else (str, lambda value: value)
    output = tool.get("outputSchema")
    return ToolDefinition(
        name=name,
        title=tidy(title)[:MAX_TITLE] if isinstance(title, str) else "",
        description=tidy(str(tool.get("description") or ""))[:MAX_DESCRIPTION],
        input_schema=tidy_schema(plain_schema(tool["inputSchema"])),
        output_schema=OPEN if output is None else tidy_schema(plain_schema(output)),
        access=access,
        idempotent=hints.get("idempotentHint") is True,
        destructive=access == "write" and hints.get("destructiveHint") is not False,
    )


def _snake(text: str) -> str:
    return _OTHER.sub("_", _CAMEL.sub("_", text).lower()).strip("_")


def _free(original: str, taken: Collection[str]) -> str:
    """A name of ours for a tool: its own in small letters, told apart from others by a number."""
    base = _snake(original)[:MAX_NAME]
    base = base if base[:1].isalpha() else f"tool_{base}"[:MAX_NAME]
    name, number = base.rstrip("_"), 1
    while name in taken or not NAME.match(name):
        number += 1
        name = f"{base[: MAX_NAME - 4].rstrip('_')}_{number}"
    return name
