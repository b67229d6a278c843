"""What comes out of a sandbox, bounded: lines, bytes, nesting, strays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox import exactjson
from sandbox.errors import SessionBroken

MAX_CONTAINERS, MAX_VALUES = 1_000_000, 4_000_000
"""Of one line. What an API's 8 MiB hold comes twice at most: as values, and written in a text."""


class LineGuard:
    """Splits a byte stream into lines, holding it to a size per line and for the whole session."""

    def __init__(self, line_bytes: int, session_bytes: int) -> None:
        self._line_bytes, self._left = line_bytes, session_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def lines(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes. Raises SessionBroken past a limit."""
        self._left -= len(chunk)
        if self._left < 0:
            raise SessionBroken("the server sent more than a session may; it was stopped")
        last = len(chunk) - 1
        if not self._parts and 0 <= last <= self._line_bytes and chunk.find(b"\n") == last:
            yield chunk[:last]
            return
        head, *rest = chunk.split(b"\n")
        self._keep(head)
        for part in rest:
            line = b"".join(self._parts)
            self._parts, self._size = [], 0
            self._keep(part)
            yield line

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._line_bytes:
            raise SessionBroken("the server sent a line longer than allowed; it was stopped")
        if part:
            self._parts.append(part)


def parse_message(line: bytes, nesting: int) -> dict[str, Any] | None:
    """The JSON-RPC message of a line, or None where it is none, nested too deep, or made of so many
    values that reading it would hold up everything else.
    """
    if line.count(b"[") + line.count(b"{") > MAX_CONTAINERS or line.count(b",") > MAX_VALUES:
        return None
    try:
        message = exactjson.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None
    return None if is_deep(line, message, nesting) else message


def is_deep(written: bytes, value: Any, limit: int) -> bool:
    """Whether a JSON value, which was written so, is nested deeper."""
    brackets = written.count(b"[") + written.count(b"{")
    return brackets > limit and depth(value, limit) > limit


def depth(value: Any, limit: int) -> int:
    """How deep arrays and objects are nested in a JSON value; stops counting past `limit`."""
    level, layer = 0, [value]
    while layer and level <= limit:
        inner: list[Any] = []
        for item in layer:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level, layer = level + 1, [item for item in inner if isinstance(item, dict | list)]
    return level
