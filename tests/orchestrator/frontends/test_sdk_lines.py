"""Where the front's lines are worked on: large ones beside the event loop, and in their order."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import mcp.types as types
import pytest
from mcp.shared.message import SessionMessage

from orchestrator.frontends.sdk_lines import open_messages
from sandbox.offload import INLINE_BYTES
from tests.functional.threads import Threads

LARGE = "x" * (2 * INLINE_BYTES)


async def exchanged(*texts: str) -> tuple[list[Any], list[Any]]:
    """What a server reads of requests with these texts, and a client of answers with them."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=16 * INLINE_BYTES)
    served = await asyncio.open_connection(sock=theirs, limit=16 * INLINE_BYTES)
    got, answered = [], []
    async with open_messages(*served) as (inbound, outbound), inbound, outbound:
        for number, text in enumerate(texts):
            asked = {"jsonrpc": "2.0", "id": number, "method": "m", "params": {"text": text}}
            writer.write(json.dumps(asked).encode() + b"\n")
        for number, text in enumerate(texts):
            message = await inbound.receive()
            assert isinstance(message, SessionMessage)
            got.append(message.message.model_dump()["params"]["text"])
            answer = types.JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": text})
            reading = asyncio.create_task(reader.readline())
            await outbound.send(SessionMessage(answer))
            answered.append(json.loads(await reading)["result"]["text"])
    for end in (writer, served[1]):
        end.close()
    return got, answered


@pytest.mark.parametrize("texts", [("a",), (LARGE,), (LARGE, "a", LARGE, "b")])
def test_what_is_large_is_read_and_written_beside_the_loop_and_in_order(
    texts: tuple[str, ...],
) -> None:
    threads = Threads()

    async def work() -> None:
        with threads.heard():
            assert await exchanged(*texts) == (list(texts), list(texts))

    asyncio.run(work())
    large = {text for text in texts if len(text) > INLINE_BYTES}
    steps = {"validate_json", "model_dump_json"}
    assert (threads.elsewhere & steps) == (steps if large else set())
    assert (threads.here & steps) == (steps if set(texts) - large else set())


def test_a_large_line_that_is_no_message_is_told_and_the_next_is_read() -> None:
    async def work() -> None:
        ours, theirs = socket.socketpair()
        _, writer = await asyncio.open_connection(sock=ours)
        served = await asyncio.open_connection(sock=theirs, limit=16 * INLINE_BYTES)
        async with open_messages(*served) as (inbound, outbound), inbound, outbound:
            asked = {"jsonrpc": "2.0", "id": 1, "method": "m"}
            writer.write(b'{"' + LARGE.encode() + b"\n" + json.dumps(asked).encode() + b"\n")
            assert isinstance(await inbound.receive(), ValueError)
            assert isinstance(await inbound.receive(), SessionMessage)
        writer.close()
        served[1].close()

    asyncio.run(work())
