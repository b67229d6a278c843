"""Splitting of documentation along its sections into parts that fit a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from forge.readers.page import Page, has_request

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
class DocumentationPart:
    """A piece of a page, or several short pages. `number` counts the parts of all pages from 1;
    `location` is the page on which it begins.
    """

    number: int
    location: str
    text: str = field(repr=False)


def split_pages(pages: Iterable[Page]) -> tuple[tuple[DocumentationPart, ...], int]:
    """Return the parts that concern an API, at most MAX_PARTS, and how many there were. Where there
    are too many, parts with requests take precedence.
    """
    pieces = list(_pack_pieces(_split_pieces(pages)))
    telling = [piece for piece in pieces if has_request(piece[1]) or _SAYS.search(piece[1])]
    chosen = telling
    if len(telling) > MAX_PARTS:
        ranked = sorted(telling, key=lambda piece: not has_request(piece[1]))[:MAX_PARTS]
        chosen = [piece for piece in telling if piece in ranked][:MAX_PARTS]
    made = (DocumentationPart(number, *piece) for number, piece in enumerate(chosen, 1))
    return tuple(made), len(telling)


def _split_sections(text: str) -> Iterator[str]:
    starts = [found.start() for found in _HEADING.finditer(text)]
    for start, end in zip([0, *starts], [*starts, len(text)], strict=True):
        if text[start:end].strip():
            yield text[start:end].rstrip()


def _split_pieces(pages: Iterable[Page]) -> Iterator[tuple[str, str]]:
    """Yield (location, text) of all sections; a section that is too long is split between lines."""
    for page in pages:
        for section in _split_sections(page.text):
            for piece in _cut_section(section):
                yield page.location, piece


def _pack_pieces(pieces: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Join consecutive pieces as far as they fit; each part is paired with the location where it
    begins.
    """
    held, began = "", ""
    for location, piece in pieces:
        if held and len(held.encode()) + len(piece.encode()) + 2 > PART_BYTES:
            yield began, held
            held = ""
        began = began if held else location
        held = f"{held}\n\n{piece}" if held else piece
    if held:
        yield began, held


def _cut_section(section: str) -> Iterator[str]:
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
