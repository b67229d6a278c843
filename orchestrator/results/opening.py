"""The content of a tool's MCP result for a person who reads it, without what it is wrapped in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sandbox.wire.content import join_texts

_ENVELOPE = frozenset({"status", "body", "text", "content_type", "headers"})
"""What our HTTP tools answer with (docs/runtime-protocol.md)."""
MAX_LINK = 1000
_NEXT_LINK = re.compile(r"<([^<>]*)>[^<>,]*;\s*rel=\"?[^\",;<>]*\bnext\b", re.IGNORECASE)
_NEXT_PAGES = frozenset(
    f"{prefix}next-{what}" for prefix in ("", "x-") for what in ("page", "page-token", "cursor")
)
"""Headers of APIs that name the next page without a Link; they are empty on the last one."""


def open_result(
    result: Mapping[str, Any], parse: Callable[[str], Any]
) -> tuple[Any, tuple[str, ...]]:
    """What a result gives, and what it tells beside that. Where none of its texts is JSON they are
    words to a reader, and say more than its structure. `parse` reads a text as JSON; only an object
    or a list counts. What is told says also that a next page follows where only a header says so.
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
    return value, (*(text for text in texts if text is not own), *_describe_next_page(value))


def is_http_answer(value: Mapping[str, Any]) -> bool:
    """Whether a value is what our HTTP tools answer with: a status, and what came with it."""
    return "status" in value and value.keys() <= _ENVELOPE


def _describe_next_page(value: Any) -> Iterator[str]:
    """What an HTTP answer's headers say of a page behind this one."""
    headers = value.get("headers") if isinstance(value, Mapping) and is_http_answer(value) else None
    if not isinstance(headers, Mapping):
        return
    link = _NEXT_LINK.search(str(headers.get("link", ""))[:MAX_LINK])
    named = (str(headers[name])[:MAX_LINK] for name in sorted(_NEXT_PAGES & headers.keys()))
    target = link[1] if link else next(filter(None, named), "")
    if target:
        yield f"This is one page; the API names the next one: {target}"
