"""Putting a version in the place of another while somebody else changes the server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from orchestrator.forging.forge import Forge
from orchestrator.healing.replace import VersionReplacer
from orchestrator.settings import Settings
from registry.errors import JobLost
from registry.models import Entry, Job, build_entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof, StageReport
from sandbox.session.recorded_case import RecordedCase
from tests.engine.samples import bundle

CODE = "from toolwright import tool\n\n@tool\ndef ready():\n    return {}\n"
PASSED = StageReport("cases", "passed", 1.0)


@dataclass
class Stages:
    """A forge whose stages pass, after somebody has cancelled the job; all else is the real one."""

    store: Store
    shelf: Bundles
    job: Job
    engine: None = None

    def assign_version(self, made: Bundle) -> Bundle:
        return replace(made, version=self.store.servers.get(made.name).version + 1)

    async def prove_bundle(self, made: Bundle, *_: Any, **given: Any) -> Proof:
        self.store.jobs.cancel(self.job.id, "terminal", 1.0)
        return Proof(made.compute_digest(), (PASSED,))

    async def register_bundle(
        self,
        made: Bundle,
        proof: Proof,
        examples: Sequence[Example],
        fence: tuple[str, int],
        report: Any,
        source: str,
        recorded: tuple[RecordedCase, ...],
    ) -> Entry:
        entry = build_entry(made, 1.0)
        return self.shelf.publish_bundle(made, entry, proof.reports, fence, recorded=recorded)


def test_a_version_is_on_trial_only_where_it_was_registered(
    settings: Settings, store: Store
) -> None:
    made = replace(bundle(CODE, "ready", pure=True), name="one", permissions=())
    shelf = Bundles(settings.home, store.servers)
    entry = shelf.publish_bundle(made, build_entry(made, 1.0), (PASSED,), None)
    request: Mapping[str, Any] = {"server": "one"}
    job = store.jobs.create(Job("j1", "repair", request, 1.0, 1.0), "p1")
    replacer = VersionReplacer(store, cast(Forge, Stages(store, shelf, job)))
    mended = replace(made, source_code=f"{CODE}# mended\n")
    with pytest.raises(JobLost):
        asyncio.run(
            replacer.replace_version(entry, mended, lambda step: None, fence=(job.id, job.attempt))
        )
    assert store.canaries.get("one") is None
    # What a person makes the next version is nobody's repair.
    own = replace(made, version=2, source_code=f"{CODE}# my own\n")
    shelf.publish_bundle(own, build_entry(own, 2.0), (PASSED,), None)
    assert store.canaries.count_outcome("one", 2, False, 3.0) is None
