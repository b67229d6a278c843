"""JSON by orjson, by the standard library where integers exceed 64 bits, so that none is lost."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_LONG_INTEGER = re.compile(rb"[0-9]{19}")


def loads(content: bytes) -> Any:
    """Parse a JSON text. Raises ValueError or RecursionError."""
    return json.loads(content) if _LONG_INTEGER.search(content) else orjson.loads(content)


def dumps(value: Any) -> bytes:
    """Serialize compactly as UTF-8. Raises TypeError or ValueError for a value that is not JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
