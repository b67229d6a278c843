"""MCP over this process's stdin and stdout, on asyncio pipes.

The SDK's own transport passes every line through a worker thread; this one takes 0.2 ms less CPU
per call (bench/call.py). It also keeps the wire to itself: file descriptor 1 leads to stderr
while serving, so that nothing printed can corrupt it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import mcp.types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from orchestrator.frontends.early import EarlyAnswers, MessageId, Taken
from orchestrator.frontends.pipes import require_pipes
from orchestrator.frontends.shortcut import Caller, Shortcut
from sandbox.offload import INLINE_BYTES, run_beside
from sandbox.sanitize import is_large

MAX_LINE = 64 * 1024 * 1024
PIPE_BYTES = 1024 * 1024
"""What any user's pipe may hold (pipe(7), /proc/sys/fs/pipe-max-size)."""

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def open_stdio(
    early: EarlyAnswers | None = None, call: Caller | None = None
) -> AsyncIterator[Streams]:
    """The streams that `mcp.server.lowlevel.Server.run` wants. Ends at end of file. `early` has
    answered on them until here; plain calls of `call_read` are answered by `call`.

    Raises OrchestratorError where nobody is at the other end.
    """
    require_pipes()
    taken = early.stop() if early else Taken()
    source, sink = _take_descriptor(0, os.devnull), _take_descriptor(1, None)
    reader, writer = await _connect_pipes(source, sink, taken.unread)
    async with messages(reader, writer, taken.answered, call) as streams:
        yield streams


@asynccontextmanager
async def messages(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    answered: Collection[MessageId] = (),
    call: Caller | None = None,
) -> AsyncIterator[Streams]:
    """The same over any pair of byte streams, a message a line. The first answer to each request
    that is `answered` already is not written.
    """
    silent = set(answered)
    shortcut = Shortcut(call, writer) if call else None
    to_server, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, from_server = anyio.create_memory_object_stream[SessionMessage](0)

    validate = types.jsonrpc_message_adapter.validate_json

    async def read() -> None:
        async with to_server:
            while line := await _read_line(reader):
                if shortcut and shortcut.take_line(line):
                    continue
                try:
                    parse = partial(validate, line, by_name=False)
                    large = len(line) > INLINE_BYTES
                    message = await run_beside(parse) if large else parse()
                    if shortcut:
                        shortcut.note_message(message)
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
                    shortcut.note_answer(said)
                if isinstance(said, types.JSONRPCResponse) and said.id in silent:
                    silent.discard(said.id)
                    continue
                dump = partial(said.model_dump_json, by_alias=True, exclude_unset=True)
                large = is_large(getattr(said, "result", None) or getattr(said, "params", None))
                writer.write((await run_beside(dump) if large else dump()).encode() + b"\n")
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


def _take_descriptor(descriptor: int, replacement: str | None) -> int:
    """A private duplicate of a standard descriptor, which then leads elsewhere."""
    sys.stdout.flush()
    private = os.dup(descriptor)
    other = os.open(replacement, os.O_RDONLY) if replacement else os.dup(2)
    os.dup2(other, descriptor)
    os.close(other)
    return private


async def _connect_pipes(
    source: int, sink: int, unread: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    # A large answer is written in a few pieces instead of many. What is no pipe stays as it is.
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    reader = asyncio.StreamReader(limit=MAX_LINE)
    reader.feed_data(unread)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", buffering=0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(sink, "wb", buffering=0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """The next line, or nothing at the end or where a line is longer than allowed."""
    try:
        return await reader.readline()
    except ValueError:
        return b""
