"""Texts, times and sections of the control page as HTML. Strangers' text is escaped and cut."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape

from orchestrator.approvals.text import escape_invisible

MAX_TEXT = 300


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
