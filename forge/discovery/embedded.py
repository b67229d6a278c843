"""Descriptions that a documentation page or its script holds itself, as swagger-ui-express,
Litestar and Redoc's bundles write them, or as JSON within a string, as oRPC does.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_BYTES = 8 * 1024 * 1024
MAX_MARKS = 4
MAX_STARTS = 8
_MARK = re.compile(r"\"(?:openapi|swagger)\"\s{0,8}:\s{0,8}\"[23]\.\d")
_ESCAPED_MARK = re.compile(r"\\\"(?:openapi|swagger)\\\"\s{0,8}:\s{0,8}\\\"[23]\.\d")
"""The version as it stands within a string of a script."""
_DECODER = json.JSONDecoder()


def find_embedded_description(text: str) -> bytes | None:
    """Return the JSON of the first object in a text that is an OpenAPI description, else None.

    The object that holds the version is looked for backwards from it, so that the time does not
    depend on what else the text has.
    """
    text = text[:MAX_BYTES]
    return _find_object(text) or _find_in_string(text)


def _find_in_string(text: str) -> bytes | None:
    """Read the string around the first version that is written as part of one."""
    mark = _ESCAPED_MARK.search(text)
    start = text.rfind('"{', 0, mark.start()) if mark else -1
    held = _decode_value(text, start) if start >= 0 else None
    found = _decode_value(held, 0) if isinstance(held, str) else None
    is_found = isinstance(found, dict) and _is_description(found)
    return json.dumps(found).encode() if is_found else None


def _find_object(text: str) -> bytes | None:
    for number, mark in enumerate(_MARK.finditer(text)):
        if number == MAX_MARKS:
            break
        start = mark.start()
        for _ in range(MAX_STARTS):
            start = text.rfind("{", 0, start)
            if start < 0:
                break
            found = _decode_value(text, start)
            if isinstance(found, dict) and _is_description(found):
                return json.dumps(found).encode()
    return None


def _decode_value(text: str, start: int) -> Any:
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _is_description(value: dict[str, Any]) -> bool:
    version = value.get("openapi") or value.get("swagger")
    return isinstance(version, str) and isinstance(value.get("paths"), dict)
