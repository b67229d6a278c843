"""The SDK's server on a pair of byte streams, a message a line, and what else of the SDK `serve`
needs over stdio. Loaded by name where a client says something that `shortcut.py` does not answer.

The SDK's own transport passes every line through a worker thread; this one takes 0.2 ms less CPU
per call (bench/call.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import mcp.types as types
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import SessionMessage
from mcp_types import methods

from orchestrator.frontends.early import MessageId
from orchestrator.frontends.pipes import read_line
from orchestrator.frontends.shortcut import Shortcut
from sandbox.offload import INLINE_BYTES, run_beside, run_counted

MAX_REASON = 300

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]

log = structlog.get_logger()


async def run_server(
    server: Server[Any],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    kept: Sequence[bytes] = (),
    answered: Collection[MessageId] = (),
    shortcut: Shortcut | None = None,
) -> None:
    """Serve until end of file. `kept` are the lines that were read already; the first answer to
    each request that is `answered` already is not written.
    """
    async with open_messages(reader, writer, kept, answered, shortcut) as (inbound, outbound):
        await server.run(inbound, outbound, server.create_initialization_options())


@asynccontextmanager
async def open_messages(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    kept: Sequence[bytes] = (),
    answered: Collection[MessageId] = (),
    shortcut: Shortcut | None = None,
) -> AsyncIterator[Streams]:
    """The streams that `mcp.server.lowlevel.Server.run` wants."""
    silent = set(answered)
    to_server, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, from_server = anyio.create_memory_object_stream[SessionMessage](0)

    validate = types.jsonrpc_message_adapter.validate_json

    async def read_lines() -> AsyncIterator[bytes]:
        for line in kept:
            yield line
        while line := await read_line(reader, writer):
            if not (shortcut and shortcut.take_line(line)):
                yield line

    async def read() -> None:
        async with to_server:
            async for line in read_lines():
                try:
                    parse = partial(validate, line, by_name=False)
                    large = len(line) > INLINE_BYTES
                    message = await run_beside(parse) if large else parse()
                    if shortcut:
                        _note_message(shortcut, message)
                    await to_server.send(SessionMessage(message))
                except ValueError as error:
                    await to_server.send(error)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

    async def write() -> None:
        async with from_server:
            async for message in from_server:
                said = message.message
                if shortcut:
                    _note_answer(shortcut, said)
                if isinstance(said, types.JSONRPCResponse) and said.id in silent:
                    silent.discard(said.id)
                    continue
                dump = partial(said.model_dump_json, by_alias=True, exclude_unset=True)
                told = getattr(said, "result", None) or getattr(said, "params", None)
                writer.write((await run_counted(told, dump)).encode() + b"\n")
                try:
                    await writer.drain()
                except ConnectionError:
                    return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield inbound, outbound
        finally:
            if shortcut:
                await shortcut.close()
        tasks.cancel_scope.cancel()


def convert_result(result: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """A result of `tools/call` in the form of a version of the protocol. Raises MCPError for one
    that no client could read.
    """
    try:
        return methods.serialize_server_result("tools/call", version, result)
    except ValueError as error:
        log.error("a result is none", reason=repr(error)[:MAX_REASON])
        raise MCPError(types.INTERNAL_ERROR, "Handler returned an invalid result") from error


def describe_error(error: Exception) -> Mapping[str, Any]:
    """What the SDK would say of an error, which is our own failure."""
    known = handler_exception_to_error_data(error)
    if known is not None:
        return known.model_dump(by_alias=True, exclude_unset=True)
    log.error("a call cannot be answered", reason=repr(error)[:MAX_REASON])
    return {"code": 0, "message": str(error)}


def _note_message(shortcut: Shortcut, message: types.JSONRPCMessage) -> None:
    """Tell it what goes from the client to the SDK."""
    if isinstance(message, types.JSONRPCRequest):
        shortcut.note_request(message.id, message.method, message.params or {})
    elif isinstance(message, types.JSONRPCNotification) and (
        message.method == "notifications/cancelled"
    ):
        shortcut.note_cancelled((message.params or {}).get("requestId"))


def _note_answer(shortcut: Shortcut, message: types.JSONRPCMessage) -> None:
    """Tell it what goes from the SDK to the client."""
    if isinstance(message, types.JSONRPCResponse):
        shortcut.note_answer(message.id, message.result)
    elif isinstance(message, types.JSONRPCError):
        shortcut.note_answer(message.id, None)
