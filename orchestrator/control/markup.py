"""Texts, times, tables and sections of the control page as HTML.

Strangers' text is escaped and cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from orchestrator.approvals.text import escape_invisible

MAX_TEXT = 300
MAX_VALUE = 20_000
"""Characters shown of a JSON value."""


def render_time(moment: float) -> str:
    """A `<time>` that `page.js` shows as `12 s ago` by the reader's clock."""
    return f'<time data-at="{moment:.0f}">{format_date(moment)}</time>'


def format_date(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def escape_text(text: str, most: int = MAX_TEXT) -> str:
    """Text as HTML, at most that many characters of it."""
    return escape(escape_invisible(text[:most]) + ("…" if len(text) > most else ""))


def render_section(title: str, content: str) -> str:
    return f"<h2>{title}</h2>{content}"


def render_empty(told: str, first: str = "") -> str:
    """What a part says that has nothing to show, and the command that is the first step."""
    copy = f'<button class="quiet small" type="button" data-copy="{escape(first)}">Copy</button>'
    step = f" <code>{escape(first)}</code> {copy}" if first else ""
    return f'<p class="empty">{escape(told)}{step}</p>'


def render_table(heads: Sequence[str], rows: Iterable[Sequence[str]], named: str) -> str:
    """A table of cells that are HTML already. Its heads are labels of the cells on a narrow screen,
    where each row stands as a block.
    """
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{escape(head)}">{cell}</td>'
            for head, cell in zip(heads, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<table aria-label="{escape(named)}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


def render_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values, which are HTML already, as a list; those without a value are left out."""
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in facts if value)
    return f'<dl class="facts">{lines}</dl>'


def render_badge(word: str) -> str:
    """A state or level as a coloured word."""
    return f'<span class="badge {escape(word)}">{escape(word)}</span>'


def render_value(value: Any) -> str:
    """A JSON value, indented, at most MAX_VALUE characters of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return f"<pre>{escape_text(text, MAX_VALUE)}</pre>"
