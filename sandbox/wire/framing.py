"""Bounded parsing of a sandbox's output: lines, bytes, values and nesting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox import exactjson
from sandbox.errors import SessionBroken

MAX_CONTAINERS, MAX_VALUES = 1_000_000, 4_000_000
"""Of one line. An API's answer of 8 MiB may come twice: as values, and as text in a block."""


class LineGuard:
    """Splits a byte stream into lines, with a limit of bytes per line and per session."""

    def __init__(self, line_bytes: int, session_bytes: int) -> None:
        self._line_bytes, self._left = line_bytes, session_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def split_lines(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes. Raises SessionBroken past a limit."""
        self._left -= len(chunk)
        if self._left < 0:
            raise SessionBroken("the server sent more than a session may; it was stopped")
        last = len(chunk) - 1
        # The usual chunk is one whole line, which needs no copy of its parts.
        if not self._parts and 0 <= last <= self._line_bytes and chunk.find(b"\n") == last:
            yield chunk[:last]
            return
        head, *rest = chunk.split(b"\n")
        self._keep_part(head)
        for part in rest:
            line = b"".join(self._parts)
            self._parts, self._size = [], 0
            self._keep_part(part)
            yield line

    def _keep_part(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._line_bytes:
            raise SessionBroken("the server sent a line longer than allowed; it was stopped")
        if part:
            self._parts.append(part)


class Message(dict[str, Any]):
    """A JSON-RPC message; `size` is the number of bytes that it came in."""

    size = 0


def parse_message(line: bytes, nesting: int) -> Message | None:
    """The JSON-RPC message of a line; None if it is not one, nested deeper than `nesting`, or made
    of so many values that parsing it would hold up every thread.
    """
    if line.count(b"[") + line.count(b"{") > MAX_CONTAINERS or line.count(b",") > MAX_VALUES:
        return None
    try:
        message = exactjson.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None
    if is_deep(line, message, nesting):
        return None
    received = Message(message)
    received.size = len(line)
    return received


def is_deep(written: bytes, value: Any, limit: int) -> bool:
    """Whether a JSON value is nested deeper than `limit`; `written` is its text."""
    brackets = written.count(b"[") + written.count(b"{")
    return brackets > limit and measure_depth(value, limit) > limit


def measure_depth(value: Any, limit: int) -> int:
    """Levels of arrays and objects in a JSON value; counting stops past `limit`."""
    level, layer = 0, [value]
    while layer and level <= limit:
        # By the very type: parsed JSON has no other, and that is a third of the time.
        inner = [
            item
            for holder in layer
            for item in (
                holder.values() if type(holder) is dict else holder if type(holder) is list else ()
            )
        ]
        level, layer = level + 1, [item for item in inner if type(item) in _CONTAINERS]
    return level


_CONTAINERS = frozenset({dict, list})
