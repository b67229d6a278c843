"""Bounded parsing of a sandbox's output: lines, bytes, values and nesting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeGuard

from sandbox import exactjson
from sandbox.errors import SessionBroken
from sandbox.wire.redaction import SHORT, may_unpack

MAX_CONTAINERS, MAX_VALUES = 1_000_000, 4_000_000
"""Of one line. An API's answer of 8 MiB may come twice: as values, and as text in a block."""
_SHORT = 4096
"""Bytes of a text whose brackets are sooner counted than found."""
_FEW = 1_000
"""Brackets that are sooner found one by one than counted."""
MAX_ID = 200
_ENDS = 300
"""Bytes at the ends of a line that cannot be read in which its id is looked for."""
_ID = re.compile(rb'"id"\s*:\s*(?:"([^"\\]{1,64})"|([0-9]{1,18}))')


_TOO_MUCH = "the server sent more than it may before it answers; it was stopped"
_TOO_LONG = "the server sent a line longer than allowed; it was stopped"


class LineGuard:
    """Splits a byte stream into lines, with a limit of bytes per line and up to the next answer."""

    def __init__(self, line_bytes: int, answer_bytes: int) -> None:
        self._line_bytes, self._answer_bytes, self._left = line_bytes, answer_bytes, answer_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def split_lines(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, but for empty ones. Raises SessionBroken past a
        limit.
        """
        self._left -= len(chunk)
        if self._left < 0:
            raise SessionBroken(_TOO_MUCH)
        last = len(chunk) - 1
        # The usual chunk is one whole line, which needs no copy of its parts.
        if not self._parts and 0 <= last <= self._line_bytes and chunk.find(b"\n") == last:
            if last:
                yield chunk[:last]
            return
        if b"\n" not in chunk:
            self._keep_part(chunk)
            return
        head, *rest, tail = chunk.split(b"\n")
        self._keep_part(head)
        # Empty lines are left out here: a server may send nothing else.
        for part in (b"", *filter(None, rest)):
            self._keep_part(part)
            line = b"".join(self._parts)
            self._parts, self._size = [], 0
            if line:
                yield line
        self._keep_part(tail)

    def note_answer(self) -> None:
        """What somebody waited for has come: as much may come again."""
        self._left = self._answer_bytes

    @property
    def pending(self) -> int:
        """Bytes of a line whose end has not come yet."""
        return self._size

    def admit_line(self, line: bytes) -> None:
        """Count a line that came whole. Raises SessionBroken past a limit."""
        self._left -= len(line)
        if self._left < 0:
            raise SessionBroken(_TOO_MUCH)
        if len(line) > self._line_bytes:
            raise SessionBroken(_TOO_LONG)

    def _keep_part(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._line_bytes:
            raise SessionBroken(_TOO_LONG)
        if part:
            self._parts.append(part)


class Message(dict[str, Any]):
    """A JSON-RPC message; `size` is the number of bytes that it came in, `may_unpack` says that it
    may hold gzip.
    """

    size = 0
    may_unpack = False


def parse_message(line: bytes, nesting: int) -> Message | None:
    """The JSON-RPC message of a line; None if it is not one, nested deeper than `nesting`, or made
    of so many values that parsing it would hold up every thread.
    """
    if _has_too_much(line):
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
    received.may_unpack = len(line) > SHORT and may_unpack(line)
    return received


def find_answered(line: bytes) -> str:
    """The id of the request that a line means to answer, though it is no message; "" if none is
    found. Where the line cannot be read, the id is looked for at its ends.
    """
    if not line.lstrip()[:1] == b"{":
        return ""
    try:
        value = None if _has_too_much(line) else exactjson.loads(line)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        identity = value.get("id")
        return str(identity) if "method" not in value and is_id(identity) else ""
    for end in (line[:_ENDS], line[-_ENDS:]):
        if b'"method"' in end:
            return ""
        if found := _ID.search(end):
            return (found[1] or found[2]).decode(errors="replace")
    return ""


def is_id(value: Any) -> TypeGuard[str | int]:
    """Whether a foreign value can be the id of a JSON-RPC message that is answered."""
    if isinstance(value, str):
        return len(value) <= MAX_ID
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64


def _has_too_much(line: bytes) -> bool:
    # A container takes two bytes, and so does a value after another one: most lines are too short
    # for so many, and to count them takes longer than to parse a long text.
    size = len(line)
    if size > 2 * MAX_CONTAINERS and _has_brackets(line, _FEW):
        if line.count(b"[") + line.count(b"{") > MAX_CONTAINERS:
            return True
    return size > 2 * MAX_VALUES and line.count(b",") > MAX_VALUES


def is_deep(written: bytes, value: Any, limit: int) -> bool:
    """Whether a JSON value is nested deeper than `limit`; `written` is its text."""
    if len(written) < _SHORT:
        many = written.count(b"[") + written.count(b"{") > limit
    else:
        many = _has_brackets(written, limit)
    return many and measure_depth(value, limit) > limit


def _has_brackets(written: bytes, limit: int) -> bool:
    """Whether a text holds more than `limit` brackets; looks at no more of it."""
    found = 0
    for bracket in (b"[", b"{"):
        at = written.find(bracket)
        while at >= 0:
            found += 1
            if found > limit:
                return True
            at = written.find(bracket, at + 1)
    return False


def measure_depth(value: Any, limit: int) -> int:
    """Levels of arrays and objects in a JSON value; counting stops past `limit`."""
    level, layer = 0, [value] if type(value) in CONTAINERS else []
    while layer and level <= limit:
        # By the very type: parsed JSON has no other, and that is a third of the time.
        layer = [
            item
            for holder in layer
            for item in (holder.values() if type(holder) is dict else holder)
            if type(item) in CONTAINERS
        ]
        level += 1
    return level


CONTAINERS = frozenset({dict, list})
