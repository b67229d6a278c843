"""An engine for tests: the real runtime as a plain child process, no cage around it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.runner import Limits, Session
from sandbox.session import PipeSession

RUNTIME = Path(__file__).parents[2] / "images" / "base" / "runtime"


class _Child:
    """The pipe of a child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()


class LocalRunner:
    """A `Runner` without a sandbox; for bundles that the tests wrote themselves."""

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-B",
            "-S",
            "-m",
            "toolwright",
            cwd=RUNTIME,
            env={},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        session = PipeSession(bundle, broker, limits or Limits(), _Child(process))
        readers = [
            asyncio.ensure_future(_feed(process.stdout, session.feed)),
            asyncio.ensure_future(_feed(process.stderr, session.feed_stderr)),
        ]
        readers[0].add_done_callback(lambda _: session.end())
        try:
            await session.start()
            yield session
        finally:
            session.end()
            assert process.stdin is not None
            process.stdin.close()
            with suppress(ConnectionError):
                await process.stdin.wait_closed()
            await process.wait()
            await asyncio.gather(*readers)


async def _feed(stream: asyncio.StreamReader | None, feed: object) -> None:
    assert stream is not None
    assert callable(feed)
    while chunk := await stream.read(1 << 16):
        feed(chunk)
