"""A home with servers of two small APIs, and runs of tasks over them that ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.app import App, open_app
from orchestrator.approvals.decide import Decision, decide_signed
from orchestrator.forging.order import ForgeOrder
from orchestrator.settings import Settings
from registry.models import Approval, Job
from registry.store import Store
from sandbox.schemas.validator import SchemaViolation
from tests.granted import allow, person
from tests.world.site import Site

UNSURE = "list the main zones"
"""Words that mean `zones.list_zones`, and one that it has no place for: they are asked about."""


@dataclass(frozen=True)
class Asking:
    """A process with the servers `zones` and `owners`, and the sites they speak to."""

    app: App
    settings: Settings
    zones: Site
    owners: Site

    async def do(self, task: str, **request: Any) -> Job:
        """A run until it ends or waits."""
        job = self.app.jobs.create_job("do", {"task": task, **request})
        return await self.app.jobs.complete(job)

    def take(self, job: Job, **answer: Any) -> Job | tuple[SchemaViolation, ...]:
        """What an answer to a run's question comes to."""
        named = {"question": job.result["question"]["id"], **answer}
        return self.app.answering.take_answer(job.id, named, "test")

    async def answer(self, job: Job, **answer: Any) -> Job:
        """The run after an answer that is taken."""
        taken = self.take(job, **answer)
        assert isinstance(taken, Job), taken
        return await self.app.jobs.complete(taken)

    async def approve(self, approval: str, approved: bool = True) -> Approval:
        """A write after a person's decision, when it was carried out."""
        decide(self.settings, self.app.store, approval, approved)
        await self.app.approved.carry_out_approved()
        await asyncio.gather(*self.app.approved.begun.tasks)
        return self.app.store.approvals.get(approval)


def decide(settings: Settings, store: Store, approval: str, approved: bool = True) -> None:
    """What a person with the PIN decides."""
    shown = store.approvals.get(approval)
    decision = Decision(approval, approved, "", by="test")
    decide_signed(store.approvals, shown, decision, person(settings.pin), time.time())


def asking(
    settings: Settings, zones: Site, owners: Site, story: Callable[[Asking], Awaitable[None]]
) -> None:
    """Tell a story in a process with both servers."""

    async def told() -> None:
        async with open_app(settings, "do") as app:
            for name, site in (("zones", zones), ("owners", owners)):
                allow(settings, app.store, site.url)
                order = ForgeOrder(source=site.url, name=name)
                await app.forge.forge_server(order, lambda step: None)
                site.asked.clear()
            await story(Asking(app, settings, zones, owners))

    asyncio.run(told())
