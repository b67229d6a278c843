"""Proving registered servers again: with newer stages, on a new base image, or with code of another
model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.forging.forge import Forge
from orchestrator.forging.order import Report
from orchestrator.healing.escalation import find_rewrites, queue_rewrite
from orchestrator.healing.replace import VersionReplacer
from orchestrator.jobs.runner import KNOWN_FAILURES
from orchestrator.replay.rehearsal import LOOKED_AT, find_still_failing
from registry.models import Entry, EntryState
from registry.servers.quarantine import BY_RECORD
from registry.store import Store
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.model import Bundle
from sandbox.errors import Frozen

BLAMED = 5
"""How many of the calls that counted against a server are made again before it is in use again."""
SHOWN_GOOD = "it passes every stage again"
Verdict = Literal["proved", "renewed", "failed", "skipped"]


@dataclass(frozen=True)
class ReproofResult:
    """`renewed` is a server with a new version, on another base; `failed` stays as it was, for this
    `reason`. `job` is where an author writes it anew beside it.
    """

    server: str
    version: int
    verdict: Verdict
    reason: str = ""
    job: str = ""


@dataclass(frozen=True)
class Reprover:
    """Proves one server after the other, with its own cases and the calls that it answered last."""

    store: Store
    forge: Forge
    now: Callable[[], float] = time.time

    async def reprove_server(
        self,
        entry: Entry,
        report: Report,
        author: str = "",
        fence: tuple[str, int] | None = None,
    ) -> ReproofResult:
        """What became of a server: on another base than it was proved on it is renewed, if it is
        at least as good there; a quarantined one that is shown to be good is in use again. Where an
        `author` is named its code is written anew on the side. `fence` is the job, with its
        attempt, on whose behalf it is renewed.

        Raises Frozen.
        """
        if entry.created_by == AUTHOR:
            reason = "a third-party server is proved when it is added"
            return ReproofResult(entry.name, entry.version, "skipped", reason)
        try:
            bundle = await asyncio.to_thread(self.forge.shelf.load_bundle, entry)
            found = await self._prove_again(entry, bundle, report, fence)
        except Frozen:
            raise
        except KNOWN_FAILURES as error:
            stays = f"; it stays on {entry.base_image or 'its base'}"
            moved = entry.base_image != self.forge.engine.base
            reason = f"{error}{stays if moved else ''}"
            found = ReproofResult(entry.name, entry.version, "failed", reason)
        kind = "reproved" if found.verdict != "failed" else "reprove.failed"
        payload = {
            "verdict": found.verdict,
            "version": found.version,
            "reason": found.reason[:2000],
        }
        self.store.audit.add_note(kind, entry.name, payload, self.now())
        if author and not entry.created_by.startswith("compiler"):
            return replace(found, job=self._queue_rewrite(entry, author))
        return found

    async def _prove_again(
        self, entry: Entry, bundle: Bundle, report: Report, fence: tuple[str, int] | None
    ) -> ReproofResult:
        if self.forge.assign_version(bundle).version != entry.version:
            return await self._renew(entry, bundle, report, fence)
        examples = await asyncio.to_thread(self.forge.shelf.load_examples, entry)
        proof = await self.forge.prove_bundle(bundle, report, {}, examples or None)
        if proof.passed:
            lifted = await self._lift_quarantine(entry, bundle)
            return ReproofResult(entry.name, entry.version, "proved", lifted)
        failed = next(each for each in proof.reports if not each.passed)
        told = [f"{case.operation} {case.case}: {case.evidence}" for case in failed.list_failures()]
        told += [f"{finding.where} {finding.reason}" for finding in failed.findings]
        reason = f"stage {failed.stage}: {'; '.join(told[:2])[:500]}"
        return ReproofResult(entry.name, entry.version, "failed", reason)

    async def _renew(
        self, entry: Entry, bundle: Bundle, report: Report, fence: tuple[str, int] | None
    ) -> ReproofResult:
        """The server as its next version on the present base, which lifts a quarantine: one that
        has to stay is not renewed.
        """
        stays = await self._find_obstacle(entry, bundle)
        if stays:
            return ReproofResult(entry.name, entry.version, "failed", stays)
        replacing = VersionReplacer(self.store, self.forge)
        replaced = await replacing.replace_version(entry, bundle, report, fence=fence)
        lifted = entry.state == "quarantined"
        reason = f"{SHOWN_GOOD}: it is {replaced.entry.state} again" if lifted else ""
        return ReproofResult(entry.name, replaced.entry.version, "renewed", reason)

    async def _lift_quarantine(self, entry: Entry, bundle: Bundle) -> str:
        """Put a server back in use that its record or its cases had quarantined, where the calls
        that counted against it do not fail any more; what became of it, in words.
        """
        if entry.state != "quarantined":
            return ""
        stays = await self._find_obstacle(entry, bundle)
        if stays:
            return stays
        reports = self.store.servers.get_reports(entry.name, entry.version)
        state: EntryState = "active" if all(r.passed for r in reports) else "experimental"
        self.store.quarantine.lift(
            entry.name, entry.version, state, "reprove", SHOWN_GOOD, self.now()
        )
        return f"{SHOWN_GOOD}: it is {state} again"

    async def _find_obstacle(self, entry: Entry, bundle: Bundle) -> str:
        """Why a proof does not lift a server's quarantine, in words; "" where it does, or the
        server is not quarantined.
        """
        if entry.state != "quarantined":
            return ""
        said = self.store.servers.get_last_state(entry.name)
        if said.get("by") not in BY_RECORD:
            return f"it stays quarantined by {said.get('by')}: {said.get('reason')}"
        calls = await asyncio.to_thread(self.store.calls.find, entry.name, LOOKED_AT)
        blamed = [c for c in calls if c.version == entry.version and c.fault == "server"][:BLAMED]
        failing = await find_still_failing(bundle, blamed, self.store.calls, self.forge.engine)
        if not failing:
            return ""
        return f"it stays quarantined: call {failing} fails again (`toolwright logs`)"

    def _queue_rewrite(self, entry: Entry, author: str) -> str:
        """The id of the job in which an author writes a server's code anew; it takes the server's
        place only if it passes all that the present version has to pass.
        """
        for job in find_rewrites(self.store.jobs, entry.name):
            if job.request.get("alike"):
                return job.id
        task = f"Write the server {entry.name} anew, with the same tools: {entry.description}"
        return queue_rewrite(self.store.jobs, entry.name, task, self.now(), author=author).id
