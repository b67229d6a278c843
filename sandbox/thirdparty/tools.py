"""Parsing of a third-party server's untrusted `tools/list` into tool definitions and pins."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.apispec import Access
from sandbox.bundle.launch import RemoteTool
from sandbox.bundle.model import NAME, ToolDefinition
from sandbox.bundle.report import Finding
from sandbox.sanitize import clean_json, clean_text
from sandbox.schemas.keywords import convert_held
from sandbox.schemas.wellformed import find_schema_problems

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
    "acknowledge add append apply approve archive assign book broadcast buy call cancel clear "
    "close commit consume convert copy create decrement delete deploy dequeue destroy disable "
    "drop edit enable enqueue erase eval evaluate exec execute fill flush fork grant import "
    "increment insert install invite invoke kill launch lock merge modify move notify open "
    "order patch pay post publish purge push put reboot register release remove rename replace "
    "reply reset restart restore revert revoke run save send set share shutdown sign start stop "
    "store submit subscribe sync terminate toggle transfer transmit trigger uninstall unlock "
    "unsubscribe update upload upsert wipe write".split()
)
"""A tool is taken for a read if it is annotated so, its name is of ASCII letters, one of the first
two words of it is in READING, and none is in WRITING. A letter that only looks like one of them
would hide a word.
"""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[^a-z0-9]+")
_DIALECT = frozenset({"$schema", "$id", "$comment"})
_RENAMED = {"definitions": "$defs"}


@dataclass(frozen=True)
class ToolListing:
    """The usable tools and their original names, the pins of all listed ones, and findings for
    those that cannot be used.
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
) -> ToolListing:
    """Parse the definitions of a `tools/list`, in its order.

    `reads` and `writes` are the server's names of tools that a person classified; any other is a
    write if in doubt. Without `clean`, texts stay as sent, for checks of them. A tool whose name or
    schema cannot be used is left out, with a finding.
    """
    tools: list[ToolDefinition] = []
    remote: list[RemoteTool] = []
    problems: list[Finding] = []
    for number, tool in enumerate(listed):
        problem = _find_problem(tool, {made.original for made in remote})
        if problem:
            where = clean_text(str(tool.get("name", number)))[:MAX_NAME]
            problems.append(Finding("tools/list", where, *problem))
            continue
        original = tool["name"]
        access = classify_tool_access(tool, reads, writes)
        made = _build_definition(
            tool, _choose_name(original, {other.name for other in tools}), access, clean
        )
        tools.append(made)
        checked = isinstance(tool.get("outputSchema"), Mapping)
        remote.append(RemoteTool(made.name, original, checked))
    pins = {str(tool.get("name")): digest_definition(tool) for tool in listed}
    return ToolListing(tuple(tools), tuple(remote), pins, tuple(problems))


def digest_definition(tool: Mapping[str, Any]) -> str:
    """sha256 (hex) of a definition as listed, except `_meta`, which is not passed on."""
    kept = {key: value for key, value in tool.items() if key != "_meta"}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def list_changes(pins: Mapping[str, str], listed: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The differences to the pinned definitions, in words; empty if there are none."""
    now: dict[str, str] = {}
    twice: set[str] = set()
    for tool in listed:
        name = str(tool.get("name"))
        if name in now:
            twice.add(name)
        now[name] = digest_definition(tool)
    differing = {name for name in pins.keys() & now.keys() if pins[name] != now[name]}
    told = [
        *(f"{name} is listed twice" for name in sorted(twice)),
        *(f"{name} is new" for name in sorted(now.keys() - pins.keys())),
        *(f"{name} is gone" for name in sorted(pins.keys() - now.keys())),
        *(f"{name} was changed" for name in sorted(differing)),
    ]
    return tuple(clean_text(line)[:200] for line in told)


def classify_tool_access(
    tool: Mapping[str, Any], reads: Collection[str] = (), writes: Collection[str] = ()
) -> Access:
    """The access of a listed tool. Its annotations are hints of an untrusted server (MCP, Tool
    annotations), so `readOnlyHint` counts only if the name agrees.
    """
    if tool["name"] in writes:
        return "write"
    if tool["name"] in reads:
        return "read"
    hints = tool.get("annotations")
    said = isinstance(hints, Mapping) and hints.get("readOnlyHint") is True
    denied = isinstance(hints, Mapping) and hints.get("destructiveHint") is True
    name = str(tool["name"])
    words = _to_snake_case(name).split("_")
    plausible = bool(READING & set(words[:2])) and not WRITING & set(words)
    return "read" if said and plausible and name.isascii() and not denied else "write"


def modernize_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a schema of an older draft to JSON Schema 2020-12: `definitions` become `$defs`, an
    array of `items` becomes `prefixItems`. A root without a type becomes an object.
    """
    made: dict[str, Any] = _modernize_node(schema, 0)
    if made.get("type") in (None, ["object"]):
        made["type"] = "object"
    return made


def _modernize_node(node: Any, depth: int) -> Any:
    if not isinstance(node, Mapping) or depth > MAX_DEPTH:
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key not in _DIALECT:
            name = _name_today(key, value)
            made[name] = convert_held(name, value, lambda part: _modernize_node(part, depth + 1))
    if isinstance(made.get("$ref"), str):
        made["$ref"] = made["$ref"].replace("#/definitions/", "#/$defs/", 1)
    for bound in ("exclusiveMinimum", "exclusiveMaximum"):
        if isinstance(made.get(bound), bool):
            del made[bound]
    return made


def _name_today(key: str, value: Any) -> str:
    """What 2020-12 calls a keyword of earlier drafts."""
    return "prefixItems" if key == "items" and isinstance(value, list) else _RENAMED.get(key, key)


def _find_problem(tool: Mapping[str, Any], known: Collection[str]) -> tuple[str, str] | None:
    """The rule that a listed tool breaks, and the reason; None if it can be used."""
    name = tool.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_ORIGINAL:
        return "tool-name", "the name is no text of reasonable length"
    if name in known:
        return "tool-name", "the name is listed twice"
    for key in ("inputSchema", "outputSchema"):
        if key == "inputSchema" or tool.get(key) is not None:
            reason = _find_schema_problem(tool.get(key))
            if reason:
                return "invalid-schema", f"{key}: {reason}"[:300]
    return None


def _find_schema_problem(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "is no object"
    if len(json.dumps(schema)) > MAX_SCHEMA:
        return f"takes more than {MAX_SCHEMA} characters"
    made = modernize_schema(schema)
    if made.get("type") != "object":
        return "its root is no object"
    found = next(find_schema_problems(made), None)
    return f"{found[0]}: {found[1]}" if found else ""


def _build_definition(
    tool: Mapping[str, Any], name: str, access: Access, clean: bool
) -> ToolDefinition:
    hints = tool.get("annotations")
    hints = hints if isinstance(hints, Mapping) else {}
    title = tool.get("title") or hints.get("title")
    tidy, tidy_schema = (clean_text, clean_json) if clean else (str, lambda value: value)
    output = tool.get("outputSchema")
    return ToolDefinition(
        name=name,
        title=tidy(title)[:MAX_TITLE] if isinstance(title, str) else "",
        description=tidy(str(tool.get("description") or ""))[:MAX_DESCRIPTION],
        input_schema=tidy_schema(modernize_schema(tool["inputSchema"])),
        output_schema=OPEN if output is None else tidy_schema(modernize_schema(output)),
        access=access,
        idempotent=hints.get("idempotentHint") is True,
        destructive=access == "write" and hints.get("destructiveHint") is not False,
    )


def _to_snake_case(text: str) -> str:
    return _OTHER.sub("_", _CAMEL.sub("_", text).lower()).strip("_")


def _choose_name(original: str, taken: Collection[str]) -> str:
    """An unused name for a tool: its own in snake case, with a number if it is taken."""
    base = _to_snake_case(original)[:MAX_NAME]
    base = base if base[:1].isalpha() else f"tool_{base}"[:MAX_NAME]
    name, number = base.rstrip("_"), 1
    while name in taken or not NAME.match(name):
        number += 1
        name = f"{base[: MAX_NAME - 4].rstrip('_')}_{number}"
    return name
