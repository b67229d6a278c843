"""Taking over this process's stdin and stdout as the pipes of an MCP client."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from orchestrator.errors import OrchestratorError
from orchestrator.frontends.protocol import INVALID_REQUEST

MAX_LINE = 64 * 1024 * 1024
LAST_SECONDS = 5.0
"""How long the last answers may take to be read."""
ENDS = 1024
"""Bytes of each end of a line that is too long, in which its id is looked for."""
_ID = rb'"id"\s*:\s*(?P<id>-?\d{1,15}|"[^"\\]{1,200}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
_ID_LAST = re.compile(rb"[,{]\s*" + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")
PIPE_BYTES = 1024 * 1024
"""What any user's pipe may hold (pipe(7), /proc/sys/fs/pipe-max-size)."""


def require_pipes() -> None:
    """Raises OrchestratorError where nobody is at the other end of stdin and stdout."""
    if not all(map(_is_pipe, (0, 1))):
        raise OrchestratorError(
            "standard input and output are no pipes. An MCP client starts this command; add it to "
            "one with `toolwright setup --client`, or one server with `toolwright run --client`."
        )


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def read_line(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """The next line, or nothing at the end. One that is longer than the reader's limit is passed
    over, and whoever sent it is told so.
    """
    while True:
        try:
            return await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError as error:
            begin = await reader.readexactly(error.consumed)
            writer.write(_build_refusal(begin[:ENDS], await _read_end(reader, begin[-ENDS:])))


async def _read_end(reader: asyncio.StreamReader, seen: bytes) -> bytes:
    """Read up to the end of a line, of which the last that was read is `seen`; its last bytes."""
    while True:
        try:
            return (seen + (await reader.readuntil(b"\n"))[-ENDS:])[-ENDS:]
        except asyncio.IncompleteReadError as error:
            return (seen + error.partial[-ENDS:])[-ENDS:]
        except asyncio.LimitOverrunError as error:
            seen = (seen + (await reader.readexactly(error.consumed))[-ENDS:])[-ENDS:]


def _build_refusal(begin: bytes, end: bytes) -> bytes:
    """The answer to a line that is too long, by its first and last bytes: as clients write their
    messages, the id is at one of the two.
    """
    found = _ID_FIRST.match(begin) or _ID_LAST.search(end)
    reason = (
        f"the message is longer than {MAX_LINE // 1024**2} MB and was not read. A file that a tool "
        "takes can be named instead of sent, as file:///PATH"
    )
    error = {"code": INVALID_REQUEST, "message": reason}
    identity = json.loads(found["id"]) if found else None
    return json.dumps({"jsonrpc": "2.0", "id": identity, "error": error}).encode() + b"\n"


@asynccontextmanager
async def take_pipes(
    unread: bytes = b"",
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """stdin and stdout for ourselves: what anything else prints goes to stderr. What was read of
    them already, and is `unread`, comes first.
    """
    require_pipes()
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    # A large answer is written in a few pieces instead of many. What is no pipe stays as it is.
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE)
    reader.feed_data(unread)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, "rb", buffering=0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(sink, "wb", buffering=0)
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        yield reader, writer
    finally:
        # A client that is gone, or reads no more, does not keep the process.
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await writer.drain()
        writer.close()
