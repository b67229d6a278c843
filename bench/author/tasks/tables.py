"""Markdown tables."""

from __future__ import annotations

from typing import Any

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `markdown_table(rows, columns)` that writes a list of flat objects as a GitHub Markdown
table and gives {"table": text}. `columns` names the columns in order; left out, they are all
keys of all rows in the order in which they first come. Cells: a text as it is with | written as
\\| and each line break (\\r\\n or \\n) as one <br>, null or a missing key as nothing, true and
false in small letters, numbers as JSON writes them. Every line is `| a | b |` with one space
around each cell (an empty cell is one space more: `|  |`), the second line is `| --- | --- |`,
lines are joined by \\n without one at the end. Refused are: no columns at all, a value that is
a list or an object, and a column that is named twice. Column names are written like cells."""


def markdown_table(rows: list[dict[str, Any]], columns: list[str] | None = None) -> dict[str, str]:
    names = list(dict.fromkeys(key for row in rows for key in row)) if columns is None else columns
    if not names or len(set(names)) != len(names):
        raise Refused
    if any(isinstance(value, list | dict) for row in rows for value in row.values()):
        raise Refused
    lines: list[list[Any]] = [names, ["---"] * len(names)]
    lines += [[row.get(name) for name in names] for row in rows]
    return {"table": "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return str(value).replace("|", "\\|").replace("\r\n", "<br>").replace("\n", "<br>")


def _call(rows: list[dict[str, Any]], *columns: str) -> tuple[str, dict[str, Any]]:
    return "markdown_table", {"rows": rows, **({"columns": list(columns)} if columns else {})}


TASK = Task(
    "tables",
    _TEXT,
    checks(
        {"markdown_table": markdown_table},
        [
            _call([{"a": 1, "b": "x"}]),
            _call([{"a": 1}, {"b": 2}]),
            _call([{"b": 1, "a": 2}, {"a": 3, "c": 4}]),
            _call([{"a": 1, "b": 2}], "b"),
            _call([{"a": 1, "b": 2}], "b", "a", "c"),
            _call([], "a", "b"),
            _call([{}], "a"),
            _call([{"a": None, "b": ""}]),
            _call([{"a": True, "b": False}]),
            _call([{"a": "x|y", "b": "l1\nl2"}]),
            _call([{"a": "l1\r\nl2\n"}]),
            _call([{"a|b": 1}]),
            _call([{"a": 1.5, "b": -3}]),
            _call([{"ä": "ß"}]),
            _call([{"a": 0}, {"a": None}]),
            _call([]),
            _call([{}]),
            _call([{"a": [1]}]),
            _call([{"a": {"b": 1}}]),
            _call([{"a": 1}], "a", "a"),
            _call([{"a": "  x  "}]),
            _call([{"a": "\\|"}]),
            _call([{"a": index} for index in range(200)]),
            _call([{"a": 1, "b": [2]}], "b"),
        ],
    ),
)
