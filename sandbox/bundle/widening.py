"""Widenings: types and values that answers had, and that the answer schemas accept beyond the API's
document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.credential import quote_toml

SCALARS = ("boolean", "integer", "null", "number", "string")
"""The types that may be added. An undescribed array or object would accept anything."""
MAX_WIDENINGS = 100
"""Places of a server. One list of a real API differs in a dozen; at more than these its description
is to be replaced, not widened.
"""
MAX_LEARNED = 80
"""Places after which a probe teaches no more, so that repairs find some left."""
MAX_TYPES, MAX_VALUES = 2, 8
VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,39}\Z")
"""The form of an added enum value: models read it, so it must not be able to hold a sentence."""
_POINTER = re.compile(r"(?:/[^/\x00-\x1f\x7f]{0,100}){0,30}\Z")


@dataclass(frozen=True)
class Widening:
    """Types and enum values to accept at `where`: a JSON pointer (RFC 6901) into the answers of
    `tool`, in which `*` is any item of a list. Raises ValueError.
    """

    tool: str
    where: str
    types: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.types and not self.values:
            raise ValueError("a widening adds a type or a value")
        if len(self.types) > MAX_TYPES or not set(self.types) <= set(SCALARS):
            raise ValueError(f"types are at most {MAX_TYPES} of {', '.join(SCALARS)}")
        if len(self.values) > MAX_VALUES or not all(map(VALUE.match, self.values)):
            raise ValueError(f"values are at most {MAX_VALUES} words of up to 40 plain letters")
        if len(self.tool) > 40 or not _POINTER.match(self.where):
            raise ValueError("tool or where is not a name and a JSON pointer")

    def __str__(self) -> str:
        added = [*self.types, *map(quote_toml, self.values)]
        return f"{self.tool}: {self.where or '/'} may also be {', '.join(added)}"


def render_widenings(widenings: Iterable[Widening]) -> list[str]:
    """The tables `[[widened]]` of a bundle.toml, line by line."""
    lines = []
    for one in widenings:
        lines += [
            "",
            "[[widened]]",
            f"tool = {quote_toml(one.tool)}",
            f"where = {quote_toml(one.where)}",
        ]
        for name, values in (("types", one.types), ("values", one.values)):
            if values:
                lines.append(f"{name} = [{', '.join(map(quote_toml, values))}]")
    return lines


def parse_widenings(tables: Any) -> tuple[Widening, ...]:
    """The inverse, of the parsed tables. Raises ValueError."""
    if not isinstance(tables, list) or len(tables) > MAX_WIDENINGS:
        raise ValueError(f"widened is no list of at most {MAX_WIDENINGS} tables")
    return tuple(_parse_widening(number, table) for number, table in enumerate(tables))


def _parse_widening(number: int, table: Any) -> Widening:
    where = f"widened[{number}]"
    if not isinstance(table, Mapping) or not set(table) <= {"tool", "where", "types", "values"}:
        raise ValueError(f"{where}: wants tool, where, types and values")
    lists = [table.get(name, []) for name in ("types", "values")]
    texts = [table.get("tool"), table.get("where"), *(v for each in lists for v in each)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{where}: holds something that is no text")
    try:
        return Widening(table["tool"], table["where"], *map(tuple, lists))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
