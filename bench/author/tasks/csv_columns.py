"""Columns of a CSV file, with what is wrong in them."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `summarize_csv(text)` for CSV (RFC 4180: commas, quotes doubled inside quotes, a first
row with the column names). It gives {"rows": number of data rows, "columns": [{"name",
"missing", "numbers", "min", "max", "mean"}]} with the columns in their order. `missing` counts
cells that are empty or only spaces, or not there because the row is too short. `numbers` counts
the cells that are finite decimal numbers (spaces around them do not matter; nan, inf, 1_000 and
0x1F are no numbers). min, max and mean are of those numbers, or null where there are none.
Blank lines are skipped. A row with more cells than there are columns is refused, and so are
text without a header, two columns of one name, and a quoted cell that is never closed."""


def summarize_csv(text: str) -> dict[str, Any]:
    if text.replace('""', "").count('"') % 2:
        raise Refused
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    if not rows or len(set(rows[0])) != len(rows[0]):
        raise Refused
    head, data = rows[0], rows[1:]
    if any(len(row) > len(head) for row in data):
        raise Refused
    return {"rows": len(data), "columns": [_column(name, at, data) for at, name in enumerate(head)]}


def _column(name: str, at: int, data: list[list[str]]) -> dict[str, Any]:
    cells = [row[at].strip() if at < len(row) else "" for row in data]
    numbers = [number for number in map(_number, cells) if number is not None]
    return {
        "name": name,
        "missing": cells.count(""),
        "numbers": len(numbers),
        "min": min(numbers, default=None),
        "max": max(numbers, default=None),
        "mean": sum(numbers) / len(numbers) if numbers else None,
    }


def _number(cell: str) -> float | None:
    if "_" in cell or not cell.isascii():
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


TASK = Task(
    "csv_columns",
    _TEXT,
    checks(
        {"summarize_csv": summarize_csv},
        [
            ("summarize_csv", {"text": text})
            for text in (
                "a,b\n1,2\n3,4\n",
                "a,b\r\n1,2\r\n",
                "a\n",
                "a,b\n1\n,2\n",
                "a,b\n \t,x\n",
                "a\nnan\ninf\n-inf\n1\n",
                "a\n1_000\n0x1F\n1e3\n",
                "a\n 1.5 \n-2\n+3\n",
                'a,b\n"x, y","say ""hi"""\n',
                'a\n"line\nbreak"\n2\n',
                "a\n\n1\n\n2\n",
                "a,b\n1,2,3\n",
                "",
                "\n\n",
                "a,a\n1,2\n",
                'a\n"open\n',
                "name,n\nÄ,1\nß,2",
                "a,b,c\n1,,3\n,,\n",
                "a\n1e400\n",
                "a\n.5\n5.\n.\n",
                "a\n0\n-0\n",
                "a,b\nx,y",
                'a\n"1"\n" 2 "\n',
                "x\n" + "1\n" * 1000,
                "a\nTrue\n1,\n",
                "a\n\uff11\n2\n",
            )
        ],
    ),
)
