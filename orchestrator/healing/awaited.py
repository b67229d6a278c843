"""Repairs that a task run waits for: the one under way, or what a changed description asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.healing.drift import Drift
from registry.models import ENDED_JOBS, Job
from registry.store import Store


@dataclass(frozen=True)
class AwaitedRepairs:
    """Sees repairs through for who waits. `complete` carries out a job, or waits for who does."""

    store: Store
    drift: Drift
    complete: Callable[[Job], Awaitable[Job]]
    now: Callable[[], float] = time.time

    async def repair(self, server: str) -> bool:
        """Look at the description of a server whose call failed, and see its repair through where
        one is open; whether another version is in place then. Raises Frozen, RegistryError.
        """
        entry = await asyncio.to_thread(self.store.servers.get, server)
        if entry.created_by.startswith("compiler"):
            # The usual cause. What one failure does not show is left to what counts them.
            await self.drift.check_description(entry, 0.0)
        for job in await asyncio.to_thread(self.store.repairs.find, server, self.now()):
            if job.state not in ENDED_JOBS:
                await self.complete(job)
        current = await asyncio.to_thread(self.store.servers.get, server)
        return current.version > entry.version
