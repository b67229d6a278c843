"""A child process that does not outlive us: a guard process kills its group when our pipe ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from sandbox.errors import SessionBroken
from sandbox.session import Listener

STDOUT, STDERR = 1, 2
GUARD = """import os, select, signal, subprocess, sys
leash = int(sys.argv[1])
child = subprocess.Popen(sys.argv[2:], start_new_session=True)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.close(0)
os.close(1)
ended, told = os.pipe()
signal.signal(signal.SIGCHLD, lambda *_: None)
os.set_blocking(told, False)
signal.set_wakeup_fd(told, warn_on_full_buffer=False)
while child.poll() is None:
    if leash in select.select([leash, ended], [], [])[0]:
        break
    os.read(ended, 512)
try:
    os.killpg(child.pid, signal.SIGKILL)
except ProcessLookupError:
    pass
sys.exit(child.wait() & 255)
"""
"""Run with the read end of a pipe of ours, and the command. It holds none of the child's pipes."""


class Leashed(asyncio.SubprocessProtocol):
    """The pipe of such a child. What it says before somebody is bound to hear it is kept."""

    def __init__(self, leash: int) -> None:
        self._leash: int | None = leash
        self._transport: asyncio.SubprocessTransport | None = None
        self._listener: Listener | None = None
        self._early: list[tuple[int, bytes]] = []
        self._exited = asyncio.Event()

    def bind(self, listener: Listener) -> None:
        self._listener = listener
        for descriptor, data in self._early:
            self.pipe_data_received(descriptor, data)
        if self._exited.is_set():
            listener.end()

    def write(self, data: bytes) -> None:
        pipe = self._transport and self._transport.get_pipe_transport(0)
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            pipe.write(data)

    def kill(self) -> None:
        """Let the guard kill the child and all of its group."""
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None

    async def killed(self) -> None:
        """Kill, and return when the guard has seen the child's end."""
        self.kill()
        await self._exited.wait()
        if self._transport:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self._listener is None:
            self._early.append((fd, data))
        elif fd == STDERR:
            self._listener.feed_stderr(data)
        else:
            self._listener.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if self._listener and fd == STDOUT:
            self._listener.end()

    def process_exited(self) -> None:
        self._exited.set()
        if self._listener:
            self._listener.end()


@asynccontextmanager
async def leashed(
    command: tuple[str, ...], environment: Mapping[str, str]
) -> AsyncIterator[Leashed]:
    """A running command, killed with its process group when the block is left. Raises
    SessionBroken.
    """
    held, leash = os.pipe()
    child = Leashed(leash)
    try:
        await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *(sys.executable, "-I", "-S", "-c", GUARD, str(held), *command),
            env=dict(environment),
            pass_fds=(held,),
        )
    except OSError as error:
        child.kill()
        raise SessionBroken(f"{command[0]} did not start: {error}") from error
    finally:
        os.close(held)
    try:
        yield child
    finally:
        await child.killed()
