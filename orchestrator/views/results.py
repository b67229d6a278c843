"""MCP tool results: successful and failed ones, and their text blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox import exactjson

Result = dict[str, Any]


def build_answer(value: Mapping[str, Any], text: str = "") -> Result:
    """A successful result: the value, and for a model a text (the value as JSON by default)."""
    content = text or exactjson.dumps(value).decode()
    return {"content": [{"type": "text", "text": content}], "structuredContent": dict(value)}


def build_refusal(reason: str, **more: Any) -> Result:
    """A failed result that a model can read."""
    return {
        "isError": True,
        "content": [{"type": "text", "text": reason}],
        "structuredContent": {"error": reason, **more},
    }


def build_text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
