"""Carrying out the writes that people approved."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from orchestrator.clearance import Clearance
from orchestrator.dispatch import Dispatch
from orchestrator.underway import UnderWay
from registry.store import Store
from sandbox.errors import Frozen


@dataclass
class Approved:
    """Claims approvals for this process. `begun` are the calls that it carries out now."""

    store: Store
    dispatch: Dispatch
    clearance: Clearance
    process: str
    begun: UnderWay = field(default_factory=UnderWay)

    async def carry_out(self) -> None:
        """Claim what people approved, and begin to do it.

        While the key of their decisions is in doubt nothing is claimed, and nothing is lost.
        """
        if self.clearance.held():
            return
        for approval in self.store.approvals("approved"):
            try:
                claimed = self.store.claim(
                    approval.id,
                    self.process,
                    time.time(),
                    self.clearance.forgery,
                )
            except Frozen:
                return
            if claimed is not None:
                self.begun.begin(self.dispatch.carry_out(claimed))
