"""URL templates of operations, as expressions that requests are compared with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl

_PLACEHOLDER = re.compile(r"\{([^{}/]*)\}")


@dataclass(frozen=True)
class UrlTemplate:
    """`path` matches scheme to path and takes one group per name. `query` is the template's own
    pairs that are fixed, `slots` those whose value is a placeholder, by its name.
    """

    path: re.Pattern[str]
    names: tuple[str, ...]
    query: tuple[tuple[str, str], ...]
    slots: tuple[tuple[str, str], ...]


@lru_cache(maxsize=4_096)
def url_template(url: str) -> UrlTemplate:
    """Read a URL template such as `https://api.example.com/zones/{id}?action=list`."""
    whole, _, query = url.partition("#")[0].partition("?")
    pairs = parse_qsl(query, True)
    slots = tuple((name, text[1:-1]) for name, text in pairs if _PLACEHOLDER.fullmatch(text))
    fixed = tuple(pair for pair in pairs if not _PLACEHOLDER.search(pair[1]))
    pieces = _PLACEHOLDER.split(whole)
    expression = "".join(
        "([^/?#]*)" if at % 2 else _literal(piece) for at, piece in enumerate(pieces)
    )
    return UrlTemplate(re.compile(expression + r"\Z"), tuple(pieces[1::2]), fixed, slots)


def _literal(piece: str) -> str:
    """Literal text may stand on the wire escaped or not."""
    return "".join(
        re.escape(letter)
        if (letter.isalnum() and letter.isascii()) or letter in "/:.-_~"
        else f"(?:{re.escape(letter)}|{_escaped(letter)})"
        for letter in piece
    )


def _escaped(letter: str) -> str:
    return "".join(f"(?:%{byte:02X}|%{byte:02x})" for byte in letter.encode())
