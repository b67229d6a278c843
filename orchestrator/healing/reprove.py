"""Registered servers proved again: by newer stages, on a new base, or written by another model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from forge.errors import ForgeError
from orchestrator.errors import OrchestratorError
from orchestrator.forging import Forge
from orchestrator.orders import Report
from orchestrator.replacing import Replacing
from registry.errors import RegistryError
from registry.records import ENDED_JOBS, Entry, Job, new_id
from registry.store import Store
from sandbox.bundle import Bundle
from sandbox.errors import Frozen, SandboxError
from sandbox.launch import AUTHOR

Verdict = Literal["proved", "renewed", "failed", "skipped"]
FAILURES = (OrchestratorError, ForgeError, RegistryError, SandboxError, OSError)


@dataclass(frozen=True)
class Reproved:
    """`renewed` is a server with a new version, on another base; `failed` stays as it was, for this
    `reason`. `job` is where an author writes it anew beside it.
    """

    server: str
    version: int
    verdict: Verdict
    reason: str = ""
    job: str = ""


@dataclass(frozen=True)
class Reproving:
    """Proves one server after the other, with its own cases and the calls that it answered last."""

    store: Store
    forge: Forge
    now: Callable[[], float] = time.time

    async def reprove(self, entry: Entry, report: Report, author: str = "") -> Reproved:
        """What became of a server: on another base than it was proved on it is renewed, if it is
        at least as good there. Where an `author` is named its code is written anew on the side.

        Raises Frozen.
        """
        if entry.created_by == AUTHOR:
            reason = "a third-party server is proved when it is added"
            return Reproved(entry.name, entry.version, "skipped", reason)
        try:
            bundle = await asyncio.to_thread(self.forge.shelf.bundle, entry)
            found = await self._tried(entry, bundle, report)
        except Frozen:
            raise
        except FAILURES as error:
            stays = f"; it stays on {entry.base_image or 'its base'}"
            moved = entry.base_image != self.forge.engine.base
            reason = f"{error}{stays if moved else ''}"
            found = Reproved(entry.name, entry.version, "failed", reason)
        kind = "reproved" if found.verdict != "failed" else "reprove.failed"
        payload = {
            "verdict": found.verdict,
            "version": found.version,
            "reason": found.reason[:2000],
        }
        self.store.note(kind, entry.name, payload, self.now())
        if author and not entry.created_by.startswith("compiler"):
            return replace(found, job=self._anew(entry, author))
        return found

    async def _tried(self, entry: Entry, bundle: Bundle, report: Report) -> Reproved:
        if self.forge.versioned(bundle).version != entry.version:
            replacing = Replacing(self.store, self.forge)
            replaced = await replacing.replace(entry, bundle, report)
            return Reproved(entry.name, replaced.entry.version, "renewed")
        examples = await asyncio.to_thread(self.forge.shelf.examples, entry)
        proof = await self.forge.proof(bundle, report, {}, examples or None)
        if proof.passed:
            return Reproved(entry.name, entry.version, "proved")
        failed = next(each for each in proof.reports if not each.passed)
        told = [f"{case.operation} {case.case}: {case.evidence}" for case in failed.failures()]
        told += [f"{finding.where} {finding.reason}" for finding in failed.findings]
        reason = f"stage {failed.stage}: {'; '.join(told[:2])[:500]}"
        return Reproved(entry.name, entry.version, "failed", reason)

    def _anew(self, entry: Entry, author: str) -> str:
        """The id of the job in which an author writes a server's code anew; it takes the server's
        place only if it passes all that the present version has to pass.
        """
        for job in self.store.jobs(limit=200):
            mine = job.kind == "forge" and job.request.get("parent") == entry.name
            if mine and job.request.get("alike") and job.state not in ENDED_JOBS:
                return job.id
        task = f"Write the server {entry.name} anew, with the same tools: {entry.description}"
        request = {
            "task": task[:3500],
            "parent": entry.name,
            "name": entry.name,
            "alike": True,
            "author": author,
        }
        now = self.now()
        job = Job(new_id(), "forge", request, created=now, updated=now)
        self.store.create_job(job)
        return job.id
