"""JSON text of values: canonical for hashing, limited in length for storing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

# `json.dumps` would make an encoder for every value.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no blanks, ASCII. Raises ValueError on NaN."""
    return _CANONICAL.encode(value)


def to_compact_json(value: Any) -> str:
    """JSON in the value's own order. ASCII, so that lone surrogates can be stored as well."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def to_bounded_json(value: Any, limit: int) -> str:
    """JSON of a value, or of a marker where it is longer than `limit` characters or not JSON.

    The marker is `{"truncated": true, "length", "sha256", "head"}` of the whole JSON text, or
    `{"unstorable": reason}` for a value that JSON cannot represent.
    """
    try:
        text = to_compact_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        return to_compact_json({"unstorable": clean_text(f"{type(error).__name__}: {error}", 200)})
    if len(text) <= limit:
        return text
    return to_compact_json(
        {
            "truncated": True,
            "length": len(text),
            "sha256": hash_text(text),
            "head": text[: limit // 8],
        }
    )


def clean_text(text: str, limit: int) -> str:
    """Text that any database can store: no NUL, no lone surrogates, at most `limit` characters."""
    return text[:limit].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
