"""The server of the resident process in a thread of the test, without what makes calls."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.cli.resident.code_state import CodeState
from orchestrator.cli.resident.protocol import SOCKET, read_length, read_object
from orchestrator.cli.resident.server import CommandServer, open_listener

SECONDS = 60.0
"""Only against hanging."""


@contextmanager
def run_server(
    home: Path, answers: int | None = None, code: CodeState | None = None
) -> Iterator[threading.Event]:
    """Serve a home of this user, and answer the user `answers` alone, by default the same. The
    event is set once the server does not want to answer any more.
    """
    user = os.getuid() if answers is None else answers
    unchanged = CodeState(str(home))
    ended, ready = threading.Event(), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        with open_listener(home, os.getuid()) as listener:
            server = CommandServer(user, code or unchanged, ended.set)
            accepting = await asyncio.start_unix_server(server.answer, sock=listener)
            ready.set()
            await stop.wait()
            accepting.close()
            await server.finish()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(SECONDS)
        yield ended
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(SECONDS)
        loop.close()


@contextmanager
def connect(home: Path) -> Iterator[socket.socket]:
    """A connection to the home's socket, to say anything on."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(str(home / SOCKET))
        yield connection


def read_frame(connection: socket.socket) -> dict[str, Any] | None:
    """The next frame; None at the end of the connection."""
    head = _read(connection, 4)
    return read_object(_read(connection, read_length(head, 1 << 24))) if head else None


def _read(connection: socket.socket, length: int) -> bytes:
    content = b""
    while len(content) < length:
        try:
            came = connection.recv(length - len(content))
        except ConnectionResetError:
            return b""
        if not came:
            return b""
        content += came
    return content
