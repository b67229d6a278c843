"""An answer of bytes as MCP content: an image, a recording, or else an embedded resource.

https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

from __future__ import annotations

import binascii
import importlib
import re

from .errors import RequestFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .answers import Answer

MAX_BYTES = 3 * 1024 * 1024
"""More than this, 4 MiB in base64, is not put into a conversation."""
# What models take as images; a client that hands on another has its whole conversation refused.
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ALIASES = {"image/jpg": "image/jpeg"}
_TYPE = r"[A-Za-z0-9_.+-]{1,80}/[A-Za-z0-9_.+-]{1,120}\Z"


def sha256(data: bytes) -> str:
    # Loading it takes as long as starting the runtime, and few processes ever see bytes.
    return str(importlib.import_module("hashlib").sha256(data).hexdigest())


def media_type(answer: Answer) -> str:
    """The answer's type as MCP can tell it; what has none, or none that is one, is plain bytes."""
    kind = _ALIASES.get(answer.content_type, answer.content_type)
    return kind if re.match(_TYPE, kind) else "application/octet-stream"


def blocks(answer: Answer, tool: str) -> list[dict[str, Any]]:
    """The answer's bytes as content, after a line that says what they are.

    Raises RequestFailed (`too_large`) past MAX_BYTES.
    """
    kind, size, digest = media_type(answer), len(answer.data), sha256(answer.data)
    told = f"{kind}, {size} bytes, sha256 {digest}"
    if size > MAX_BYTES:
        raise RequestFailed(
            "too_large",
            f"the API answered HTTP {answer.status} {answer.reason}, so what was asked for is "
            f"done, but with {told}: more than the {MAX_BYTES} bytes that a result can carry. Ask "
            "for less where an argument allows it (a smaller size, one page, a range), or fetch it "
            "outside of this conversation",
        )
    data = binascii.b2a_base64(answer.data, newline=False).decode()
    return [{"type": "text", "text": told}, _block(kind, data, f"{tool}/{digest[:16]}")]


def _block(kind: str, data: str, name: str) -> dict[str, Any]:
    if kind in _IMAGES or kind.startswith("audio/"):
        return {"type": kind.partition("/")[0], "data": data, "mimeType": kind}
    resource = {"uri": f"toolwright://answer/{name}", "mimeType": kind, "blob": data}
    return {"type": "resource", "resource": resource}
