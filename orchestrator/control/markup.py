"""Texts, times, tables and sections of the control page as HTML.

Strangers' text is escaped and cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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


NUMBERS = frozenset({"took", "calls", "right", "average", "used"})
"""Heads of columns that are numbers, which stand below each other by their last digit."""


def render_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], named: str, *, compact: bool = False
) -> str:
    """A table of cells that are HTML already. Its heads are labels of the cells on a narrow screen,
    where each row stands as a block; a `compact` one has its cells there one after the other.
    """
    kinds = [' class="number"' if head in NUMBERS else "" for head in heads]
    top = "".join(
        f'<th scope="col"{kind}>{escape(head)}</th>'
        for head, kind in zip(heads, kinds, strict=True)
    )
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td data-label="{escape(head)}"{kind}>{cell}</td>'
            for head, cell, kind in zip(heads, row, kinds, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    shape = ' class="compact"' if compact else ""
    return (
        f'<table{shape} aria-label="{escape(named)}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


def render_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values, which are HTML already, as a list; those without a value are left out."""
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in facts if value)
    return f'<dl class="facts">{lines}</dl>'


def render_badge(word: str, kind: str = "") -> str:
    """A state or level as a coloured word, in the colour of `kind` where that is another one."""
    named = kind or word
    colour = f" {named}" if named.isascii() and named.isalpha() else ""
    return f'<span class="badge{colour}">{escape_text(word, 40)}</span>'


def render_value(value: Any, most: int = MAX_VALUE) -> str:
    """A text or a JSON value, indented, at most so many characters of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return f"<pre>{escape_text(text, most)}</pre>"


def render_button(word: str, path: str, id: str, kind: str = "") -> str:
    """A button that posts to a path; `kind` are its classes."""
    return (
        f'<button class="{kind}" data-post="{escape(path)}" id="{escape(id)}">{escape(word)}'
        "</button>"
    )


def render_removal(
    id: str, about: str, path: str, fields: Mapping[str, str], told: str, *, pin: bool = False
) -> str:
    """What takes something away, in two steps: a line to open, and a form that says what will be
    and whose button does it. `about` is what it is about, for who does not see the row.
    """
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in fields.items()
    )
    word = "Remove it (PIN)" if pin else "Remove it"
    return (
        f'<details class="removal" id="{escape(id)}">'
        f'<summary aria-label="Remove {escape_text(about, 80)}">Remove</summary>'
        f'<form class="fields" data-post="{escape(path)}"{" data-pin" if pin else ""}>{hidden}'
        f"<p>{escape_text(told)}</p>"
        f'<div class="actions"><button class="danger">{word}</button></div>'
        "<output></output></form></details>"
    )
