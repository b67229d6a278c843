"""Sessions with a server that answers exactly the bytes that a test gives, as any server could."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle, Provenance, ToolDefinition
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits
from sandbox.session.pipe import PipeSession
from sandbox.thirdparty.session import McpSession
from sandbox.wire.policy import Policy
from sandbox.wire.redaction import Redaction
from tests.sandbox.scripted import Told

ANY = {"type": "object"}
Say = Callable[[str, dict[str, Any]], list[bytes]]
"""The lines that a server sends on a call, of its id and arguments."""
BUNDLE = Bundle(
    name="foreign",
    version=1,
    title="Foreign",
    base_url="",
    source_code="",
    tools=(ToolDefinition("say", "Says it.", ANY, ANY, "read"),),
    provenance=Provenance("test", "0" * 64),
)
HEAD, TAIL = b'{"jsonrpc":"2.0","id":"%s","result":', b"}"


def result_line(identity: str, result: bytes) -> bytes:
    """The line of an answer whose result is that JSON text."""
    return HEAD % identity.encode() + result + TAIL


def text_result(text: str) -> bytes:
    return json.dumps(
        {"content": [{"type": "text", "text": text}], "structuredContent": {}}
    ).encode()


class AnsweringPipe:
    """A `Pipe` whose far end answers at once, in the same turn of the loop as a fast server."""

    session: PipeSession

    def __init__(self, say: Say) -> None:
        self._say = say
        self.killed = False

    def write(self, data: bytes) -> None:
        message = json.loads(data)
        identity, method = message.get("id"), message.get("method")
        if identity is None or method is None:
            return
        if method == "tools/call":
            lines = self._say(identity, message["params"]["arguments"])
        else:
            known = {"protocolVersion": "2025-11-25", "capabilities": {"logging": {}}}
            lines = [json.dumps({"jsonrpc": "2.0", "id": identity, "result": known}).encode()]
        for line in lines:
            self.session.feed(line + b"\n")

    def count_unread(self) -> int:
        return 0

    def kill(self) -> None:
        self.killed = True


@asynccontextmanager
async def answering(
    say: Say,
    secrets: Redaction | None = None,
    limits: Limits | None = None,
    blocked: deque[str] | None = None,
    gives: Mapping[str, Any] = ANY,
    takes: Mapping[str, Any] = ANY,
) -> AsyncIterator[PipeSession]:
    """A forged server's session, or with `secrets` one with a third-party server that has them;
    `blocked` are its refused connections, `gives` is what its tool's results are said to be,
    `takes` its arguments.
    """
    pipe, limits = AnsweringPipe(say), limits or Limits()
    tool = replace(BUNDLE.tools[0], input_schema=takes, output_schema=gives)
    bundle = replace(BUNDLE, tools=(tool,))
    broker = Broker(Policy(()), Told([]))
    session = (
        PipeSession(bundle, broker, limits, pipe)
        if secrets is None
        else McpSession(bundle, broker, limits, pipe, secrets, blocked)
    )
    pipe.session = session
    async with session.run_session(KillSwitch()):
        yield session
