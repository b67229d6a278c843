"""Answers and arguments on the control page as a person reads them: a list of objects as a table,
an object as names and values. Every text in them is a stranger's: bounded and cut.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from orchestrator.control.texts import MAX_VALUE, ShownText, cut_text, show_value
from orchestrator.results.opening import open_result, unwrap_answer

MAX_ROWS = 50
MAX_COLUMNS = 6
MAX_KEYS = 40
MAX_CELL = 160
MAX_DEPTH = 3
MAX_JSON = 1 << 20
"""Characters of a text that is tried to be read as JSON."""


@dataclass(frozen=True)
class ValueCell:
    """A value in one line; `is_code` where it is JSON, and `is_none` where it is null."""

    text: ShownText | str
    is_code: bool = False
    is_none: bool = False


@dataclass(frozen=True)
class NoValue:
    """An object or a list that is empty, in words."""

    kind: ClassVar[str] = "empty"
    told: str


@dataclass(frozen=True)
class LongText:
    """A text of several lines, or a long one."""

    kind: ClassVar[str] = "long"
    text: ShownText


@dataclass(frozen=True)
class OneLine:
    kind: ClassVar[str] = "line"
    cell: ValueCell


@dataclass(frozen=True)
class ShownObject:
    """An object as names and values, and below them what is nested; `left` are fields not shown."""

    kind: ClassVar[str] = "object"
    fields: tuple[tuple[ShownText, ValueCell], ...]
    nested: tuple[tuple[ShownText, ShownData], ...]
    left: int


@dataclass(frozen=True)
class ShownList:
    """A list of values in a line each; `left` are those not shown."""

    kind: ClassVar[str] = "list"
    cells: tuple[ValueCell, ...]
    left: int


@dataclass(frozen=True)
class ShownRows:
    """Objects as a table: its heads, and of each row pairs of a head and a cell. `left` are rows
    that are not shown, `left_columns` columns.
    """

    kind: ClassVar[str] = "rows"
    heads: tuple[ShownText, ...]
    rows: tuple[tuple[tuple[ShownText, ValueCell], ...], ...]
    left: int
    left_columns: int


ShownData = NoValue | LongText | OneLine | ShownObject | ShownList | ShownRows


@dataclass(frozen=True)
class ShownJson:
    """A value as JSON, closed until it is opened; `key` is part of the id of what opens it."""

    key: ShownText
    text: ShownText


@dataclass(frozen=True)
class ShownAnswer:
    """An answer: what it tells beside its value, the value, and the same as JSON where it is more
    than words. `data` is None where nothing was answered.
    """

    notes: tuple[ShownText, ...] = ()
    data: ShownData | None = None
    json: ShownJson | None = None


def show_answer(result: Any, key: str, most: int = MAX_VALUE) -> ShownAnswer:
    """An answer of a tool or of a task, its texts at most so many characters each."""
    if result is None:
        return ShownAnswer()
    value, notes = open_answer(result)
    return ShownAnswer(
        tuple(cut_text(note, most) for note in notes),
        show_data(value, most=most),
        show_json(result, key, most) if isinstance(value, Mapping | list) else None,
    )


def show_json(value: Any, key: str, most: int = MAX_VALUE) -> ShownJson:
    return ShownJson(cut_text(key), show_value(value, most))


def open_answer(result: Any) -> tuple[Any, tuple[str, ...]]:
    """What an answer gives, and what it tells beside that; of one that is no MCP result itself."""
    if not isinstance(result, Mapping) or not isinstance(result.get("content"), list):
        return unwrap_answer(_parse_json(result) if isinstance(result, str) else result), ()
    value, notes = open_result(result, _parse_json)
    return unwrap_answer(value), notes


def _parse_json(text: str) -> Any:
    """The object or list that a text is as JSON, else the text."""
    if len(text) > MAX_JSON or not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def show_data(value: Any, depth: int = MAX_DEPTH, most: int = MAX_VALUE) -> ShownData:
    """A JSON value: tables and lists for what is nested, down to `depth`."""
    if isinstance(value, Mapping):
        return _show_object(value, depth) if value else NoValue("An empty object.")
    if isinstance(value, list):
        return _show_list(value) if value else NoValue("An empty list.")
    if isinstance(value, str) and ("\n" in value or len(value) > MAX_CELL):
        return LongText(show_value(value, most))
    return OneLine(_show_cell(value))


def _show_object(value: Mapping[str, Any], depth: int) -> ShownObject:
    plain, nested = [], []
    for name, inner in list(value.items())[:MAX_KEYS]:
        if isinstance(inner, Mapping | list) and inner and depth > 0:
            nested.append((cut_text(str(name), MAX_CELL), show_data(inner, depth - 1)))
        else:
            plain.append((cut_text(str(name)[:MAX_CELL]), _show_cell(inner)))
    return ShownObject(tuple(plain), tuple(nested), max(0, len(value) - MAX_KEYS))


def _show_list(values: Sequence[Any]) -> ShownData:
    shown, left = values[:MAX_ROWS], max(0, len(values) - MAX_ROWS)
    if all(isinstance(each, Mapping) for each in shown):
        return _show_rows(shown, left)
    return ShownList(tuple(map(_show_cell, shown)), left)


def _show_rows(rows: Sequence[Mapping[str, Any]], left: int) -> ShownData:
    """Objects as a table, those columns first that hold plain values."""
    heads: dict[str, bool] = {}
    for row in rows:
        for name, inner in list(row.items())[:MAX_KEYS]:
            nested = isinstance(inner, Mapping | list) and bool(inner)
            heads[str(name)] = heads.get(str(name), False) or nested
    names = sorted(heads, key=lambda name: heads[name])[:MAX_COLUMNS]
    if not names:
        return NoValue("Empty objects.")
    shown = {name: cut_text(name[:40]) for name in names}
    return ShownRows(
        tuple(shown.values()),
        tuple(
            tuple((head, _show_cell(row.get(name, ""))) for name, head in shown.items())
            for row in rows
        ),
        left,
        max(0, len(heads) - MAX_COLUMNS),
    )


def _show_cell(value: Any) -> ValueCell:
    if value is None:
        return ValueCell("none", is_none=True)
    if isinstance(value, bool):
        return ValueCell("yes" if value else "no")
    if isinstance(value, Mapping | list):
        text = json.dumps(value, ensure_ascii=False) if value else ""
        return ValueCell(cut_text(text, MAX_CELL), is_code=bool(text))
    if isinstance(value, int) and value.bit_length() > 4096:
        return ValueCell(f"an integer of {value.bit_length()} bits")
    return ValueCell(cut_text(" ".join(str(value)[: 2 * MAX_CELL].split()), MAX_CELL))


def show_compact(value: Any, most: int = MAX_CELL) -> ShownText:
    """A JSON object in one line, as names with their values."""
    if not isinstance(value, Mapping):
        return cut_text(json.dumps(value, ensure_ascii=False), most)
    parts = []
    for name, inner in list(value.items())[:MAX_KEYS]:
        text = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
        parts.append(f"{name}: {text[:most]}")
    return cut_text(", ".join(parts), most)
