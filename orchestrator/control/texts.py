"""Strangers' text as the control page shows it: cut, and with nothing invisible in it. Templates
escape it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NewType

from orchestrator.approvals.text import escape_invisible, escape_line

MAX_TEXT = 300
MAX_VALUE = 20_000
"""Characters shown of a JSON value."""

ShownText = NewType("ShownText", str)
"""A text of a stranger that a page may show: bounded, and with what is invisible written out. It is
no HTML.
"""


def cut_text(text: str, most: int = MAX_TEXT) -> ShownText:
    """At most that many characters of a text."""
    return ShownText(escape_invisible(text[:most]) + ("…" if len(text) > most else ""))


def show_line(text: str) -> ShownText:
    """A whole text in one line: for what is decided, which is bounded where it comes from."""
    return ShownText(escape_line(text))


def show_value(value: Any, most: int = MAX_VALUE) -> ShownText:
    """A text or a JSON value, indented, at most so many characters of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return cut_text(text, most)


def format_date(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def format_clock(moment: float) -> str:
    """A moment as it stands below a chart."""
    return datetime.fromtimestamp(moment, UTC).strftime("%m-%d %H:%M UTC")
