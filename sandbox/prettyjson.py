"""JSON as a person reads and diffs it: `json.dumps(value, indent=1, ensure_ascii=False)`, byte for
byte, but quick where a value holds the same mapping many times, as tools do their definitions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any

_NEVER_SHARED = 2
"""Mappings of so few members are written anew: looking them up takes as long."""


def pretty(value: Any) -> str:
    """The text. Raises TypeError or ValueError as `json.dumps`."""
    return _Writer().text(value, "\n")


class _Writer:
    """Remembers the text of each mapping by where it is indented."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], str] = {}

    def text(self, value: Any, line: str) -> str:
        """`line` is the line break with the indentation of the value's last line."""
        if isinstance(value, str):
            return encode_basestring(value)
        if isinstance(value, Mapping):
            return self._mapping(value, line) if value else "{}"
        if isinstance(value, list | tuple):
            inner = f"{line} "
            items = f",{inner}".join([self.text(item, inner) for item in value])
            return f"[{inner}{items}{line}]" if value else "[]"
        return json.dumps(value)

    def _mapping(self, value: Mapping[Any, Any], line: str) -> str:
        key = (id(value), len(line))
        known = self._known.get(key)
        if known is not None:
            return known
        inner = f"{line} "
        # Most names and values are strings, for which a call would cost more than their text.
        members = [
            f"{encode_basestring(name) if name.__class__ is str else _name(name)}: "
            f"{encode_basestring(item) if item.__class__ is str else self.text(item, inner)}"
            for name, item in value.items()
        ]
        made = f"{{{inner}{f',{inner}'.join(members)}{line}}}"
        if len(members) > _NEVER_SHARED:
            self._known[key] = made
        return made


def _name(key: Any) -> str:
    if isinstance(key, str):
        return encode_basestring(key)
    # What JSON makes of a number or None as a name.
    return json.dumps({key: 0}, ensure_ascii=False)[1:-4]
