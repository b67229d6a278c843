"""Shapes and samples of JSON values: what a large answer is like, in a few lines.

All are pure, and bounded whatever the value is: names and texts in it are strangers'.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox import exactjson

TOKEN_BYTES = 3
"""A token of the tokenizers in use has more bytes than this on average, whatever the language, so
bytes divided by it are an upper bound of the tokens of JSON and prose.
"""
MAX_KEY = 60
MAX_LINES = 40
MAX_VISITS = 2_000
LOOKED_AT = 20
"""Elements of a list by which its shape is told."""
_PLAIN = re.compile(r"[^\W\d]\w{0,59}\Z")
_LEVELS = ((8, 200, 40, 8), (5, 160, 30, 6), (3, 120, 20, 5), (2, 80, 12, 4), (1, 40, 8, 3))
"""How many elements, characters, keys and levels a sample has, the richest first."""


@dataclass(frozen=True)
class Wildcard:
    """All elements of a list, or all values of an object."""


Segment = str | int | Wildcard
"""A step of a path: a key, an index, or all."""


def count_tokens(text: str) -> int:
    """An upper bound of the tokens that a text has."""
    return -(-len(text.encode("utf-8", "replace")) // TOKEN_BYTES)


def measure_json(value: Any) -> int:
    """The bytes of a value's JSON text."""
    return len(exactjson.dumps(value))


def write_json(value: Any) -> str:
    """The JSON text of a value without blanks, as a model is shown it."""
    return exactjson.dumps(value).decode()


def render_segment(segment: Segment) -> str:
    """A segment as a path writes it."""
    if isinstance(segment, Wildcard):
        return "[*]"
    if isinstance(segment, int):
        return f"[{segment}]"
    if _PLAIN.match(segment):
        return f".{segment}"
    quoted = json.dumps(segment, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"['{quoted}']"


def describe_shape(value: Any, most_bytes: int = 1_500) -> dict[str, str]:
    """What a value consists of: paths (RFC 9535) with types and counts, those near its root first.
    A last key `…` says that there is more.
    """
    found: dict[str, str] = {}
    room, visits = most_bytes, MAX_VISITS
    level: list[tuple[str, list[Any]]] = [("$", [value])]
    while level:
        below: list[tuple[str, list[Any]]] = []
        for path, values in level:
            line = _describe_values(values)
            room -= len(path.encode()) + len(line) + 6
            visits -= len(values)
            if room < 0 or visits < 0 or len(found) >= MAX_LINES:
                return {**found, "…": "more"}
            found[path] = line
            below += _list_below(path, values)
        level = below
    return found


def cut_sample(value: Any, most_bytes: int) -> Any:
    """The beginning of a value: of lists their first elements, long texts cut; None where not even
    that fits.
    """
    for elements, letters, keys, depth in _LEVELS:
        sample = _cut_value(value, elements, letters, keys, depth)
        if measure_json(sample) <= most_bytes:
            return sample
    return None


def cut_text(text: str, most: int) -> str:
    """A text of at most `most` characters, the last an ellipsis where it was longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def cut_bytes(text: str, most: int) -> str:
    """A text of at most `most` bytes of UTF-8, the last an ellipsis where it was longer."""
    written = text.encode("utf-8", "replace")
    if len(written) <= most:
        return text
    return written[: max(0, most - 3)].decode("utf-8", "ignore") + "…" if most >= 3 else ""


def _describe_values(values: list[Any]) -> str:
    """The types of values that stand in the same place, in words."""
    kinds = sorted({_name_type(each) for each in values})
    told = " or ".join(kinds)
    counts = [len(each) for each in values if isinstance(each, list | Mapping)]
    if counts and len(values) == 1:
        many = f"{counts[0]:,} " + ("elements" if isinstance(values[0], list) else "keys")
        return f"{told} of {many}"
    return told or "nothing"


def _name_type(value: Any) -> str:
    if value is None:
        return "null"
    for kinds, name in _TYPES:
        if isinstance(value, kinds):
            return name
    return "value"


_TYPES: tuple[tuple[Any, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (Mapping, "object"),
    (list, "array"),
)


def _list_below(path: str, values: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    elements = [item for each in values if isinstance(each, list) for item in each[:LOOKED_AT]]
    if elements:
        yield path + render_segment(Wildcard()), elements[: LOOKED_AT * 4]
    keys: dict[str, list[Any]] = {}
    for each in values:
        for key, inner in _first_items(each):
            keys.setdefault(key, []).append(inner)
    for key, inner in keys.items():
        if len(key) <= MAX_KEY:
            yield path + render_segment(key), inner


def _first_items(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for number, (key, inner) in enumerate(value.items()):
            if number == MAX_LINES:
                return
            yield str(key), inner


def _cut_value(value: Any, elements: int, letters: int, keys: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, letters)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 512:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, Mapping):
        if depth == 0:
            return f"{{{len(value)} keys}}"
        cut = {
            cut_text(str(key), MAX_KEY): _cut_value(inner, elements, letters, keys, depth - 1)
            for key, inner in list(value.items())[:keys]
        }
        return {**cut, "…": f"{len(value) - keys} more keys"} if len(value) > keys else cut
    if isinstance(value, list):
        if depth == 0:
            return f"[{len(value)} elements]"
        return [_cut_value(item, elements, letters, keys, depth - 1) for item in value[:elements]]
    return value
