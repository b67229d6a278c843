"""The engine `none`: the runtime as a child process, with a broker but without isolation.

For development only: the server's code can read files and reach the network past the broker.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib import resources

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.errors import SessionBroken
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits, Session
from sandbox.session.pipe import PipeSession

CHUNK = 1 << 16
DATA_FACTOR = 2
"""Writable memory is counted as it is mapped, not as it is used, so a process that uses as much as
a container may maps more.
"""


class ProcessRunner:
    """Opens sessions in child processes with an empty environment, and on Linux a limit of memory:
    a tool that takes more fails with MemoryError, where the other engines end it.
    """

    def __init__(
        self, *, kill_switch: KillSwitch | None = None, limits: Limits | None = None
    ) -> None:
        self._kill_switch = kill_switch or KillSwitch()
        self._limits = limits or Limits()

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """A session with the bundle. Raises LoadFailed, SessionBroken, Frozen."""
        self._kill_switch.raise_if_engaged()
        limits = limits or self._limits
        process = await _start_process()
        _limit_memory(process.pid, limits)
        session = PipeSession(bundle, broker, limits, _ChildPipe(process))
        readers = asyncio.gather(
            _feed_chunks(process.stdout, session.feed),
            _feed_chunks(process.stderr, session.feed_stderr),
        )
        readers.add_done_callback(lambda _: session.end())
        try:
            with self._kill_switch.on_engage(session.freeze):
                await session.start()
                yield session
        finally:
            session.end()
            await _close_process(process)
            await readers


class _ChildPipe:
    """The pipe of a child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def write(self, data: bytes) -> None:
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(data)

    def count_unread(self) -> int:
        stdin = self._process.stdin
        return 0 if stdin is None else stdin.transport.get_write_buffer_size()

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


async def _start_process() -> asyncio.subprocess.Process:
    with resources.as_file(resources.files("images") / "base" / "runtime") as runtime:
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-B", str(runtime / "serve.py")),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={},
                cwd=os.sep,
            )
        except OSError as error:
            raise SessionBroken(f"the runtime's process did not start: {error}") from error


def _limit_memory(pid: int, limits: Limits) -> None:
    """Limit what a process may map (prlimit(2), RLIMIT_DATA). It has run none of the server's code
    yet, and may have ended.
    """
    if sys.platform == "linux":
        size = DATA_FACTOR * limits.memory_mb * 1024 * 1024
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (size, size))


async def _close_process(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    with suppress(ConnectionError):
        await process.stdin.wait_closed()
    await process.wait()


async def _feed_chunks(stream: asyncio.StreamReader | None, feed: Callable[[bytes], None]) -> None:
    assert stream is not None
    while chunk := await stream.read(CHUNK):
        feed(chunk)
