"""Jobs that a process carries out, at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from orchestrator.forging.order import Report
from orchestrator.jobs.runner import JobRunner
from registry.models import Job
from registry.store import Store


def test_a_job_that_ends_as_its_process_does_has_no_other_one_begun(store: Store) -> None:
    async def run() -> tuple[Job, Job]:
        done = asyncio.Event()

        async def work(job: Job, report: Report) -> Mapping[str, Any]:
            await done.wait()
            return {}

        async def changed() -> None:
            await asyncio.Event().wait()

        runner = JobRunner(store, "p1", work, changed, patient=True)
        first = runner.create_job("forge", {"task": "one"})
        runner.start_queued()
        second = runner.create_job("forge", {"task": "two"})
        done.set()
        while store.jobs.get(first.id).state != "done":
            await asyncio.sleep(0)
        # It has ended; that it has is told to the runner in the loop's next turn.
        await runner.close()
        return store.jobs.get(first.id), store.jobs.get(second.id)

    first, second = asyncio.run(run())
    assert (first.state, second.state, second.owner) == ("done", "queued", "")
