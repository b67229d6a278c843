"""A call of a third-party tool as a request of its own: what a person approves, and what is sent.

There is no HTTP request to capture: what such a server does outside is its own affair and cannot be
held back. So the call is the write, as a whole: this tool, with these arguments, of this version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sandbox.bundle import Bundle
from sandbox.exchange import Exchange, WireRequest, WireResponse
from sandbox.runner import Failure, Outcome

METHOD = "CALL"


def tool_request(bundle: Bundle, tool: str, arguments: Mapping[str, Any]) -> WireRequest:
    """The call as it is shown, digested and approved. Raises KeyError.

    Its headers bind the version, the image and the tool's definition; equal arguments give the same
    bytes in whatever order they came.
    """
    assert bundle.launch is not None
    original = bundle.launch.tool(tool).original
    headers = (
        ("tool", json.dumps(original)),
        ("server-version", str(bundle.version)),
        ("definition", bundle.launch.pins[original]),
        ("image", bundle.launch.image or bundle.launch.way),
    )
    body = json.dumps(arguments, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return WireRequest(METHOD, f"mcp://{bundle.name}/{tool}", headers, body.encode())


def answered(request: WireRequest, outcome: Outcome) -> Exchange:
    """The exchange of a call that was answered: 200 where the tool says it succeeded, else 500."""
    said_no = bool(outcome.result.get("isError"))
    return Exchange(request, WireResponse(500 if said_no else 200), elapsed_ms=outcome.elapsed_ms)


def withheld(tool: str, held: Exchange) -> Outcome:
    """The outcome of a call that was not made."""
    failure = Failure(held.refusal, held.reason)
    result = {"isError": True, "content": [{"type": "text", "text": held.reason}]}
    return Outcome(tool, result, failure, (held,))
