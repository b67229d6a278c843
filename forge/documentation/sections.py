"""Documentation cut by its sections into parts that fit a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from forge.prosedocs.page import Page, shows_request

PART_BYTES = 14_000
"""Of UTF-8: with the question and the answer's schema within 8,000 tokens."""
MAX_PARTS = 32
_HEADING = re.compile(
    r"^(?:#{1,6} .*|[^\s#|>-][^\n]{0,200}\n(?:={3,}|-{3,}|~{3,}|\^{3,})[ \t]*)$", re.MULTILINE
)
_SAYS = re.compile(
    r"base url|https?://|authenti|authoriz|bearer|api.?key|token|rate.?limit"
    r"|requests? (?:per|a|every) ",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Part:
    """A piece of a page, or several short pages. `number` counts the parts of all pages from 1,
    `location` is where it begins.
    """

    number: int
    location: str
    text: str = field(repr=False)


def parts_of(pages: Iterable[Page]) -> tuple[tuple[Part, ...], int]:
    """The parts that say something of an API, at most MAX_PARTS, those with requests first where
    there are more; and how many there were.
    """
    pieces = list(_packed(_pieces(pages)))
    telling = [piece for piece in pieces if shows_request(piece[1]) or _SAYS.search(piece[1])]
    chosen = telling
    if len(telling) > MAX_PARTS:
        ranked = sorted(telling, key=lambda piece: not shows_request(piece[1]))[:MAX_PARTS]
        chosen = [piece for piece in telling if piece in ranked][:MAX_PARTS]
    made = (Part(number, *piece) for number, piece in enumerate(chosen, 1))
    return tuple(made), len(telling)


def _sections(text: str) -> Iterator[str]:
    starts = [found.start() for found in _HEADING.finditer(text)]
    for start, end in zip([0, *starts], [*starts, len(text)], strict=True):
        if text[start:end].strip():
            yield text[start:end].rstrip()


def _pieces(pages: Iterable[Page]) -> Iterator[tuple[str, str]]:
    """(location, text) of all sections; one that is too long is cut between lines."""
    for page in pages:
        for section in _sections(page.text):
            for piece in _cut(section):
                yield page.location, piece


def _packed(pieces: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Pieces together as far as they fit, each part with where it begins."""
    held, began = "", ""
    for location, piece in pieces:
        if held and len(held.encode()) + len(piece.encode()) + 2 > PART_BYTES:
            yield began, held
            held = ""
        began = began if held else location
        held = f"{held}\n\n{piece}" if held else piece
    if held:
        yield began, held


def _cut(section: str) -> Iterator[str]:
    if len(section.encode()) <= PART_BYTES:
        yield section
        return
    held: list[str] = []
    size = 0
    for line in section.split("\n"):
        length = len(line.encode()) + 1
        if held and size + length > PART_BYTES:
            yield "\n".join(held)
            held, size = [], 0
        held.append(line)
        size += length
    yield "\n".join(held)
