"""Parsing of a third-party server's untrusted answers: lists, resources, prompts, completions.

https://modelcontextprotocol.io/specification/2025-11-25/server/resources, prompts, and
utilities/completion; 2026-07-28 has the same results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.errors import SessionBroken
from sandbox.sanitize import clean_json, clean_text
from sandbox.wire.content import MAX_BLOCKS, find_content_problem, redact_tool_answer
from sandbox.wire.redaction import Redaction

READ, GET, COMPLETE = "resources/read", "prompts/get", "completion/complete"
MAX_VALUES = 100
MAX_VALUE = 1000
MAX_MESSAGE = 500
INTERNAL, INVALID_PARAMS, NOT_FOUND = -32603, -32602, -32002
_ROLES = frozenset({"user", "assistant"})
_ASKS_BACK = "the server wants to ask back before it answers, which it may not"


@dataclass(frozen=True)
class RemoteAnswer:
    """A sanitized answer: its `result`, or the `code` and `message` of a JSON-RPC error.

    `dropped` counts its parts that are malformed, or past a limit.
    """

    result: Mapping[str, Any] | None
    code: int = 0
    message: str = ""
    dropped: int = 0


def build_refused_answer(message: str, code: int = INTERNAL) -> RemoteAnswer:
    return RemoteAnswer(None, code, clean_text(message)[:MAX_MESSAGE])


def read_answer(method: str, answer: Mapping[str, Any], hide: Redaction) -> RemoteAnswer:
    """Parse the answer to a request of `method`, redacted and sanitized."""
    error = answer.get("error")
    if error is not None:
        return _read_error(hide.redact_json(error))
    result = answer.get("result")
    if not isinstance(result, Mapping):
        return build_refused_answer("the server's answer is not a result")
    if result.get("resultType", "complete") != "complete":
        return build_refused_answer(_ASKS_BACK)
    readers = {READ: _read_contents, GET: _read_messages, COMPLETE: _read_completion}
    return readers[method](result, hide)


def _read_error(error: Any) -> RemoteAnswer:
    said = error if isinstance(error, Mapping) else {}
    message = said.get("message")
    told = message if isinstance(message, str) and message else "the server refused, without a word"
    code = said.get("code")
    return build_refused_answer(told, code if code in (INVALID_PARAMS, NOT_FOUND) else INTERNAL)


def _read_contents(result: Mapping[str, Any], hide: Redaction) -> RemoteAnswer:
    listed = result.get("contents")
    if not isinstance(listed, list):
        return build_refused_answer("the server's answer has no list of contents")
    parts = [_select_members(item) for item in listed[:MAX_BLOCKS] if isinstance(item, Mapping)]
    blocks = _sanitize_blocks([{"type": "resource", "resource": part} for part in parts], hide)
    problem = find_content_problem(blocks)
    if problem:
        return build_refused_answer(f"the server's resource is none: {problem}")
    contents = [block["resource"] for block in blocks]
    return RemoteAnswer({"contents": contents}, dropped=len(listed) - len(contents))


def _sanitize_blocks(blocks: list[dict[str, Any]], hide: Redaction) -> list[dict[str, Any]]:
    told = clean_json(redact_tool_answer({"result": {"content": blocks}}, hide))
    safe: list[dict[str, Any]] = told["result"]["content"]
    return safe


def _select_members(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in ("uri", "mimeType", "text", "blob") if key in item}


def _read_messages(result: Mapping[str, Any], hide: Redaction) -> RemoteAnswer:
    listed = result.get("messages")
    if not isinstance(listed, list):
        return build_refused_answer("the server's answer has no list of messages")
    kept = [item for item in listed[:MAX_BLOCKS] if _is_message(item)]
    blocks = _sanitize_blocks([_strip_meta(item["content"]) for item in kept], hide)
    problem = find_content_problem(blocks)
    if problem:
        return build_refused_answer(f"the server's prompt is none: {problem}")
    roles = [item["role"] for item in kept]
    told = zip(roles, blocks, strict=True)
    made: dict[str, Any] = {"messages": [{"role": role, "content": block} for role, block in told]}
    if isinstance(result.get("description"), str):
        made["description"] = clean_text(hide.redact_text(result["description"]))[:MAX_VALUE]
    return RemoteAnswer(made, dropped=len(listed) - len(kept))


def _is_message(item: Any) -> bool:
    said = item if isinstance(item, Mapping) else {}
    return said.get("role") in _ROLES and isinstance(said.get("content"), Mapping)


def _strip_meta(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != "_meta"}


def _read_completion(result: Mapping[str, Any], hide: Redaction) -> RemoteAnswer:
    said = result.get("completion")
    values = said.get("values") if isinstance(said, Mapping) else None
    if not isinstance(said, Mapping) or not isinstance(values, list):
        return build_refused_answer("the server's answer has no list of values")
    kept = [value for value in values if isinstance(value, str) and len(value) <= MAX_VALUE]
    made: dict[str, Any] = {"values": clean_json(hide.redact_json(kept[:MAX_VALUES]))}
    total = said.get("total")
    if isinstance(total, int) and not isinstance(total, bool) and 0 <= total < 1 << 53:
        made["total"] = total
    if isinstance(said.get("hasMore"), bool):
        made["hasMore"] = said["hasMore"]
    return RemoteAnswer({"completion": made}, dropped=len(values) - len(made["values"]))


METHOD_NOT_FOUND = -32601
BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})


def read_abilities(capabilities: Any) -> frozenset[str]:
    """Parse a server's capabilities beside tools (`sandbox.bundle.offer.ABILITIES`)."""
    said = capabilities if isinstance(capabilities, dict) else {}
    plain = ("prompts", "resources", "completions", "logging")
    found = {name for name in plain if isinstance(said.get(name), dict)}
    if "resources" in found and said["resources"].get("subscribe") is True:
        found.add("subscribe")
    return frozenset(found)


def is_unknown(answer: Mapping[str, Any]) -> bool:
    """Whether the answer is "method not found": the server then lists nothing of the kind."""
    error = answer.get("error")
    return isinstance(error, dict) and error.get("code") == METHOD_NOT_FOUND


def read_page(answer: Mapping[str, Any], member: str) -> tuple[list[Mapping[str, Any]], str]:
    """The items of one page and the next cursor, "" at the end. Raises SessionBroken."""
    result = answer.get("result")
    items = result.get(member) if isinstance(result, dict) else None
    cursor = result.get("nextCursor") if isinstance(result, dict) else None
    sound = isinstance(items, list) and all(isinstance(item, dict) for item in items)
    if not sound or not isinstance(cursor, str | None) or items is None:
        raise SessionBroken(f"the server's list of {member} is not one; it was stopped")
    return items, cursor or ""


def filter_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A tool result with the members that MCP defines and nothing else."""
    if result.get("resultType", "complete") != "complete":
        text = "The server wants to ask back before it answers, which it may not."
        return {"isError": True, "content": [{"type": "text", "text": text}]}
    kept: dict[str, Any] = {}
    content = result.get("content")
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, dict)]
        known = [block for block in blocks if block.get("type") in BLOCKS]
        kept["content"] = [_strip_meta(block) for block in known[:MAX_BLOCKS]]
    elif "structuredContent" in result:
        kept["content"] = []
    if "structuredContent" in result:
        kept["structuredContent"] = result["structuredContent"]
    if result.get("isError"):
        kept["isError"] = True
    return kept
