"""MCP over this process's stdin and stdout, on asyncio pipes.

The wire is kept to itself: file descriptor 1 leads to stderr while serving, so that nothing printed
can corrupt it.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from orchestrator.app import App
from orchestrator.frontends.early import (
    EarlyAnswers,
    FirstAnswers,
    FrontGreeter,
    MessageId,
    Taken,
)
from orchestrator.frontends.instructions import find_instructions
from orchestrator.frontends.pipes import read_line, take_pipes
from orchestrator.frontends.shortcut import Caller, Shortcut
from orchestrator.frontends.tool_front import ToolFront


async def serve_stdio(app: App, early: EarlyAnswers | None = None) -> None:
    """Serve MCP on stdin and stdout until end of file, where `early` has answered until now. Raises
    OrchestratorError where nobody is at the other end.
    """
    taken = early.stop() if early else Taken()
    call = ToolFront(app, "granted").answer_plain
    find = partial(find_instructions, app.settings, app.store, app.consents)
    try:
        async with take_pipes(taken.unread) as (reader, writer):
            build_server = partial(_build_server, app)
            await serve_lines(reader, writer, call, find, build_server, taken.answered)
    finally:
        # Kept for the first answer of the next process.
        find()


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
    first = FirstAnswers(FrontGreeter(find_instructions), said.append)
    while line := await read_line(reader, writer):
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


def _build_server(app: App) -> Any:
    """The SDK's server. Loaded by name: most clients say nothing that needs it."""
    module = importlib.import_module("orchestrator.frontends.server")
    return module.build_front_server(app, "granted")
