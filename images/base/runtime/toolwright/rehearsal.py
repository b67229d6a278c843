"""A sample server, loaded and called before there is any other: what a call runs is then in the
machine's caches, and the interpreter has specialised it (PEP 659).
"""

from __future__ import annotations

import json

from .broker import BrokerTransport
from .protocol import Connection, PendingCall
from .wire import decode, encode, outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SOURCE = """
from toolwright import http, tool

@tool
def fetch(key):
    return http.request("GET", "/items/{key}", path={"key": key}, query={"a": "b"})

@tool
def echo(key):
    return {"key": key}
"""


def answer_line(connection: Connection, line: bytes) -> bytes:
    """The answer to a line, the call that it may bring run meanwhile."""
    received = connection.receive(decode(line))
    if isinstance(received, PendingCall):
        return outcome(received)
    return b"" if received is None else encode(received)


def rehearse(answer: Callable[[Connection, bytes], bytes] = answer_line) -> None:
    """Load the sample server and call it. Raises RuntimeError where it does not answer."""
    said = {"status": 200, "headers": [["content-type", "application/json"]], "body": '{"n": 1}'}
    connection = Connection(
        None, lambda bundle, _: BrokerTransport(bundle.base_url, lambda params: {"result": said})
    )
    for method, params in _list_messages():
        message = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
        if "error" in json.loads(answer(connection, encode(message))):
            raise RuntimeError(f"the rehearsal failed at {method}")


def _list_messages() -> tuple[tuple[str, dict[str, Any]], ...]:
    tool = {"description": "", "access": "read", "input_schema": {}}
    tool |= {"output_schema": {"type": "object"}, "requests": [], "security": []}
    tools = [{**tool, "name": "fetch"}, {**tool, "name": "echo"}]
    manifest = {"name": "sample", "version": 1, "base_url": "https://sample.invalid/v1"}
    return (
        ("toolwright/load", {"manifest": manifest, "tools": tools, "source": SOURCE}),
        ("initialize", {"capabilities": {"experimental": {"toolwright/request": {}}}}),
        ("tools/call", {"name": "fetch", "arguments": {"key": "a"}}),
        ("tools/call", {"name": "echo", "arguments": {"key": "a"}}),
    )
