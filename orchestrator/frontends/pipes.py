"""Taking over this process's stdin and stdout as the pipes of an MCP client."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from orchestrator.errors import OrchestratorError

MAX_LINE = 48 * 1024 * 1024


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
async def take_pipes() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """stdin and stdout for ourselves: what anything else prints goes to stderr."""
    require_pipes()
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE)
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
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()
