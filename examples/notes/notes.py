"""A small MCP server over stdio, of the standard library only: notes, kept while it runs."""

from __future__ import annotations

import json
import sys
from typing import Any

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "list_notes",
        "description": "List the notes.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "add_note", "description": "Add a note.", "inputSchema": TEXT},
]
NOTES = ["water the plants"]


def answer(method: str, given: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None where the method is not known."""
    if method == "initialize":
        return {
            "protocolVersion": given["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        if given["name"] == "add_note":
            NOTES.append(given["arguments"]["text"])
        return {"content": [{"type": "text", "text": json.dumps(NOTES)}]}
    return {} if method == "ping" else None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        error = {"code": -32601, "message": "no such method"}
        told = {"result": result} if result is not None else {"error": error}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)


if __name__ == "__main__":
    main()
