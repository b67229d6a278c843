"""JSON text of values: canonical for hashing, limited in length for storing."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

MAX_INTEGER = 2**63 - 1
"""The largest that a column of SQLite holds (https://www.sqlite.org/datatype3.html)."""
MAX_HEAD = 16_384
"""Characters that are kept of a text that is too long: to see what it was, for it is whole nowhere.
"""
# `json.dumps` would make an encoder for every value.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_PLAIN = frozenset({str, int, bool, type(None)})


def to_canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no blanks, ASCII. Raises ValueError on NaN."""
    return _write_flat(value) or _CANONICAL.encode(value)


def _write_flat(value: Any) -> str:
    """The same text in a tenth of the time, of a list or an object of plain values; "" where orjson
    might write it otherwise.
    """
    if type(value) is dict:
        items: Iterable[Any] = value.values()
    elif type(value) is list:
        items = value
    else:
        return ""
    for item in items:
        if type(item) is float:
            # Others have an exponent, which the two write differently, or are no JSON.
            if not 1e-4 <= item < 1e16:
                return ""
        elif type(item) not in _PLAIN:
            return ""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return ""
    # The standard library escapes this one of the ASCII characters, too.
    return written.decode() if written.isascii() and b"\x7f" not in written else ""


def to_compact_json(value: Any) -> str:
    """JSON in the value's own order. ASCII, so that lone surrogates can be stored as well."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def to_bounded_json(value: Any, limit: int) -> str:
    """JSON of a value, or of a marker where it is longer than `limit` characters or not JSON.

    The marker is `{"truncated": true, "length", "sha256", "head"}` of the whole JSON text, or
    `{"unstorable": reason}` for a value that JSON cannot represent. In the text of a long value a
    number that is not finite may be `null`.
    """
    try:
        written = orjson.dumps(value)
    except TypeError:
        return _write_bounded(value, limit)
    plain = written.isascii()
    if len(written) > limit:
        if plain:
            head = written[: min(limit // 8, MAX_HEAD)].decode()
            return _write_marker(len(written), hashlib.sha256(written).hexdigest(), head)
        return _mark_truncated(iter((written.decode(),)), limit)
    if plain and b"null" not in written:
        return written.decode()
    # A `null` of orjson may have been a number that no JSON text holds.
    return _write_bounded(value, limit, json.JSONEncoder.encode)


def _write_bounded(
    value: Any,
    limit: int,
    write: Callable[[json.JSONEncoder, Any], Iterable[str]] = json.JSONEncoder.iterencode,
) -> str:
    """The same by the standard library, which also writes integers beyond 64 bits and lone
    surrogates: piece by piece, which lets other threads run between the pieces, or at once.
    """
    try:
        written = write(json.JSONEncoder(separators=(",", ":"), allow_nan=False), value)
        return _join_bounded(iter((written,) if isinstance(written, str) else written), limit)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return to_compact_json({"unstorable": clean_text(f"{type(error).__name__}: {error}", 200)})


def _join_bounded(chunks: Iterator[str], limit: int) -> str:
    """The text of the chunks, or its marker where it is longer than `limit`."""
    kept: list[str] = []
    size = 0
    for chunk in chunks:
        kept.append(chunk)
        size += len(chunk)
        if size > limit:
            return _mark_truncated(_chain_text(kept, chunks), limit)
    return "".join(kept)


def _chain_text(kept: list[str], chunks: Iterator[str]) -> Iterator[str]:
    yield "".join(kept)
    yield from chunks


def _mark_truncated(chunks: Iterator[str], limit: int) -> str:
    digest, length, head = hashlib.sha256(), 0, ""
    for chunk in chunks:
        head = head or chunk[: min(limit // 8, MAX_HEAD)]
        length += len(chunk)
        digest.update(chunk.encode())
    return _write_marker(length, digest.hexdigest(), head)


def _write_marker(length: int, digest: str, head: str) -> str:
    return to_compact_json({"truncated": True, "length": length, "sha256": digest, "head": head})


@dataclass(frozen=True)
class BoundedJson:
    """A value as a column holds it: its JSON text or marker (`to_bounded_json`), and its type."""

    text: str
    type_name: str


def bound_json(value: Any, limit: int) -> BoundedJson:
    """A value as a column holds it."""
    return BoundedJson(to_bounded_json(value, limit), type(value).__name__)


@dataclass
class RowConverter:
    """Converts the values of one row to what its columns can hold.

    A value that cannot be stored is replaced by the nearest that can, and described in
    `unstorable` under its column's name.
    """

    unstorable: dict[str, str] = field(default_factory=dict)

    def convert_text(self, column: str, value: Any, limit: int) -> str:
        """Text that any database can store, cut at `limit`."""
        if not isinstance(value, str):
            self._note(column, value)
            return ""
        return clean_text(value, limit)

    def convert_integer(self, column: str, value: Any) -> int | None:
        """An integer of 64 bits, or None."""
        if value is None:
            return None
        if isinstance(value, int) and -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
            return int(value)
        self._note(column, value)
        return None

    def convert_number(self, column: str, value: Any) -> float:
        """A finite number; 0 in the place of all others."""
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
        self._note(column, value)
        return 0.0

    def convert_json(self, column: str, value: Any, limit: int) -> str:
        """The JSON text of a value, or of a marker (`to_bounded_json`); of one that is bounded
        already, as it is.
        """
        is_bounded = isinstance(value, BoundedJson)
        text = value.text if is_bounded else to_bounded_json(value, limit)
        if text.startswith('{"unstorable":'):
            self.unstorable[column] = value.type_name if is_bounded else type(value).__name__
        return text

    def write_notes(self) -> str:
        """What could not be stored, as JSON; "" where all could."""
        return to_compact_json(self.unstorable) if self.unstorable else ""

    def _note(self, column: str, value: Any) -> None:
        self.unstorable[column] = describe_unstorable(value)


def describe_unstorable(value: Any) -> str:
    """A value in a few words, whatever it is: a long integer is never written out."""
    if isinstance(value, int):
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return f"the number {value}"
    return f"a value of the type {type(value).__name__}"


def clean_text(text: str, limit: int) -> str:
    """Text that any database can store: no NUL, no lone surrogates, at most `limit` characters."""
    return text[:limit].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
