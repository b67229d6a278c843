"""Recording calls: reads by group commit, everything else at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import structlog

from orchestrator.calls import Call
from registry.errors import DatabaseUnusable
from registry.records import Invocation
from registry.store import Store
from registry.trust import Standing

GROUP_SECONDS = 0.02
RETRY_SECONDS = 1.0
CLOSE_SECONDS = 5.0
MAX_WAITING = 10_000

log = structlog.get_logger()


@dataclass
class Ledger:
    """Writes finished reads in groups, at most 20 ms late; a SIGKILL may lose those.

    `recorded` is told each server's new standing, `stored` each call once it is on disk.
    """

    store: Store
    recorded: Callable[[str, Standing], None]
    stored: Callable[[Invocation], None] = lambda invocation: None
    _waiting: list[Invocation] = field(default_factory=list)
    _flush: asyncio.Task[None] | None = None

    def record_soon(self, invocation: Invocation) -> None:
        self._waiting.append(invocation)
        if self._flush is None or self._flush.done():
            self._flush = asyncio.get_running_loop().create_task(self._flushed())

    def note(self, kind: str, call: Call, reason: str) -> None:
        """An audit row for a call that did not run."""
        payload = {"tool": call.name, "reason": reason, "task": call.task, "session": call.session}
        self.store.note(kind, call.name, payload, time.time())

    async def close(self) -> None:
        """Return when everything is written, or could not be for a while."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._flush and not self._flush.done():
                    await self._flush
        except TimeoutError:
            log.error("calls were not recorded", calls=len(self._waiting))

    async def _flushed(self) -> None:
        while self._waiting:
            await asyncio.sleep(GROUP_SECONDS)
            group, self._waiting = self._waiting, []
            try:
                standings = await asyncio.to_thread(self.store.record_many, group, time.time())
            except DatabaseUnusable as error:
                # A full disk may have room again; what was called must not be lost meanwhile. What
                # the calls took in is too much to hold in memory for so long.
                log.error("calls not recorded yet", reason=str(error), calls=len(group))
                lightened = (replace(invocation, recording=None) for invocation in group)
                self._waiting = [*lightened, *self._waiting][:MAX_WAITING]
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for invocation, standing in zip(group, standings, strict=True):
                self.recorded(invocation.entry, standing)
                self.stored(invocation)
