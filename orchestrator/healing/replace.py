"""A version in place of another: only one that is proved, and at least as good on what happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from forge.mutation import gains, reference
from forge.omission import without_operations
from orchestrator.brokers import origins
from orchestrator.errors import GainsUndecided, RepairFailed
from orchestrator.forging import Forge
from orchestrator.orders import Report, Step
from orchestrator.rehearsal import CALLS, Rehearsal, Rehearsed
from registry.records import Entry
from registry.store import Store
from registry.trial import Tally, Trial
from sandbox.bundle import Bundle
from sandbox.example import Example
from sandbox.policy import SAFE_METHODS, origin_of
from sandbox.recordedcase import RecordedCase, added
from sandbox.recordedstage import prove_recorded
from sandbox.report import Proof

LOOKED_AT = 200
"""Of so many of the last calls, those that succeeded are run again, up to a limit."""


@dataclass(frozen=True)
class Replaced:
    """The version that took the place, and how long each phase of that took, in milliseconds."""

    entry: Entry
    bundle: Bundle
    rehearsed: Rehearsed
    timings: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Clocked:
    """Adds up what the phases take, in milliseconds."""

    timings: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.timings[name] = self.timings.get(name, 0.0) + spent


@dataclass(frozen=True)
class Replacing:
    """Puts versions in place. Nothing is changed where it raises."""

    store: Store
    forge: Forge

    async def replace(
        self,
        entry: Entry,
        after: Bundle,
        report: Report,
        *,
        case: RecordedCase | None = None,
        keep: bool = True,
        fence: tuple[str, int] | None = None,
        clocked: Clocked | None = None,
    ) -> Replaced:
        """Register `after` as the next version of a server: it may do nothing that the version
        before may not, which fails `case`; all stages pass, with the cases before and that one; and
        the last successful calls come out as they did. `keep` the case for later versions.

        Raises GainsUndecided, RepairFailed, SandboxError, RegistryError.
        """
        clocked = clocked or Clocked()
        shelf = self.forge.shelf
        before = await asyncio.to_thread(shelf.bundle, entry)
        examples = await asyncio.to_thread(shelf.examples, entry)
        more = beyond(after, before)
        if more:
            raise GainsUndecided(entry.name, entry.source, more)
        made = replace(after.provenance, parent=reference(before))
        bundle = self.forge.versioned(replace(after, provenance=made))
        recorded = await asyncio.to_thread(shelf.recorded, entry.name)
        tried = added(recorded, case) if case else recorded
        with clocked.phase("try"):
            _, (bundle, proof), rehearsed = await _all(
                self._fails(before, case, clocked),
                self._proved(before, bundle, report, examples, tried, clocked),
                self._rehearsed(entry, before, bundle, clocked),
            )
        report(Step("rehearse", 0.95, f"{rehearsed.again} of its last calls come out as they did"))
        with clocked.phase("register"):
            await asyncio.to_thread(self._still_there, entry)
            trial = await asyncio.to_thread(self._trial, entry, bundle)
            self.store.begin_trial(trial)
            kept = tried if keep else recorded
            published = await self.forge.registered(
                bundle, proof, examples, fence, report, source=entry.source, recorded=kept
            )
        return Replaced(published, bundle, rehearsed, clocked.timings)

    async def _proved(
        self,
        before: Bundle,
        bundle: Bundle,
        report: Report,
        examples: Sequence[Example],
        tried: tuple[RecordedCase, ...],
        clocked: Clocked,
    ) -> tuple[Bundle, Proof]:
        """The proof, and the bundle without those operations that fail and were not there before.
        Raises RepairFailed where a stage fails.
        """
        with clocked.phase("prove"):
            proof = await self.forge.proof(bundle, report, {}, examples or None, recorded=tried)
            fewer = await asyncio.to_thread(_without_new, before, bundle, proof)
            if fewer is not None:
                bundle = fewer
                proof = await self.forge.proof(bundle, report, {}, examples or None, recorded=tried)
        if not proof.passed:
            raise RepairFailed(bundle.name, _why(proof))
        return bundle, proof

    async def _fails(self, before: Bundle, case: RecordedCase | None, clocked: Clocked) -> None:
        """Raises RepairFailed where the version before passes the case: it would prove nothing."""
        if case is None:
            return
        with clocked.phase("old fails"):
            report = await prove_recorded(before, (case,), self.forge.engine)
        if report.verdict != "failed":
            reason = f"the version before passes the case {case.name!r}, so it proves nothing"
            raise RepairFailed(before.name, reason)

    async def _rehearsed(
        self, entry: Entry, before: Bundle, after: Bundle, clocked: Clocked
    ) -> Rehearsed:
        """Raises RepairFailed where one of the last calls came out well, and does not any more."""
        calls = await asyncio.to_thread(self.store.invocations, entry.name, LOOKED_AT)
        good = [call for call in calls if call.succeeded][:CALLS]
        names = {tool.name for tool in after.tools}
        lost = next((call.tool for call in good if call.tool not in names), "")
        if lost:
            raise RepairFailed(entry.name, f"{lost}, which worked, would be gone")
        rehearsal = Rehearsal(self.store, self.forge.engine)
        with clocked.phase("rehearse"):
            rehearsed = await rehearsal.of(before, after, good)
        if rehearsed.worse:
            reason = f"{rehearsed.worse} does not come out as it did under the version before"
            raise RepairFailed(entry.name, reason)
        return rehearsed

    def _still_there(self, entry: Entry) -> None:
        """Raises RepairFailed where a person archived it meanwhile, or another version came."""
        current = self.store.entry(entry.name)
        if current.version != entry.version:
            raise RepairFailed(entry.name, f"version {current.version} came meanwhile")
        if current.state == "archived":
            raise RepairFailed(entry.name, "it was archived meanwhile")

    def _trial(self, entry: Entry, bundle: Bundle) -> Trial:
        standing = self.store.standing(entry.name)
        good = round((standing.ratio or 0.0) * standing.window)
        old = Tally(good, standing.window - good)
        return Trial(entry.name, bundle.version, entry.version, time.time(), old=old)


async def _all(
    fails: Coroutine[Any, Any, None],
    proved: Coroutine[Any, Any, tuple[Bundle, Proof]],
    rehearsed: Coroutine[Any, Any, Rehearsed],
) -> tuple[None, tuple[Bundle, Proof], Rehearsed]:
    """All three at once, each to its end; the first exception of them is raised then."""
    failed = asyncio.ensure_future(fails)
    proof, again = asyncio.ensure_future(proved), asyncio.ensure_future(rehearsed)
    try:
        await asyncio.wait((failed, proof, again))
    finally:
        for task in (failed, proof, again):
            task.cancel()
    return failed.result(), proof.result(), again.result()


def beyond(after: Bundle, before: Bundle) -> tuple[str, ...]:
    """What a version may do that the one before may not, in words; a read of the same hosts by
    another path is none of that.
    """
    known = origins(before)
    free = {
        f"{request.method} {request.url[:200]}"
        for tool in after.tools
        for request in tool.requests
        if tool.access == "read"
        and request.method in SAFE_METHODS
        and origin_of(request.url.split("{", 1)[0]) in known
    }
    return tuple(gain for gain in gains(after, before) if gain not in free)


def _without_new(before: Bundle, bundle: Bundle, proof: Proof) -> Bundle | None:
    """The bundle without the operations that fail, where those are all new: the version before may
    have left them out for the same reason. None where it is not that.
    """
    known = {operation.id for operation in before.spec.operations} if before.spec else set()
    failed = {case.operation for report in proof.reports for case in report.failures()}
    if proof.passed or not failed or failed & known:
        return None
    return without_operations(bundle, failed)


def _why(proof: Proof) -> str:
    failed = next(report for report in proof.reports if not report.passed)
    told = [f"{case.operation} {case.case}: {case.evidence}" for case in failed.failures()[:1]]
    told += [f"{finding.where} {finding.reason}" for finding in failed.findings[:1]]
    return f"stage {failed.stage} failed: {'; '.join(told)[:400]}"
