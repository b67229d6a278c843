"""A tool's arguments and an example, for a person whose call it refused."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import click

from orchestrator.approvals.text import escape_line
from orchestrator.cli.tools.argument_words import (
    list_alternatives,
    list_own_values,
    list_types,
    merge_properties,
    read_words,
    takes_file,
    write_words,
)
from sandbox import exactjson

MAX_NAMED = 20
MAX_WORDS = 120
MAX_DEPTH = 4
MAX_FIELDS = 200
MAX_SAMPLE = 40
MAX_OPTIONAL = 2
MAX_VALUES = 30
_TEXTS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "ann@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "uri": "https://example.org",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}
"""Texts of the formats of JSON Schema."""
_SAMPLES: dict[str, Any] = {
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


@dataclass(frozen=True)
class ArgumentNote:
    """One argument of a tool: its types in words, and its part of the input schema."""

    name: str
    types: str
    required: bool
    description: str
    schema: Any


def list_arguments(schema: Mapping[str, Any]) -> list[ArgumentNote]:
    """The arguments of a tool, those that are required first."""
    properties = schema.get("properties")
    named = properties if isinstance(properties, Mapping) else {}
    required = _list_required(schema)
    notes = [_note_argument(str(k), part, k in required, schema) for k, part in named.items()]
    return sorted(notes, key=lambda note: not note.required)


def list_fields(note: ArgumentNote, root: Mapping[str, Any]) -> list[ArgumentNote]:
    """What an argument that is an object holds, under the keys of `toolwright call` (`body.name`),
    each object before its own fields; nothing that only the API sets. At most MAX_FIELDS.
    """
    return list(islice(_walk_fields(note, root, ()), MAX_FIELDS))


def _walk_fields(
    note: ArgumentNote, root: Mapping[str, Any], above: tuple[int, ...]
) -> Iterator[ArgumentNote]:
    parts = list_alternatives(note.schema, root)
    place = id(parts[-1]) if parts else 0
    if len(above) >= MAX_DEPTH or place in above:
        return
    required = set(_find_described(note.schema, root, MAX_DEPTH))
    fields = [
        _note_argument(f"{note.name}.{name}", part, name in required, root)
        for name, part in merge_properties(parts).items()
        if not _is_read_only(part)
    ]
    for field in sorted(fields, key=lambda field: not field.required):
        yield field
        yield from _walk_fields(field, root, (*above, place))


def render_arguments(tool: str, schema: Mapping[str, Any]) -> list[str]:
    """Lines that name each argument of a tool, whether it is required, and a call that has those
    that are. The schema is a stranger's: nothing in it is invisible or without bound here.
    """
    notes = [n for each in list_arguments(schema) for n in (each, *list_fields(each, schema))]
    lines = [_render_argument(note) for note in notes[:MAX_NAMED]]
    if len(notes) > MAX_NAMED:
        lines.append(f"  … and {len(notes) - MAX_NAMED} more: toolwright show {tool}")
    call = render_example_call(tool, schema)
    return [f"{tool} takes:", *(lines or ["  nothing"]), f"For example: {call}"]


def render_example_call(
    tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any] | None = None
) -> str:
    """A command line that calls a tool with these arguments, or with samples of those that it
    requires.
    """
    given = _build_object(schema, schema, 0) if arguments is None else arguments
    words = write_words(given, schema)
    if not _is_read_as(words, schema, given):
        words = [exactjson.dumps(given).decode()]
    else:
        words = list(dict.fromkeys(_name_file(word, schema) for word in words))
    return escape_line(shlex.join(["toolwright", "call", tool, *words]))


def _name_file(word: str, schema: Mapping[str, Any]) -> str:
    """A word as it is typed: a file by its path, not by its content and its name."""
    key = word.partition("=")[0].removesuffix(":")
    holders = (key.rpartition(".")[0], key)
    return next((f"{each}=@FILE" for each in holders if takes_file(each, schema)), word)


def _is_read_as(
    words: Sequence[str], schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> bool:
    """Not so where names of arguments hold what has a meaning in words."""
    try:
        return read_words(words, schema, "") == arguments
    except click.UsageError:
        return False


def build_sample(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """A value such as a schema wants: the one that its description gives as an example, else one of
    its type.
    """
    parts = list_alternatives(schema, root)
    for about in parts:
        for key in ("examples", "enum"):
            if isinstance(about.get(key), list) and about[key]:
                return about[key][0]
        for key in ("example", "default", "const"):
            if key in about:
                return about[key]
    kinds = [kind for about in parts for kind in sorted(list_types(about))]
    kind = next((each for each in kinds if each != "null"), "")
    if kind == "object" and depth < MAX_DEPTH:
        return _build_object(_merge_object(schema, parts, root), root, depth + 1)
    if kind == "array" and depth < MAX_DEPTH:
        items = next((about["items"] for about in parts if isinstance(about.get("items"), dict)), 0)
        return [build_sample(items, root, depth + 1)] if items else []
    if kind == "string":
        return _build_text(parts)
    if kind in ("integer", "number"):
        least = next((a["minimum"] for a in parts if _is_number(a.get("minimum"))), None)
        # What stands in a path is an id, and whole also where a description calls it a number.
        if any(str(about.get("x-in", "")).startswith("path:") for about in parts):
            kind = "integer"
        return _SAMPLES[kind] if least is None or least <= 1 else least
    return _SAMPLES.get(kind, "text")


def list_values(schema: Any, root: Mapping[str, Any]) -> list[Any]:
    """The values that a schema lists, or that of a list's items does; at most MAX_VALUES."""
    parts = list_alternatives(schema, root)
    parts += [each for about in parts for each in list_alternatives(about.get("items"), root)]
    found = [v for about in parts for v in list_own_values(about) if v is not None][:MAX_VALUES]
    return list({exactjson.dumps(value): value for value in found}.values())


def _merge_object(
    schema: Any, parts: Sequence[Mapping[str, Any]], root: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The properties of all parts that apply together, else of the first alternative that has any,
    and what any part requires of these.
    """
    together = list_alternatives(schema, root, ("allOf",))
    held = [each for each in together if isinstance(each.get("properties"), Mapping)]
    held = held or [each for each in parts if isinstance(each.get("properties"), Mapping)][:1]
    properties = merge_properties(held)
    own = {*properties, *(name for each in held for name in _list_required(each))}
    required = dict.fromkeys(name for each in parts for name in _list_required(each))
    return {"properties": properties, "required": [name for name in required if name in own]}


def _build_object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Samples of the members that an object requires, and of a body that may be left out but
    requires some when it is given; of one inside a call that requires none, a few that can be set:
    an empty one would show nothing.
    """
    properties = schema.get("properties")
    named = properties if isinstance(properties, Mapping) else {}
    shown = _list_required(schema)[:MAX_NAMED]
    if not depth and "body" not in shown and _requires_fields(named.get("body"), root):
        shown.append("body")
    if not shown and depth:
        settable = (name for name, part in named.items() if not _is_read_only(part))
        shown = [str(name) for name, _ in zip(settable, range(MAX_OPTIONAL), strict=False)]
    return {name: build_sample(named.get(name), root, depth) for name in shown}


def _requires_fields(body: Any, root: Mapping[str, Any]) -> bool:
    is_body = isinstance(body, Mapping) and body.get("x-in") == "body"
    return is_body and any(_find_described(body, root, MAX_DEPTH))


def _is_read_only(schema: Any) -> bool:
    held = schema.get("anyOf") if isinstance(schema, Mapping) else None
    said = [schema, *(held if isinstance(held, list) else [])]
    return any(isinstance(each, Mapping) and each.get("readOnly") is True for each in said)


def _build_text(parts: Sequence[Mapping[str, Any]]) -> str:
    kept = str(next((about["format"] for about in parts if "format" in about), ""))
    least = next((about["minLength"] for about in parts if _is_number(about.get("minLength"))), 0)
    return _TEXTS.get(kept, "text".ljust(min(int(least), MAX_SAMPLE), "x"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list_required(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required")
    named = required if isinstance(required, list) else []
    return [name for name in named if isinstance(name, str)]


def _find_described(schema: Any, root: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The fields that an object's description requires: by itself, or in the one alternative that
    says anything, as what the compiler loosens is written (`anyOf: [DESCRIBED, {}]`).
    """
    for part in list_alternatives(schema, root, ("allOf",)):
        yield from _list_required(part)
        choices = part.get("anyOf")
        said = list(filter(None, choices)) if isinstance(choices, list) else []
        if len(said) == 1 and depth:
            yield from _find_described(said[0], root, depth - 1)


def _note_argument(name: str, schema: Any, required: bool, root: Mapping[str, Any]) -> ArgumentNote:
    parts = list_alternatives(schema, root)
    kinds = dict.fromkeys(kind for about in parts for kind in sorted(list_types(about)))
    words = next((str(about["description"]) for about in parts if about.get("description")), "")
    return ArgumentNote(name, " or ".join(kinds), required, words, schema)


def _render_argument(note: ArgumentNote) -> str:
    facts = ", ".join(filter(None, (note.types, "required" if note.required else "")))
    words = note.description[:MAX_WORDS]
    told = f"  {note.name[:60]}{f' ({facts})' if facts else ''}{f': {words}' if words else ''}"
    return escape_line(told)
