"""What `toolwright serve` does beside answering its client, in a process that kills itself.

The process watches itself from outside our code, by SQLite's trace, SQLAlchemy's pool and the
interpreter's audit hooks, and sends itself SIGKILL at the moment it was told.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from sqlalchemy import Pool, event

from orchestrator.app import App, open_app
from orchestrator.calls import Call
from orchestrator.settings import Settings
from registry.models import Job

_forks = multiprocessing.get_context("forkserver")
# A run imports its graph when it starts; without the preload each victim would do so again.
_forks.set_forkserver_preload([__name__, "orchestrator.tasks.task_graph"])

PATIENCE_SECONDS = 120.0
FINAL = frozenset({"done", "failed"})


class Fuse:
    """Kills the process at a moment, told by a pattern.

    Moments are statements such as `INSERT INTO entries …`, with their values, and `os.rename …` and
    `socket.connect …` with their arguments; the process dies before it happens. `after ` in front
    of a statement's pattern: it dies when the statement's transaction is on disk.
    """

    def __init__(self, moment: str) -> None:
        self._after = moment.startswith("after ")
        self._moment = re.compile(moment.removeprefix("after "), re.DOTALL)
        self._burning: Any = None
        event.listen(Pool, "connect", self._on_connect)
        event.listen(Pool, "checkin", self._on_checkin)
        sys.addaudithook(self._on_audit)

    def _on_connect(self, connection: Any, record: Any) -> None:
        connection.set_trace_callback(partial(self._on_statement, connection))

    def _on_statement(self, connection: Any, statement: str) -> None:
        if not self._moment.match(" ".join(statement.split())):
            return
        if not self._after:
            die()
        self._burning = connection

    def _on_checkin(self, connection: Any, record: Any) -> None:
        if self._burning is not None and connection is self._burning:
            die()

    def _on_audit(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name in ("os.rename", "socket.connect") and self._moment.match(f"{name} {arguments}"):
            die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at(moment: str, settings: Settings, call: Call | None = None) -> None:
    """Open an installation as `serve` does, let it work off what is queued or approved, or make
    the call, until SIGKILL ends it at the moment. Fails where it lives past that.
    """
    process = _forks.Process(target=_live, args=(moment, settings, call))
    process.start()
    process.join(PATIENCE_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        raise AssertionError(f"{moment!r} never came")
    assert process.exitcode == -signal.SIGKILL, process.exitcode


def _live(moment: str, settings: Settings, call: Call | None) -> None:
    Fuse(moment)

    async def live(app: App) -> None:
        if call:
            await app.dispatch.call_tool(call)
        await asyncio.sleep(PATIENCE_SECONDS)

    asyncio.run(_opened(settings, live))


async def _opened(settings: Settings, work: Callable[[App], Awaitable[None]]) -> None:
    async with open_app(settings, "serve", patient=True) as app:
        await work(app)


def finished(settings: Settings, job: str) -> Job:
    """Open the installation again, as the next `serve`; the job when it has ended."""
    ended: list[Job] = []

    async def work(app: App) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while (found := app.store.jobs.get(job)).state not in FINAL and time.monotonic() < end:
            await asyncio.sleep(0.02)
        ended.append(found)

    asyncio.run(_opened(settings, work))
    return ended[0]


def idled(settings: Settings, rounds: int = 3) -> None:
    """Open the installation as the next `serve` and let it look for work a few times."""

    async def work(app: App) -> None:
        for _ in range(rounds):
            await app.approved.carry_out_approved()
            await asyncio.gather(*app.approved.begun.tasks)

    asyncio.run(_opened(settings, work))
