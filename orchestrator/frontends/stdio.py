"""MCP over this process's stdin and stdout, on asyncio pipes.

The wire is kept to itself: file descriptor 1 leads to stderr while serving, so that nothing printed
can corrupt it.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import os
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any

from orchestrator.app import App
from orchestrator.frontends.early import EarlyAnswers, FirstAnswers, MessageId, Taken
from orchestrator.frontends.instructions import load_instructions
from orchestrator.frontends.pipes import read_line, require_pipes
from orchestrator.frontends.shortcut import Caller, Shortcut
from orchestrator.frontends.tool_front import TOLD, ToolFront

MAX_LINE = 64 * 1024 * 1024
PIPE_BYTES = 1024 * 1024
"""What any user's pipe may hold (pipe(7), /proc/sys/fs/pipe-max-size)."""


async def serve_stdio(app: App, early: EarlyAnswers | None = None) -> None:
    """Serve MCP on stdin and stdout until end of file, where `early` has answered until now. Raises
    OrchestratorError where nobody is at the other end.
    """
    require_pipes()
    taken = early.stop() if early else Taken()
    source, sink = _take_descriptor(0, os.devnull), _take_descriptor(1, None)
    reader, writer = await _connect_pipes(source, sink, taken.unread)
    call, find = ToolFront(app, "granted").answer_plain, partial(_find_instructions, app)
    await serve_lines(reader, writer, call, find, partial(_build_server, app), taken.answered)


async def serve_lines(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    call: Caller,
    find_instructions: Callable[[], str | None],
    build_server: Callable[[], Any],
    answered: Collection[MessageId] = (),
) -> None:
    """Serve MCP on any pair of byte streams, a message a line, until end of file. What is plain is
    answered by `call`; `build_server` makes the SDK's server, at the first line that is not. The
    requests that are `answered` already are not answered again.
    """
    shortcut = Shortcut(call, writer)
    kept: list[bytes] = []
    said: list[bytes] = []
    first = FirstAnswers(find_instructions, said.append)
    while line := await read_line(reader):
        if shortcut.take_line(line) or shortcut.take_notice(line):
            continue
        if not answered and not kept:
            await asyncio.to_thread(first.take_line, line)
            writer.writelines(said)
            said.clear()
            if not first.kept:
                continue
            answered = first.answered
        kept.append(line)
        if not shortcut.take_greeting(line, answered):
            break
    else:
        await shortcut.close()
        return
    server = await asyncio.to_thread(build_server)
    sdk_lines = await asyncio.to_thread(importlib.import_module, "orchestrator.frontends.sdk_lines")
    await sdk_lines.run_server(server, reader, writer, kept, answered, shortcut)


def _find_instructions(app: App) -> str | None:
    """The instructions; None where they cannot be made: the SDK's server says why."""
    try:
        return load_instructions(app)
    except TOLD:
        return None


def _build_server(app: App) -> Any:
    """The SDK's server. Loaded by name: most clients say nothing that needs it."""
    module = importlib.import_module("orchestrator.frontends.server")
    return module.build_front_server(app, "granted")


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
