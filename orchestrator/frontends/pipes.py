"""Taking over this process's stdin and stdout as the pipes of an MCP client."""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from orchestrator.errors import OrchestratorError

MAX_LINE = 64 * 1024 * 1024
LAST_SECONDS = 5.0
"""How long the last answers may take to be read."""
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


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """The next line, or nothing at the end or where a line is longer than allowed."""
    try:
        return await reader.readline()
    except ValueError:
        return b""


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
