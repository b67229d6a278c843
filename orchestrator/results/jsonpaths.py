"""Paths into JSON values (JSONPath, RFC 9535), read and followed within bounds.

Paths are somebody else's text: only what is linear in the value's size is followed, which leaves
out descendants (`..`), several selectors in one segment, functions, and filters inside filters.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Literal

from jsonpath import JSONPath, JSONPathEnvironment
from jsonpath.exceptions import JSONPathError
from jsonpath.filter import (
    BaseExpression,
    BooleanLiteral,
    FilterExpression,
    FloatLiteral,
    InfixExpression,
    IntegerLiteral,
    Nil,
    PrefixExpression,
    RelativeFilterQuery,
    StringLiteral,
)
from jsonpath.segments import JSONPathChildSegment
from jsonpath.selectors import (
    Filter,
    IndexSelector,
    JSONPathSelector,
    NameSelector,
    SliceSelector,
    WildcardSelector,
)

from orchestrator.results.paths import PathProblem

MAX_PATH = 1_000
MAX_VALUES = 10_000

PathCode = Literal["bad_path", "unbounded_path"]
"""`bad_path` is no JSONPath, `unbounded_path` one that may cost more than the value is large."""


class _Environment(JSONPathEnvironment):
    """RFC 9535 without function extensions: `match` and `search` take patterns that backtrack."""

    def setup_function_extensions(self) -> None:
        self.function_extensions = {}


_ENVIRONMENT = _Environment(strict=True)
_SELECTORS = (NameSelector, IndexSelector, SliceSelector, WildcardSelector, Filter)
_COMPARED = (
    BooleanLiteral,
    FilterExpression,
    FloatLiteral,
    InfixExpression,
    IntegerLiteral,
    Nil,
    PrefixExpression,
    StringLiteral,
)


def parse_path(path: str) -> JSONPath | PathCode:
    """The path, or why it is none that is followed."""
    if len(path) > MAX_PATH:
        return "unbounded_path"
    try:
        parsed = _ENVIRONMENT.compile(path)
    except (JSONPathError, RecursionError, ValueError):
        return "bad_path"
    if not isinstance(parsed, JSONPath):
        return "bad_path"
    return parsed if _is_linear(parsed) else "unbounded_path"


def is_singular(path: str) -> bool:
    """Whether a valid path of names and indices alone selects at most one value."""
    parsed = parse_path(path)
    return isinstance(parsed, JSONPath) and _selects_one(parsed)


def select_values(path: str, value: Any, most: int) -> list[Any]:
    """The values that a path selects, at most one more than `most`; none by one that is invalid."""
    parsed = parse_path(path)
    return _select(parsed, value, most) if isinstance(parsed, JSONPath) else []


def find_value(value: Any, path: str) -> Any | PathProblem:
    """See `orchestrator.results.paths.find_value`."""
    parsed = parse_path(path)
    if not isinstance(parsed, JSONPath):
        return _explain(path, parsed)
    found = _select(parsed, value, MAX_VALUES)
    if len(found) > MAX_VALUES:
        return PathProblem(f"{path[:200]} finds more than {MAX_VALUES} values")
    if not _selects_one(parsed):
        return found
    return found[0] if found else PathProblem(f"there is nothing at {path[:200]}")


def _explain(path: str, code: PathCode) -> PathProblem:
    if len(path) > MAX_PATH:
        return PathProblem(f"a path has at most {MAX_PATH} characters")
    if not path.startswith("$"):
        return PathProblem("a path begins with `$`, as in $.items[0].id")
    known = ".name, ['name'], [0], [-1], [1:3], [*] and one filter such as [?@.name == 'x']"
    what = "is no JSONPath" if code == "bad_path" else "cannot be followed"
    return PathProblem(f"{path[:60]!r} {what}: a part of it is none of {known}")


def _select(parsed: JSONPath, value: Any, most: int) -> list[Any]:
    if not isinstance(value, Mapping | list):
        # The library would read a text as JSON.
        return [value] if not parsed.segments else []
    try:
        return [match.obj for match in islice(parsed.finditer(value), most + 1)]
    except (JSONPathError, RecursionError, TypeError, ValueError):
        return []


def _selects_one(path: JSONPath) -> bool:
    return all(_is_plain(s) for segment in path.segments for s in segment.selectors)


def _is_linear(path: JSONPath) -> bool:
    filters = 0
    for segment in path.segments:
        if not isinstance(segment, JSONPathChildSegment) or len(segment.selectors) != 1:
            return False
        (selector,) = segment.selectors
        if not isinstance(selector, _SELECTORS):
            return False
        if isinstance(selector, Filter):
            filters += 1
            if not _is_comparison(selector.expression):
                return False
    return filters <= 1


def _is_comparison(expression: BaseExpression) -> bool:
    """Whether a filter compares plain values and paths of names and indices below the item."""
    if isinstance(expression, RelativeFilterQuery):
        return all(
            isinstance(segment, JSONPathChildSegment) and all(map(_is_plain, segment.selectors))
            for segment in expression.path.segments
        )
    if not isinstance(expression, _COMPARED):
        return False
    return all(map(_is_comparison, expression.children()))


def _is_plain(selector: JSONPathSelector) -> bool:
    return isinstance(selector, NameSelector | IndexSelector)
