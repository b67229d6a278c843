"""JSON at orjson's speed without its loss: integers beyond 64 bits stay what they are."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_LONG_INTEGER = re.compile(rb"[0-9]{19}")


def loads(content: bytes) -> Any:
    """Parse. Raises ValueError or RecursionError."""
    return json.loads(content) if _LONG_INTEGER.search(content) else orjson.loads(content)


def dumps(value: Any) -> bytes:
    """Write compactly as UTF-8. Raises TypeError or ValueError for what is no JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
