"""MCP tool results: what a tool's code returned or raised, as a `CallToolResult`."""

from __future__ import annotations

import json

from .answers import Answer
from .content import Content
from .errors import RequestFailed, SchemaBroken, ToolError
from .media import blocks
from .values import without_unset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from .schema import Schema

SOURCE = "server.py"
DIFFERENCE = "toolwright/difference"
MAX_NESTING = 100
"""Below the host's limit, which counts the message around the result as well."""
_CONTAINERS = (dict, list)
# `without_unset` has copied what is encoded, so that nothing in it leads back to itself.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False)


def success(
    value: Any, output_schema: Schema, tool: str, is_strict: bool = True, malformed: str = ""
) -> dict[str, Any]:
    """The result of what a tool returned: an Answer, Content or JSON values.

    An Answer of a tool that is not strict is a result whatever the schema says: `malformed` (why
    declared JSON does not parse) and a breach are told in a note and in `_meta`.

    Raises SchemaBroken where anything else breaks the output schema, RequestFailed (`too_large`)
    where it is nested too deeply or bytes are too many, TypeError or ValueError where it is not
    JSON.
    """
    if isinstance(value, Answer):
        root = output_schema.root
        wanted = root.get("properties") if isinstance(root, dict) else None
        structured = value.structured(frozenset(wanted or ()))
        answer: Answer | None = value
        content = _shown(value, structured, tool)
    else:
        plain = value.structured if isinstance(value, Content) else value
        text = _ENCODER.encode(without_unset(plain))
        parsed = json.loads(text)
        structured = parsed if isinstance(parsed, dict) else {"result": parsed}
        answer, content = None, [_text(text)]
    is_deep = _may_be_deep(value) and nested_deeper(structured, MAX_NESTING)
    if is_deep and (answer is None or is_strict or answer.text is None):
        raise RequestFailed("too_large", f"the result is nested deeper than {MAX_NESTING}")
    if is_deep and answer:
        structured = _as_text(structured, answer.printable(), answer.content_type)
    problem = output_schema.first_problem(structured)
    if problem and (answer is None or is_strict):
        raise SchemaBroken(*problem, answer, content[0]["text"], content[1:])
    if answer and answer.pages:
        content = [*content, _text(_told(answer.pages))]
    made: dict[str, Any] = {
        "content": value.blocks if isinstance(value, Content) else content,
        "structuredContent": structured,
    }
    if is_deep:
        return _differing(made, "depth", "", f"it is nested deeper than {MAX_NESTING}")
    if malformed and answer:
        return _differing(made, "malformed", "", _unparsed(answer, malformed))
    return _differing(made, "schema", *problem) if problem else made


def conforming(result: dict[str, Any]) -> dict[str, Any]:
    """The result for a client that was given the output schema, and may throw away what breaks it
    or has no structured content: an answer's body is its text there, which every such schema has.
    """
    structured = result.get("structuredContent", {})
    if DIFFERENCE not in result.get("_meta", ()) or "body" not in structured:
        return result
    text = _as_text(structured, result["content"][0]["text"], "application/json")
    return {**result, "structuredContent": text}


def spelled_out(result: dict[str, Any], reason: str) -> dict[str, Any] | None:
    """An answer's result with its body as the text that was sent, because `reason`: it has no
    form as JSON values. None where it has no body.
    """
    structured = result.get("structuredContent", {})
    if "body" not in structured:
        return None
    text = _as_text(structured, result["content"][0]["text"], "application/json")
    kept = {**result, "structuredContent": text}
    if DIFFERENCE in kept.get("_meta", ()):
        return kept
    return _differing(kept, "malformed", "", reason)


def _as_text(structured: dict[str, Any], text: str, content_type: str) -> dict[str, Any]:
    """The structured content of an answer with its body as the text that was sent."""
    kept = {key: value for key, value in structured.items() if key != "body"}
    return {**kept, "text": text, "content_type": content_type}


def _differing(result: dict[str, Any], kind: str, where: str, reason: str) -> dict[str, Any]:
    """The result with what differs from the document: in a block of its own after the answer's,
    which stays what the API sent, and for the host.
    """
    at = f" at {where}" if where else ""
    note = _text(f"(Note: this differs from the API's description{at}: {reason})")
    difference = {"kind": kind, "where": where, "reason": reason}
    return {
        **result,
        "content": [*result["content"], note],
        "_meta": {DIFFERENCE: difference},
    }


def _unparsed(answer: Answer, reason: str) -> str:
    """What a body is that is declared to be JSON and does not parse."""
    lines = [line for line in (answer.text or "").splitlines() if line.strip()]
    if len(lines) > 1 and all(map(_is_json, lines)):
        return f"the {answer.content_type} body is {len(lines)} lines, each of them JSON"
    return f"the {answer.content_type} body is no JSON ({reason}); it is given as text"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _shown(answer: Answer, structured: dict[str, Any], tool: str) -> list[dict[str, Any]]:
    """An answer as content: its text, or its bytes where `structured` made no text of them."""
    if answer.data and answer.text is None and "text" not in structured:
        return blocks(answer, tool)
    return [_text(answer.printable() or f"HTTP {answer.status} {answer.reason}")]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _told(pages: dict[str, Any]) -> str:
    """What became of following the pages, for whoever reads the text only."""
    count = f"{pages['read']} page{'s' if pages['read'] != 1 else ''} read"
    left = "more are left" if pages["more"] else "none is left"
    stopped = f"; stopped: {pages['stopped']}" if "stopped" in pages else ""
    return f"({count}, {pages['items']} items, {left}{stopped})"


def failure(error: ToolError) -> dict[str, Any]:
    failed = _failed(str(error), {"kind": error.kind, **error.details()})
    return {**failed, "content": [*failed["content"], *error.blocks]}


def bug(error: BaseException) -> dict[str, Any]:
    """The result of an exception that no code foresaw: its type and line, not its message."""
    name, line = type(error).__name__, line_of(error.__traceback__)
    where = f" at {SOURCE} line {line}" if line else ""
    return _failed(f"bug: {name}{where}", {"kind": "bug", "type": name, "line": line})


def line_of(traceback: TracebackType | None) -> int | None:
    """The innermost line of `server.py` in a traceback."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == SOURCE:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _may_be_deep(value: Any) -> bool:
    """False where an answer's bytes plainly hold too few brackets."""
    if not isinstance(value, Answer) or value.pages:
        return True
    return value.data.count(b"[") + value.data.count(b"{") >= MAX_NESTING // 2


def nested_deeper(value: Any, limit: int) -> bool:
    layer = [value]
    for _ in range(limit + 1):
        layer = [
            inner
            for item in layer
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, _CONTAINERS)
        ]
        if not layer:
            return False
    return True


def _failed(text: str, error: dict[str, Any]) -> dict[str, Any]:
    return {
        "isError": True,
        "content": [_text(text)],
        "_meta": {"toolwright/error": error},
    }
