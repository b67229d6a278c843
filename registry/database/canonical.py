"""Values as text and back: canonical for hashing, bounded for storing."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no blanks, ASCII. Raises ValueError on NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def compact(value: Any) -> str:
    """JSON in the value's own order. ASCII, so that lone surrogates can be stored as well."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def bounded(value: Any, limit: int) -> str:
    """JSON of a value, or, where it is longer than `limit` characters or is none, of a marker.

    The marker is `{"truncated": true, "length", "sha256", "head"}` of the whole JSON text, or
    `{"unstorable": reason}` for what JSON cannot say.
    """
    try:
        text = compact(value)
    except (TypeError, ValueError, RecursionError) as error:
        return compact({"unstorable": clean(f"{type(error).__name__}: {error}", 200)})
    if len(text) <= limit:
        return text
    return compact(
        {"truncated": True, "length": len(text), "sha256": sha256(text), "head": text[: limit // 8]}
    )


def clean(text: str, limit: int) -> str:
    """Text that any database can store: no NUL, no lone surrogates, at most `limit` characters."""
    return text[:limit].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
