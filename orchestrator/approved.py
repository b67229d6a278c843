"""Carrying out the writes that people approved."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from orchestrator.calls import Reply
from orchestrator.dispatch import Dispatch
from registry.store import Store
from sandbox.errors import Frozen


@dataclass
class Approved:
    """Claims approvals for this process. `begun` are the calls that it carries out now."""

    store: Store
    dispatch: Dispatch
    process: str
    begun: set[asyncio.Task[Reply]] = field(default_factory=set)

    async def carry_out(self) -> None:
        """Claim what people approved, and begin to do it.

        While the key of their decisions is in doubt nothing is claimed, and nothing is lost.
        """
        if self.dispatch.clearance.held():
            return
        for approval in self.store.approvals("approved"):
            try:
                claimed = self.store.claim(
                    approval.id, self.process, time.time(), self.dispatch.clearance.forgery
                )
            except Frozen:
                return
            if claimed is not None:
                task = asyncio.create_task(self.dispatch.carry_out(claimed))
                self.begun.add(task)
                task.add_done_callback(self.begun.discard)
