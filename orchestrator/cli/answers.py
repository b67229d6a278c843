"""Answers of tools for a person at a terminal: tables, sentences and trees instead of JSON.

Every name and text in an answer is a stranger's: it is shown as text without what nobody sees, and
bounded in rows, columns, depth and length. `--json` has all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from orchestrator.cli.terminal import out, print_note, print_text
from orchestrator.results.opening import open_result, unwrap_answer
from orchestrator.results.shape import cut_text, write_json
from sandbox import exactjson
from sandbox.sanitize import clean_text

MAX_ROWS = 50
MAX_COLUMNS = 8
MAX_KEYS = 60
MAX_DEPTH = 6
MAX_LINES = 200
CELL_LETTERS = 60
HEAD_LETTERS = 30
MIN_FOLDED = 24
"""A column that is folded has at least this width."""
GAP = 2
LINE_LETTERS = 300
TEXT_LETTERS = 20_000
LOOKED_AT = 50
"""Rows whose keys become columns."""
ALL = "Cut for reading; --json shows all."


@dataclass
class RenderedAnswer:
    """What is printed of an answer in that many columns; `cut` where that is not all of it."""

    parts: list[RenderableType]
    cut: bool = False
    width: int = 80


def print_answer(result: Mapping[str, Any]) -> None:
    """Print an MCP tool result for a person. Notes beside the answer go to standard error."""
    value, notes = open_result(result, _parse_json)
    rendered = render_answer(value, out.width)
    for part in rendered.parts:
        out.print(part)
    for note in notes:
        print_note(note)
    if rendered.cut:
        print_note(ALL)


def print_failure(result: Mapping[str, Any], message: str) -> None:
    """Print what a failed call says; at a terminal, of an answer with data beside its errors, the
    data as any other and the errors below it.
    """
    value, errors = open_result(result, _parse_json)
    if not out.is_terminal or not errors or not isinstance(value, Mapping | list):
        print_text(message, "red")
        return
    for part in render_answer(value, out.width).parts:
        out.print(part)
    print_text("\n".join(errors), "red")


def render_answer(value: Any, width: int = 80) -> RenderedAnswer:
    """An answer as a person reads it: a list of objects as a table, an object as lines, what is
    nested as a tree, anything else as a line.
    """
    rendered = RenderedAnswer([], width=width)
    value = unwrap_answer(value)
    if isinstance(value, list):
        _render_list(value, rendered)
    elif isinstance(value, Mapping):
        _render_object(value, rendered)
    else:
        rendered.parts.append(_make_text(value, TEXT_LETTERS, rendered))
    return rendered


def _parse_json(text: str) -> Any:
    try:
        return exactjson.loads(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _render_list(values: list[Any], rendered: RenderedAnswer) -> None:
    if not values:
        rendered.parts.append(Text("Nothing."))
        return
    if all(isinstance(each, Mapping) for each in values[:LOOKED_AT]):
        _render_table(values, rendered)
    elif any(isinstance(each, Mapping | list) for each in values[:LOOKED_AT]):
        _render_tree(values, rendered)
    else:
        for each in values[:MAX_ROWS]:
            rendered.parts.append(_make_text(each, LINE_LETTERS, rendered))
        _tell_rest(len(values) - MAX_ROWS, "more", rendered)


def _render_table(rows: Sequence[Any], rendered: RenderedAnswer) -> None:
    """As many columns as the terminal has room for, in the order of their keys, those with plain
    values first. The last one may be narrower than its texts, which are folded then.
    """
    heads: dict[str, bool] = {}
    for row in rows[:LOOKED_AT]:
        for key, inner in list(row.items())[:MAX_KEYS]:
            heads[key] = heads.get(key, True) and not isinstance(inner, Mapping | list)
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns: list[list[str]] = []
    room = rendered.width
    for key in sorted(heads, key=lambda key: not heads[key]):
        head, cells = _make_column(key, rows[:MAX_ROWS], rendered)
        width = max(len(head), *map(len, cells)) + GAP
        if len(columns) == MAX_COLUMNS or (columns and min(width, MIN_FOLDED) > room):
            rendered.cut = True
            continue
        columns.append(cells)
        table.add_column(Text(head), overflow="fold", max_width=max(room, MIN_FOLDED))
        room -= min(width, room)
    for line in zip(*columns, strict=True):
        table.add_row(*map(Text, line))
    rendered.parts.append(table)
    _tell_rest(len(rows) - MAX_ROWS, "more rows", rendered)


def _make_column(key: str, rows: Sequence[Any], rendered: RenderedAnswer) -> tuple[str, list[str]]:
    """The head and the cells of a column."""
    values = [row.get(key, "") if isinstance(row, Mapping) else "" for row in rows]
    return _make_line(key, HEAD_LETTERS, rendered), [
        _make_line(value, CELL_LETTERS, rendered) for value in values
    ]


def _render_object(value: Mapping[str, Any], rendered: RenderedAnswer) -> None:
    if not value:
        rendered.parts.append(Text("Nothing."))
        return
    nested = [key for key, inner in value.items() if isinstance(inner, Mapping | list) and inner]
    lists = [key for key in nested if isinstance(value[key], list)]
    if len(lists) == 1 and _is_table(value[lists[0]]):
        # What an API wraps around its list: the rest as lines, the list as a table.
        plain = {key: inner for key, inner in value.items() if key not in lists}
        if plain:
            _render_tree(plain, rendered)
        rendered.parts.append(Text(_make_line(lists[0], CELL_LETTERS, rendered), style="bold"))
        _render_table(value[lists[0]], rendered)
    else:
        _render_tree(value, rendered)


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, Mapping) for each in value[:LOOKED_AT])
    )


def _render_tree(value: Any, rendered: RenderedAnswer) -> None:
    """An object or list as indented lines."""
    root = Tree("", hide_root=True, guide_style="dim")
    left = _grow_tree(root, value, MAX_DEPTH, MAX_LINES, rendered)
    rendered.cut = rendered.cut or left <= 0
    rendered.parts.append(root)


def _grow_tree(node: Tree, value: Any, depth: int, left: int, rendered: RenderedAnswer) -> int:
    """Add a value's lines; how many more there may be."""
    named = isinstance(value, Mapping)
    items = value.items() if named else ((f"{n}", each) for n, each in enumerate(value, 1))
    for number, (key, inner) in enumerate(items):
        if left <= 0 or number == MAX_KEYS:
            rendered.cut = True
            return left
        left -= 1
        label = _make_line(key, CELL_LETTERS, rendered)
        if isinstance(inner, Mapping | list) and inner and depth:
            left = _grow_tree(node.add(Text(label)), inner, depth - 1, left, rendered)
        else:
            line = _make_line(inner, LINE_LETTERS, rendered)
            node.add(Text(f"{label}: {line}" if named else line))
    return left


def _tell_rest(count: int, what: str, rendered: RenderedAnswer) -> None:
    if count > 0:
        rendered.cut = True
        rendered.parts.append(Text(f"… and {count:,} {what}", style="dim"))


def _make_line(value: Any, letters: int, rendered: RenderedAnswer) -> str:
    """A value in one line."""
    text = " ".join(_write_plain(value, letters).split())
    rendered.cut = rendered.cut or len(text) > letters
    return cut_text(text, letters)


def _make_text(value: Any, letters: int, rendered: RenderedAnswer) -> Text:
    """A value as it is, line ends and all."""
    text = _write_plain(value, letters)
    rendered.cut = rendered.cut or len(text) > letters
    return Text(cut_text(text, letters))


def _write_plain(value: Any, letters: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        # One letter more than is shown, to see that it was cut.
        return clean_text(value[: 4 * letters])[: letters + 1]
    if isinstance(value, Mapping | list):
        return clean_text(write_json(value))[: letters + 1] if value else "-"
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"
    return str(value)
