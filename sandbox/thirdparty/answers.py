"""What a third-party server answers to requests beside its tools, read as hostile text.

https://modelcontextprotocol.io/specification/2025-11-25/server/resources, prompts, and
utilities/completion; 2026-07-28 has the same results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.cleantext import clean_json, clean_text
from sandbox.content import MAX_BLOCKS, content_problem, without_secrets
from sandbox.redaction import Redaction

READ, GET, COMPLETE = "resources/read", "prompts/get", "completion/complete"
MAX_VALUES = 100
MAX_VALUE = 1000
MAX_MESSAGE = 500
INTERNAL, INVALID_PARAMS, NOT_FOUND = -32603, -32602, -32002
_ROLES = frozenset({"user", "assistant"})
_ASKS_BACK = "the server wants to ask back before it answers, which it may not"


@dataclass(frozen=True)
class Material:
    """An answer: its `result`, or the `code` and `message` of a JSON-RPC error.

    `dropped` counts the parts of it that are not MCP's, or too many.
    """

    result: Mapping[str, Any] | None
    code: int = 0
    message: str = ""
    dropped: int = 0


def refused(message: str, code: int = INTERNAL) -> Material:
    return Material(None, code, clean_text(message)[:MAX_MESSAGE])


def read_material(method: str, answer: Mapping[str, Any], hide: Redaction) -> Material:
    """The answer to a request of that method, without secrets and without invisible text."""
    error = answer.get("error")
    if error is not None:
        return _error(hide.value(error))
    result = answer.get("result")
    if not isinstance(result, Mapping):
        return refused("the server's answer is not a result")
    if result.get("resultType", "complete") != "complete":
        return refused(_ASKS_BACK)
    readers = {READ: _contents, GET: _messages, COMPLETE: _completion}
    return readers[method](result, hide)


def _error(error: Any) -> Material:
    said = error if isinstance(error, Mapping) else {}
    message = said.get("message")
    told = message if isinstance(message, str) and message else "the server refused, without a word"
    code = said.get("code")
    return refused(told, code if code in (INVALID_PARAMS, NOT_FOUND) else INTERNAL)


def _contents(result: Mapping[str, Any], hide: Redaction) -> Material:
    listed = result.get("contents")
    if not isinstance(listed, list):
        return refused("the server's answer has no list of contents")
    parts = [_part(item) for item in listed[:MAX_BLOCKS] if isinstance(item, Mapping)]
    blocks = _safe([{"type": "resource", "resource": part} for part in parts], hide)
    problem = content_problem(blocks)
    if problem:
        return refused(f"the server's resource is none: {problem}")
    contents = [block["resource"] for block in blocks]
    return Material({"contents": contents}, dropped=len(listed) - len(contents))


def _safe(blocks: list[dict[str, Any]], hide: Redaction) -> list[dict[str, Any]]:
    told = clean_json(without_secrets({"result": {"content": blocks}}, hide))
    safe: list[dict[str, Any]] = told["result"]["content"]
    return safe


def _part(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in ("uri", "mimeType", "text", "blob") if key in item}


def _messages(result: Mapping[str, Any], hide: Redaction) -> Material:
    listed = result.get("messages")
    if not isinstance(listed, list):
        return refused("the server's answer has no list of messages")
    kept = [item for item in listed[:MAX_BLOCKS] if _is_message(item)]
    blocks = _safe([_bare(item["content"]) for item in kept], hide)
    problem = content_problem(blocks)
    if problem:
        return refused(f"the server's prompt is none: {problem}")
    roles = [item["role"] for item in kept]
    told = zip(roles, blocks, strict=True)
    made: dict[str, Any] = {"messages": [{"role": role, "content": block} for role, block in told]}
    if isinstance(result.get("description"), str):
        made["description"] = clean_text(hide.text(result["description"]))[:MAX_VALUE]
    return Material(made, dropped=len(listed) - len(kept))


def _is_message(item: Any) -> bool:
    said = item if isinstance(item, Mapping) else {}
    return said.get("role") in _ROLES and isinstance(said.get("content"), Mapping)


def _bare(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != "_meta"}


def _completion(result: Mapping[str, Any], hide: Redaction) -> Material:
    said = result.get("completion")
    values = said.get("values") if isinstance(said, Mapping) else None
    if not isinstance(said, Mapping) or not isinstance(values, list):
        return refused("the server's answer has no list of values")
    kept = [value for value in values if isinstance(value, str) and len(value) <= MAX_VALUE]
    made: dict[str, Any] = {"values": clean_json(hide.value(kept[:MAX_VALUES]))}
    total = said.get("total")
    if isinstance(total, int) and not isinstance(total, bool) and 0 <= total < 1 << 53:
        made["total"] = total
    if isinstance(said.get("hasMore"), bool):
        made["hasMore"] = said["hasMore"]
    return Material({"completion": made}, dropped=len(values) - len(made["values"]))
