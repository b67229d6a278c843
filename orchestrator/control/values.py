"""Answers and arguments on the control page as a person reads them: a list of objects as a table,
an object as names and values. Every text in them is a stranger's: escaped, bounded and cut.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.control.markup import (
    MAX_VALUE,
    escape_text,
    render_empty,
    render_facts,
    render_table,
    render_value,
)
from orchestrator.results.opening import is_http_answer, open_result

MAX_ROWS = 50
MAX_COLUMNS = 6
MAX_KEYS = 40
MAX_CELL = 160
MAX_DEPTH = 3
MAX_JSON = 1 << 20
"""Characters of a text that is tried to be read as JSON."""


def render_answer(result: Any, key: str, most: int = MAX_VALUE) -> str:
    """An answer of a tool or of a task in words, and below it as JSON where it is more than words,
    each at most so many characters. `key` is part of the id of what opens the JSON.
    """
    if result is None:
        return render_empty("Nothing was answered.")
    value, notes = open_answer(result)
    told = "".join(f"<p>{escape_text(note, most)}</p>" for note in notes)
    shown = f'<div class="answer">{told}{render_data(value, most=most)}</div>'
    return shown + (render_json(result, key, most) if isinstance(value, Mapping | list) else "")


def render_json(value: Any, key: str, most: int = MAX_VALUE) -> str:
    """A value as JSON, closed until it is opened."""
    return (
        f'<details class="raw" id="json-{escape_text(key)}"><summary>As JSON</summary>'
        f"{render_value(value, most)}</details>"
    )


def open_answer(result: Any) -> tuple[Any, tuple[str, ...]]:
    """What an answer gives, and what it tells beside that; of one that is no MCP result itself."""
    if not isinstance(result, Mapping) or not isinstance(result.get("content"), list):
        return _unwrap(_parse_json(result) if isinstance(result, str) else result), ()
    value, notes = open_result(result, _parse_json)
    return _unwrap(value), notes


def _parse_json(text: str) -> Any:
    """The object or list that a text is as JSON, else the text."""
    if len(text) > MAX_JSON or not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _unwrap(value: Any) -> Any:
    """The body of an HTTP answer, the one value of a computed one."""
    if not isinstance(value, Mapping):
        return value
    if is_http_answer(value):
        held = next((value[name] for name in ("body", "text") if name in value), None)
        return f"HTTP {value['status']}" if held is None else held
    return value["result"] if value.keys() == {"result"} else value


def render_data(value: Any, depth: int = MAX_DEPTH, most: int = MAX_VALUE) -> str:
    """A JSON value: tables and lists for what is nested, down to `depth`."""
    if isinstance(value, Mapping):
        return _render_object(value, depth) if value else render_empty("An empty object.")
    if isinstance(value, list):
        return _render_list(value, depth) if value else render_empty("An empty list.")
    if isinstance(value, str) and ("\n" in value or len(value) > MAX_CELL):
        return render_value(value, most)
    return f"<p>{_render_plain(value)}</p>"


def _render_object(value: Mapping[str, Any], depth: int) -> str:
    plain, nested = [], []
    for name, inner in list(value.items())[:MAX_KEYS]:
        if isinstance(inner, Mapping | list) and inner and depth > 0:
            nested.append((str(name), inner))
        else:
            plain.append((str(name)[:MAX_CELL], _render_plain(inner)))
    more = _tell_rest(len(value) - MAX_KEYS, "more fields")
    parts = [render_facts(plain)] if plain else []
    parts += [
        f"<h4>{escape_text(name, MAX_CELL)}</h4>{render_data(inner, depth - 1)}"
        for name, inner in nested
    ]
    return "".join(parts) + more


def _render_list(values: Sequence[Any], depth: int) -> str:
    shown, more = values[:MAX_ROWS], _tell_rest(len(values) - MAX_ROWS, "more")
    if all(isinstance(each, Mapping) for each in shown):
        return _render_rows(shown) + more
    items = "".join(f"<li>{_render_plain(each)}</li>" for each in shown)
    return f"<ul>{items}</ul>{more}"


def _render_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Objects as a table, those columns first that hold plain values."""
    heads: dict[str, bool] = {}
    for row in rows:
        for name, inner in list(row.items())[:MAX_KEYS]:
            nested = isinstance(inner, Mapping | list) and bool(inner)
            heads[str(name)] = heads.get(str(name), False) or nested
    names = sorted(heads, key=lambda name: heads[name])[:MAX_COLUMNS]
    if not names:
        return render_empty("Empty objects.")
    cells = [tuple(_render_plain(row.get(name, "")) for name in names) for row in rows]
    table = render_table([name[:40] for name in names], cells, "answer")
    hidden = _tell_rest(len(heads) - MAX_COLUMNS, "more columns, in the JSON below")
    return f'<div class="wide" tabindex="0" role="region" aria-label="answer">{table}</div>{hidden}'


def _tell_rest(count: int, what: str) -> str:
    return f"<p><small>… and {count:,} {what}</small></p>" if count > 0 else ""


def _render_plain(value: Any) -> str:
    """A value in one line, as HTML."""
    if value is None:
        return '<span class="soft">none</span>'
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping | list):
        text = json.dumps(value, ensure_ascii=False) if value else ""
        return f"<code>{escape_text(text, MAX_CELL)}</code>" if text else ""
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"
    return escape_text(" ".join(str(value)[: 2 * MAX_CELL].split()), MAX_CELL)


def render_compact(value: Any, most: int = MAX_CELL) -> str:
    """A JSON object in one line, as names with their values; HTML."""
    if not isinstance(value, Mapping):
        return escape_text(json.dumps(value, ensure_ascii=False), most)
    parts = []
    for name, inner in list(value.items())[:MAX_KEYS]:
        text = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
        parts.append(f"{name}: {text[:most]}")
    return escape_text(", ".join(parts), most)
