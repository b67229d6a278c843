"""Writing call records and audit rows: reads by group commit, at most 20 ms late, rows without
blocking the caller.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from orchestrator.calls import Call
from registry.audit.search import AuditTable
from registry.errors import DatabaseUnusable, RegistryError
from registry.models import Invocation
from registry.store import Store
from registry.trust import Standing

GROUP_SECONDS = 0.02
RETRY_SECONDS = 1.0
CLOSE_SECONDS = 5.0
MAX_WAITING = 10_000

log = structlog.get_logger()


@dataclass
class CallWriter:
    """Writes finished reads in groups, at most 20 ms late; a SIGKILL may lose those.

    `recorded` is told each server's new standing, `stored` each call once it is on disk.
    """

    store: Store
    recorded: Callable[[str, Standing], None]
    stored: Callable[[Invocation], None] = lambda invocation: None
    _waiting: list[Invocation] = field(default_factory=list)
    _flush: asyncio.Task[None] | None = None

    def queue_call(self, invocation: Invocation) -> None:
        self._waiting.append(invocation)
        if self._flush is None or self._flush.done():
            self._flush = asyncio.get_running_loop().create_task(self._flush_groups())

    def note_refusal(self, kind: str, call: Call, reason: str) -> None:
        """An audit row for a call that did not run."""
        payload = {"tool": call.name, "reason": reason, "task": call.task, "session": call.session}
        self.store.audit.add_note(kind, call.name, payload, time.time())

    async def close(self) -> None:
        """Return when everything is written, or could not be for a while."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._flush and not self._flush.done():
                    await self._flush
        except TimeoutError:
            log.error("calls were not recorded", calls=len(self._waiting))

    async def _flush_groups(self) -> None:
        while self._waiting:
            await asyncio.sleep(GROUP_SECONDS)
            group, self._waiting = self._waiting, []
            try:
                standings = await asyncio.to_thread(
                    self.store.calls.record_many, group, time.time()
                )
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


@dataclass
class AuditWriter:
    """Writes audit rows without holding up whoever asks for one."""

    audit: AuditTable
    _writing: set[asyncio.Task[None]] = field(default_factory=set)

    def add_row(self, kind: str, subject: str, payload: Mapping[str, Any]) -> None:
        """A row of that kind, of this moment. Needs a running event loop."""
        task = asyncio.get_running_loop().create_task(
            self._write_row(kind, subject, payload, time.time())
        )
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def close(self) -> None:
        """Return when every row is in the audit, or was logged because it could not be."""
        while self._writing:
            await asyncio.gather(*self._writing)

    async def _write_row(
        self, kind: str, subject: str, payload: Mapping[str, Any], now: float
    ) -> None:
        try:
            await asyncio.to_thread(self.audit.add_note, kind, subject, payload, now)
        except RegistryError as error:
            log.error(
                "not in the audit", row=kind, subject=subject, reason=str(error), payload=payload
            )
