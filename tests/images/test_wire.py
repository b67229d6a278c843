"""The part of the runtime that an engine without threads uses: messages in, messages out."""

from __future__ import annotations

from typing import Any

from toolwright.broker import BrokerTransport
from toolwright.bundle import Bundle
from toolwright.protocol import Connection, PendingCall
from toolwright.wire import decode, encode, outcome

from tests.images.host import OFFER, answer, definition, load_params

SOURCE = """
from toolwright import http, tool

@tool
def fetch(key):
    return http.request("GET", "/items/{key}", path={"key": key})
"""


def test_a_bundle_is_served_by_plain_function_calls() -> None:
    asked: list[dict[str, Any]] = []

    def exchange(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return answer(200, {"n": 1})

    def transport(bundle: Bundle, brokered: bool) -> BrokerTransport:
        assert brokered
        return BrokerTransport(bundle.base_url, exchange)

    connection = Connection(None, transport)

    def handle(method: str, params: dict[str, Any]) -> dict[str, Any]:
        line = encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        received = connection.receive(decode(line))
        if isinstance(received, PendingCall):
            received = decode(outcome(received))
        assert isinstance(received, dict)
        return received

    loaded = handle("toolwright/load", load_params(SOURCE, definition("fetch")))
    assert loaded["result"] == {"tools": 1}
    assert "result" in handle("initialize", {"capabilities": OFFER})
    called = handle("tools/call", {"name": "fetch", "arguments": {"key": "a"}})
    assert called["result"]["structuredContent"] == {"status": 200, "body": {"n": 1}}
    assert [params["url"] for params in asked] == ["https://api.test/v1/items/a"]
