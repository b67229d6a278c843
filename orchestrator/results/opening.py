"""The content of a tool's MCP result for a person who reads it, without what it is wrapped in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sandbox.wire.content import join_texts

_ENVELOPE = frozenset({"status", "body", "text", "content_type", "headers"})
"""What our HTTP tools answer with (docs/runtime-protocol.md)."""


def open_result(
    result: Mapping[str, Any], parse: Callable[[str], Any]
) -> tuple[Any, tuple[str, ...]]:
    """What a result gives, and what it tells beside that. Where none of its texts is JSON they are
    words to a reader, and say more than its structure. `parse` reads a text as JSON; only an object
    or a list counts.
    """
    content = [each for each in result.get("content") or () if isinstance(each, Mapping)]
    texts = [str(block.get("text", "")) for block in content if block.get("type") == "text"]
    structured = result.get("structuredContent")
    if not texts and structured is not None:
        return structured, ()
    own = next((text for text in texts if isinstance(parse(text), dict | list)), None)
    if own is None or result.get("isError"):
        return join_texts(content), ()
    value = structured if structured is not None else parse(own)
    return value, tuple(text for text in texts if text is not own)


def is_http_answer(value: Mapping[str, Any]) -> bool:
    """Whether a value is what our HTTP tools answer with: a status, and what came with it."""
    return "status" in value and value.keys() <= _ENVELOPE
