"""Check of a suspected server by its own cases, before it is quarantined."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.forging.forge import Forge
from orchestrator.healing.monitor import open_repair
from registry.health.causes import Cause
from registry.models import Entry
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.stages.prove import prove_own_cases

TRIES = 2
"""So many times in a row its cases have to fail: a test may be late on a loaded machine."""


@dataclass(frozen=True)
class OwnCases:
    """Tries what a server was registered by. Only where that fails are its unclear failures its
    own, and it is quarantined and repaired.
    """

    store: Store
    forge: Forge
    now: Callable[[], float] = time.time

    async def check_server(self, entry: Entry, bundle: Bundle, call: str) -> Mapping[str, Any]:
        """What came of a check; `call` is the one that gave rise to it. Raises what proving
        raises.
        """
        failing = ""
        for _ in range(TRIES):
            failing = await self._find_failing(entry, bundle)
            if not failing:
                self.store.quarantine.vouch(entry.name, entry.version, self.now())
                told = "its own cases pass: what failed is not shown to be its fault"
                return {"server": entry.name, "told": told}
        reason = f"its own cases fail: {failing}"
        if not self.store.quarantine.condemn(entry.name, entry.version, reason, self.now()):
            return {"server": entry.name, "told": f"{reason}; it is out of use already"}
        cause = Cause("bug", reason[:300], "code")
        repair = open_repair(self.store, self.store.calls.get(call), cause, self.now())
        mends = f"; repair {repair.id} mends it" if repair else ""
        return {"server": entry.name, "told": f"quarantined, since {reason}{mends}"}

    async def _find_failing(self, entry: Entry, bundle: Bundle) -> str:
        """The first case that fails, with what is said of it; "" where all pass."""
        shelf = self.forge.shelf
        examples = await asyncio.to_thread(shelf.load_examples, entry)
        suite = await asyncio.to_thread(shelf.load_suite, entry.name)
        recorded = await asyncio.to_thread(shelf.load_recorded_cases, entry.name)
        proof = await prove_own_cases(bundle, self.forge.engine, examples or None, suite, recorded)
        for report in proof.reports:
            for case in report.list_failures():
                return f"{case.operation} {case.case}: {case.evidence}"[:500]
            if not report.passed:
                return f"stage {report.stage}"
        return ""
