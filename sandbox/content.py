"""The content blocks of a tool's result, as what comes out of a sandbox may have them.

https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from typing import Any

MAX_BLOCKS = 1000
MAX_MEDIA = 16 * 1024 * 1024
"""Base64 characters of all images, recordings and documents of one result."""

_MIME = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,120}(?:; ?[\w.+-]{1,40}=[\w.+\"-]{1,80}){0,4}\Z", re.A)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[!-~]{1,2000}\Z")


def content_problem(content: Any) -> str:
    """What keeps a value from being the `content` of a tool's result; empty where nothing does."""
    if not isinstance(content, list) or len(content) > MAX_BLOCKS:
        return f"its content is no list of at most {MAX_BLOCKS} blocks"
    if not all(isinstance(block, dict) for block in content):
        return "a block of its content is no object"
    if sum(map(_media_size, content)) > MAX_MEDIA:
        return f"its content has more than {MAX_MEDIA} characters of base64"
    return next(filter(None, map(_block_problem, content)), "")


def _block_problem(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return "" if isinstance(block.get("text"), str) else "a text block has no text"
    if kind in ("image", "audio"):
        return _media_problem(block)
    if kind == "resource":
        return _resource_problem(block.get("resource"))
    if kind == "resource_link":
        return "" if _is_uri(block) and isinstance(block.get("name"), str) else "a link is none"
    return "a block of its content is of an unknown type"


def _media_problem(block: Mapping[str, Any]) -> str:
    if not isinstance(block.get("mimeType"), str) or not _MIME.match(block["mimeType"]):
        return "an image or a recording has no media type"
    return "" if _is_base64(block.get("data")) else "an image or a recording is not base64"


def _resource_problem(resource: Any) -> str:
    if not isinstance(resource, dict) or not _is_uri(resource):
        return "an embedded resource has no URI"
    kind = resource.get("mimeType")
    if kind is not None and (not isinstance(kind, str) or not _MIME.match(kind)):
        return "an embedded resource has no media type"
    if ("text" in resource) == ("blob" in resource):
        return "an embedded resource has to have either text or bytes"
    sound = isinstance(resource.get("text"), str) or _is_base64(resource.get("blob"))
    return "" if sound else "an embedded resource's content is neither text nor base64"


def _media_size(block: Mapping[str, Any]) -> int:
    resource = block.get("resource")
    data = resource.get("blob") if isinstance(resource, dict) else block.get("data")
    return len(data) if isinstance(data, str) else 0


def _is_uri(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("uri"), str) and _URI.match(value["uri"]) is not None


def _is_base64(data: Any) -> bool:
    if not isinstance(data, str):
        return False
    try:
        binascii.a2b_base64(data.encode(), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        return False
    return True
