"""Carrying out forge jobs: from a description, from prose, or from somebody's code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.documentation import Documentation, awaits_document, claims_in, kept
from orchestrator.drafting import Drafting
from orchestrator.errors import ProseFound, SourceMissing
from orchestrator.forging import Forge
from orchestrator.jobs import Report
from orchestrator.orders import Forged, Order, Step
from registry.records import Job
from registry.store import Store


@dataclass(frozen=True)
class ForgeJobs:
    """Finds out what a job can be made from, and has that made."""

    store: Store
    forge: Forge
    drafting: Drafting
    documentation: Documentation

    async def carry_out(self, job: Job, report: Report) -> Mapping[str, Any]:
        """Carry out a forge job; what its result says."""

        def step(step: Step) -> None:
            report(step.stage, step.progress, step.message)

        forged = await self._forged(job, Order.from_json(job.request), step)
        return {
            "server": forged.entry.name,
            "version": forged.entry.version,
            "state": forged.entry.state,
            "tools": [f"{forged.entry.name}.{tool.name}" for tool in forged.entry.tools][:200],
            "problems": list(forged.left_out)[:50],
            "milliseconds": {key: round(value, 1) for key, value in forged.timings.items()},
        }

    async def _forged(self, job: Job, order: Order, step: Callable[[Step], None]) -> Forged:
        """Compiled from a description, also one that is prose; from somebody's code where there is
        none to be had.
        """
        read = kept(job)
        if read is not None:
            return await self.documentation.finish(job, order, read, step)
        if order.parent or (isinstance(job.result, dict) and not awaits_document(job)):
            return await self.drafting.carry_on(job, order, step)
        claims = claims_in(order.document)
        if claims is not None:
            return await self.documentation.claimed(job, order, claims, step)
        try:
            return await self.forge.forge(order, step, (job.id, job.attempt))
        except SourceMissing:
            return await self.drafting.carry_on(job, order, step)
        except ProseFound as found:
            return await self.documentation.carry_on(job, order, found, step)

    async def again(self, server: str, report: Callable[[Step], None]) -> bool:
        """Forge a server anew from its source; whether that made a new version."""
        entry = self.store.entry(server)
        if self.forge.shelf.bundle(entry).provenance.author != "compiler":
            return False
        order = Order(source=entry.source, name=server)
        forged = await self.forge.forge(order, report)
        return forged.entry.version > entry.version
