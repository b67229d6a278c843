"""What a runtime runs before it has a bundle."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from toolwright.broker import BrokerTransport
from toolwright.protocol import Connection
from toolwright.rehearsal import answer_line, rehearse
from toolwright.wire import decode, encode

from tests.images.host import definition, load_params

SOURCE = """
from toolwright import tool

@tool
def count():
    return {"number": 1}
"""


def refuse(params: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": -32010, "message": "nothing is allowed"}}


def test_the_sample_server_is_served_to_nobody() -> None:
    asked: list[dict[str, Any]] = []

    def exchange(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return refuse(params)

    connection = Connection(None, lambda bundle, _: BrokerTransport(bundle.base_url, exchange))
    rehearse()

    def answer(method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
        return decode(answer_line(connection, encode(message)))

    assert answer("toolwright/load", **load_params(SOURCE, definition("count")))["result"]
    answer("initialize", capabilities={"experimental": {"toolwright/request": {}}})
    listed = answer("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["count"]
    assert "error" in answer("tools/call", name="fetch", arguments={"key": "a"})
    assert answer("tools/call", name="count", arguments={})["result"]["structuredContent"]
    assert not asked
    assert not hasattr(sys.modules["server"], "fetch")


def test_a_rehearsal_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="failed at toolwright/load"):
        rehearse(lambda connection, line: b'{"error": {}}')
