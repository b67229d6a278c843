"""A tool's result as a client gets it from a server that stands by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.runner import Failure

Result = Mapping[str, Any]
MAX_BASE64 = 4 * 1024 * 1024
"""More than this of an image or a file is not put into a conversation."""
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO = frozenset(
    {"audio/mpeg", "audio/wav", "audio/x-wav", "audio/ogg", "audio/flac", "audio/aac"}
)


def delivered(result: Result, failure: Failure | None) -> Result:
    """The result of a call whose output schema the client was not given.

    A successful answer that breaks its schema is delivered with a note and is no error: whoever is
    told that a write failed does it again. Bytes become an image, audio or a resource.
    """
    if failure is not None and failure.kind == "schema":
        result = _flagged(result, failure)
    structured = result.get("structuredContent")
    if isinstance(structured, Mapping) and isinstance(structured.get("base64"), str):
        result = _as_media(result, structured)
    return result


def _flagged(result: Result, failure: Failure) -> Result:
    kept = {key: value for key, value in result.items() if key != "isError"}
    if result.get("isError"):
        return kept
    note = f"The answer breaks its schema at {failure.where or '/'}: {failure.message}"
    return {**kept, "content": [{"type": "text", "text": note}, *result["content"]]}


def _as_media(result: Result, structured: Mapping[str, Any]) -> Result:
    data, kind = structured["base64"], str(structured.get("content_type") or "")
    others = [block for block in result["content"] if block.get("text") != data]
    told = {key: value for key, value in structured.items() if key != "base64"}
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return {
        **result,
        "content": [*others, _block(data, kind, size)],
        "structuredContent": {**told, "bytes": size},
    }


def _block(data: str, kind: str, size: int) -> dict[str, Any]:
    if len(data) > MAX_BASE64:
        shown = MAX_BASE64 * 3 // 4
        text = f"{size} bytes of {kind or 'binary data'}, which is more than the {shown} shown here"
        return {"type": "text", "text": text}
    if kind in IMAGES or kind in AUDIO:
        return {"type": kind.partition("/")[0], "data": data, "mimeType": kind}
    resource = {"uri": "answer:body", "blob": data, **({"mimeType": kind} if kind else {})}
    return {"type": "resource", "resource": resource}
