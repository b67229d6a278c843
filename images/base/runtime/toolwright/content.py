"""Content that a tool gives beside JSON values: text as it is, images, audio, documents.

https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

from __future__ import annotations

import binascii

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Content:
    """Content blocks as a tool returns them; `structured` is the result's `structuredContent`."""

    def __init__(self, blocks: list[dict[str, Any]], structured: dict[str, Any]) -> None:
        self.blocks, self.structured = blocks, structured


def text(value: str) -> Content:
    return _one({"type": "text", "text": value})


def image(data: bytes | str, mime_type: str) -> Content:
    """An image: its bytes, or those in base64, and its type, such as `image/png`."""
    return _one({"type": "image", "data": _base64(data), "mimeType": mime_type})


def audio(data: bytes | str, mime_type: str) -> Content:
    """A recording: its bytes, or those in base64, and its type, such as `audio/wav`."""
    return _one({"type": "audio", "data": _base64(data), "mimeType": mime_type})


def document(uri: str, value: bytes | str, mime_type: str) -> Content:
    """An embedded resource: text, or bytes, under a URI."""
    form = {"text": value} if isinstance(value, str) else {"blob": _base64(value)}
    return _one({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, **form}})


def mixed(*parts: Content | str, structured: dict[str, Any] | None = None) -> Content:
    """Several one after the other; `structured` is what programs get of it."""
    blocks = [
        block for part in parts for block in (text(part) if isinstance(part, str) else part).blocks
    ]
    return Content(blocks, structured or {})


def _one(block: dict[str, Any]) -> Content:
    return Content([block], {})


def _base64(data: bytes | str) -> str:
    return data if isinstance(data, str) else binascii.b2a_base64(data, newline=False).decode()
