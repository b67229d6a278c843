"""URL templates of operations, as expressions that requests are compared with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl

_PLACEHOLDER = re.compile(r"\{([^{}/]*)\}")


@dataclass(frozen=True)
class UrlTemplate:
    """`path` matches scheme to path and takes one group per name; `query` is fixed pairs."""

    path: re.Pattern[str]
    names: tuple[str, ...]
    query: tuple[tuple[str, str], ...]


@lru_cache(maxsize=4_096)
def url_template(url: str) -> UrlTemplate:
    """Read a URL template such as `https://api.example.com/zones/{id}?action=list`."""
    whole, _, query = url.partition("#")[0].partition("?")
    # A placeholder in a query stands for a query parameter, not for a part of the path.
    fixed = tuple(pair for pair in parse_qsl(query, True) if not _PLACEHOLDER.search(pair[1]))
    pieces = _PLACEHOLDER.split(whole)
    expression = "".join(
        "([^/?#]*)" if at % 2 else _literal(piece) for at, piece in enumerate(pieces)
    )
    return UrlTemplate(re.compile(expression + r"\Z"), tuple(pieces[1::2]), fixed)


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
