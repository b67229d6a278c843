"""The engine `none`: the runtime as a plain child process, with a broker and without a cage.

For development only: the server's code can read files and reach the network past the broker.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib import resources

from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.errors import SessionBroken
from sandbox.runner import Limits, Session
from sandbox.session import PipeSession

CHUNK = 1 << 16


class ProcessRunner:
    """Opens sessions in child processes with an empty environment."""

    def __init__(self, *, brake: Brake | None = None, limits: Limits | None = None) -> None:
        self._brake = brake or Brake()
        self._limits = limits or Limits()

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """A session with the bundle. Raises LoadFailed, SessionBroken, Frozen."""
        self._brake.check()
        process = await _started()
        session = PipeSession(bundle, broker, limits or self._limits, _Child(process))
        readers = asyncio.gather(
            _feed(process.stdout, session.feed), _feed(process.stderr, session.feed_stderr)
        )
        readers.add_done_callback(lambda _: session.end())
        try:
            with self._brake.on_engage(session.freeze):
                await session.start()
                yield session
        finally:
            session.end()
            await _ended(process)
            await readers


class _Child:
    """The pipe of a child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def write(self, data: bytes) -> None:
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(data)

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


async def _started() -> asyncio.subprocess.Process:
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


async def _ended(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    with suppress(ConnectionError):
        await process.stdin.wait_closed()
    await process.wait()


async def _feed(stream: asyncio.StreamReader | None, feed: Callable[[bytes], None]) -> None:
    assert stream is not None
    while chunk := await stream.read(CHUNK):
        feed(chunk)
