"""What a third-party server answers, cut down to what MCP knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.errors import SessionBroken

MAX_BLOCKS = 1000
METHOD_NOT_FOUND = -32601
BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})


def read_abilities(capabilities: Any) -> frozenset[str]:
    """What a server says that it can do beside tools (`sandbox.offer.ABILITIES`)."""
    said = capabilities if isinstance(capabilities, dict) else {}
    plain = ("prompts", "resources", "completions", "logging")
    found = {name for name in plain if isinstance(said.get(name), dict)}
    if "resources" in found and said["resources"].get("subscribe") is True:
        found.add("subscribe")
    return frozenset(found)


def is_unknown(answer: Mapping[str, Any]) -> bool:
    """Whether a server says that it has no such method: it lists nothing of the kind then."""
    error = answer.get("error")
    return isinstance(error, dict) and error.get("code") == METHOD_NOT_FOUND


def read_page(answer: Mapping[str, Any], member: str) -> tuple[list[Mapping[str, Any]], str]:
    """The items of one page and the next one's cursor. Raises SessionBroken."""
    result = answer.get("result")
    items = result.get(member) if isinstance(result, dict) else None
    cursor = result.get("nextCursor") if isinstance(result, dict) else None
    sound = isinstance(items, list) and all(isinstance(item, dict) for item in items)
    if not sound or not isinstance(cursor, str | None) or items is None:
        raise SessionBroken(f"the server's list of {member} is not one; it was stopped")
    return items, cursor or ""


def presentable(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result with the parts that are MCP's and nothing beside them."""
    if result.get("resultType", "complete") != "complete":
        text = "The server wants to ask back before it answers, which it may not."
        return {"isError": True, "content": [{"type": "text", "text": text}]}
    kept: dict[str, Any] = {}
    content = result.get("content")
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, dict)]
        known = [block for block in blocks if block.get("type") in BLOCKS]
        kept["content"] = [_without_meta(block) for block in known[:MAX_BLOCKS]]
    elif "structuredContent" in result:
        kept["content"] = []
    if "structuredContent" in result:
        kept["structuredContent"] = result["structuredContent"]
    if result.get("isError"):
        kept["isError"] = True
    return kept


def _without_meta(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "_meta"}
