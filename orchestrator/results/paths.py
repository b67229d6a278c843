"""Paths into JSON values as RFC 9535 writes them: `$.items[0].id`, `$['a key']`, `$.items[*].id`.

Names, indices and wildcards are read; filters, slices and descendants are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_PATH = 1_000
MAX_VALUES = 10_000
_SEGMENT = re.compile(
    r"\.(?P<name>[^\W\d]\w*)"
    r"|\.(?P<star>\*)"
    r"|\[\s*(?:(?P<index>0|-?[1-9][0-9]{0,9})|(?P<all>\*)"
    r"|'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\")\s*\]"
)
_PLAIN = re.compile(r"[^\W\d]\w{0,59}\Z")


@dataclass(frozen=True)
class Wildcard:
    """All elements of a list, or all values of an object."""


Segment = str | int | Wildcard


@dataclass(frozen=True)
class PathProblem:
    """Why a path finds nothing, in words."""

    reason: str


def parse_path(path: str) -> tuple[Segment, ...] | PathProblem:
    """The segments of a path."""
    if len(path) > MAX_PATH:
        return PathProblem(f"a path has at most {MAX_PATH} characters")
    if not path.startswith("$"):
        return PathProblem("a path begins with `$`, as in $.items[0].id")
    found: list[Segment] = []
    at = 1
    while at < len(path):
        match = _SEGMENT.match(path, at)
        if match is None:
            return PathProblem(
                f"{path[at : at + 40]!r} is none of .name, ['name'], [0], [-1] and [*]"
            )
        segment = _read_segment(match)
        if segment is None:
            return PathProblem(f"{match[0][:40]!r} has an escape that JSON does not know")
        found.append(segment)
        at = match.end()
    return tuple(found)


def find_value(value: Any, path: str) -> Any | PathProblem:
    """What a path finds in a value: one value, or a list of values where it has a wildcard."""
    segments = parse_path(path)
    if isinstance(segments, PathProblem):
        return segments
    values, shown = [value], "$"
    many = False
    for segment in segments:
        shown += render_segment(segment)
        if isinstance(segment, Wildcard):
            many = True
            values = [inner for each in values for inner in _list_inner(each)]
        else:
            values = [inner for each in values for inner in _step(each, segment)]
        if not values and not many:
            return PathProblem(f"there is nothing at {shown[:200]}")
        if len(values) > MAX_VALUES:
            return PathProblem(f"{shown[:200]} finds more than {MAX_VALUES} values")
    return values if many else values[0]


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


def _read_segment(match: re.Match[str]) -> Segment | None:
    if match["star"] or match["all"]:
        return Wildcard()
    if match["index"]:
        return int(match["index"])
    if match["name"]:
        return match["name"]
    if match["double"] is not None:
        return _unescape(match["double"])
    return _unescape((match["single"] or "").replace("\\'", "'").replace('"', '\\"'))


def _unescape(text: str) -> str | None:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return None


def _list_inner(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _step(value: Any, segment: str | int) -> list[Any]:
    if isinstance(segment, str):
        return [value[segment]] if isinstance(value, Mapping) and segment in value else []
    if not isinstance(value, list) or not -len(value) <= segment < len(value):
        return []
    return [value[segment]]
