"""MCP tool results: what a tool's code returned or raised, as a `CallToolResult`."""

from __future__ import annotations

import json

from .answers import Answer
from .content import Content
from .errors import RequestFailed, SchemaBroken, ToolError
from .schema import first_problem
from .values import without_unset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

SOURCE = "server.py"
MAX_NESTING = 100
"""Below the host's limit, which counts the message around the result as well."""


def success(value: Any, output_schema: Any) -> dict[str, Any]:
    """The result of what a tool returned: an Answer, Content or JSON values.

    Raises SchemaBroken where it breaks the output schema, RequestFailed (`too_large`) where it is
    nested too deeply, TypeError or ValueError where it is not JSON.
    """
    if isinstance(value, Answer):
        wanted = output_schema.get("properties") if isinstance(output_schema, dict) else None
        structured = value.structured(frozenset(wanted or ()))
        text = value.printable() or f"HTTP {value.status} {value.reason}"
        answer: Answer | None = value
    else:
        plain = value.structured if isinstance(value, Content) else value
        text = json.dumps(without_unset(plain), ensure_ascii=False, allow_nan=False)
        parsed = json.loads(text)
        structured = parsed if isinstance(parsed, dict) else {"result": parsed}
        answer = None
    if nested_deeper(structured, MAX_NESTING):
        raise RequestFailed("too_large", f"the result is nested deeper than {MAX_NESTING}")
    problem = first_problem(output_schema, structured)
    if problem:
        raise SchemaBroken(*problem, answer, text)
    told = [text, _told(answer.pages)] if answer and answer.pages else [text]
    content = [{"type": "text", "text": item} for item in told]
    blocks = value.blocks if isinstance(value, Content) else content
    return {"content": blocks, "structuredContent": structured}


def _told(pages: dict[str, Any]) -> str:
    """What became of following the pages, for whoever reads the text only."""
    count = f"{pages['read']} page{'s' if pages['read'] != 1 else ''} read"
    left = "more are left" if pages["more"] else "none is left"
    stopped = f"; stopped: {pages['stopped']}" if "stopped" in pages else ""
    return f"({count}, {pages['items']} items, {left}{stopped})"


def failure(error: ToolError) -> dict[str, Any]:
    return _failed(str(error), {"kind": error.kind, **error.details()})


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


def nested_deeper(value: Any, limit: int) -> bool:
    layer = [value]
    for _ in range(limit + 1):
        layer = [
            inner
            for item in layer
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, dict | list)
        ]
        if not layer:
            return False
    return True


def _failed(text: str, error: dict[str, Any]) -> dict[str, Any]:
    return {
        "isError": True,
        "content": [{"type": "text", "text": text}],
        "_meta": {"toolwright/error": error},
    }
