"""Replacement of a version by one that is proved and does as well on the last calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from forge.compiler.compile import remove_operations
from forge.drafts.gains import format_reference
from orchestrator.errors import GainsUndecided, RepairFailed
from orchestrator.forging.forge import Forge
from orchestrator.forging.order import ForgeStep, Report
from orchestrator.forging.progress import time_stage
from orchestrator.forging.succession import find_unallowed_gains
from orchestrator.healing.losses import describe_changes, find_gone
from orchestrator.replay.rehearsal import CALLS, LOOKED_AT, Rehearsal, RehearsalResult
from registry.errors import RegistryError
from registry.health.canary import CanaryTrial, OutcomeCounts
from registry.models import Entry
from registry.store import Store
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof
from sandbox.errors import SandboxError
from sandbox.session.recorded_case import RecordedCase, add_case
from sandbox.stages.recorded import prove_recorded


@dataclass(frozen=True)
class Replacement:
    """The version that took the place, what it does not have any more or has under another name, in
    words, and how long each phase took, in milliseconds.
    """

    entry: Entry
    bundle: Bundle
    rehearsed: RehearsalResult
    changes: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class VersionReplacer:
    """Puts versions in place. Nothing is changed where it raises."""

    store: Store
    forge: Forge

    async def replace_version(
        self,
        entry: Entry,
        after: Bundle,
        report: Report,
        *,
        case: RecordedCase | None = None,
        keep: bool = True,
        fence: tuple[str, int] | None = None,
        timings: dict[str, float] | None = None,
    ) -> Replacement:
        """Register `after` as the next version of a server: it may do nothing that the version
        before may not, which fails `case`; all stages pass, with the cases before and that one; and
        the last successful calls come out as they did. `keep` the case for later versions. What the
        phases take is added to `timings`.

        Raises GainsUndecided, RepairFailed, SandboxError, RegistryError.
        """
        timings = {} if timings is None else timings
        shelf = self.forge.shelf
        before = await asyncio.to_thread(shelf.load_bundle, entry)
        examples = await asyncio.to_thread(shelf.load_examples, entry)
        more = find_unallowed_gains(after, before)
        if more:
            raise GainsUndecided(entry.name, entry.source, more)
        made = replace(after.provenance, parent=format_reference(before))
        bundle = self.forge.assign_version(replace(after, provenance=made))
        recorded = await asyncio.to_thread(shelf.load_recorded_cases, entry.name)
        names = {tool.name for tool in bundle.tools}
        if case is not None and case.tool not in names:
            case = None
        # What an API does not offer any more cannot be asked of the next version.
        recorded = tuple(one for one in recorded if one.tool in names)
        tried = add_case(recorded, case) if case else recorded
        with time_stage(timings, "try"):
            _, (bundle, proof), rehearsed = await _run_all(
                self._check_old_fails(before, case, timings),
                self._prove_version(before, bundle, report, examples, tried, timings),
                self._rehearse_version(entry, before, bundle, timings),
            )
        report(
            ForgeStep("rehearse", 0.95, f"{rehearsed.again} of its last calls come out as they did")
        )
        with time_stage(timings, "register"):
            await asyncio.to_thread(self._check_unchanged, entry)
            trial = await asyncio.to_thread(self._build_trial, entry, bundle)
            kept = tried if keep else recorded
            with self._hold_trial(trial, bundle):
                published = await self.forge.register_bundle(
                    bundle, proof, examples, fence, report, source=entry.source, recorded=kept
                )
        changes = describe_changes(before, bundle)
        return Replacement(published, bundle, rehearsed, changes, timings)

    async def _prove_version(
        self,
        before: Bundle,
        bundle: Bundle,
        report: Report,
        examples: Sequence[Example],
        tried: tuple[RecordedCase, ...],
        timings: dict[str, float],
    ) -> tuple[Bundle, Proof]:
        """The proof, and the bundle without those operations that fail and were not there before.
        Raises RepairFailed where a stage fails.
        """
        with time_stage(timings, "prove"):
            proof = await self.forge.prove_bundle(
                bundle, report, {}, examples or None, recorded=tried
            )
            fewer = await asyncio.to_thread(_drop_new_operations, before, bundle, proof)
            if fewer is not None:
                bundle = fewer
                proof = await self.forge.prove_bundle(
                    bundle, report, {}, examples or None, recorded=tried
                )
        if not proof.passed:
            raise RepairFailed(bundle.name, _render_failure(proof))
        return bundle, proof

    async def _check_old_fails(
        self, before: Bundle, case: RecordedCase | None, timings: dict[str, float]
    ) -> None:
        """Raises RepairFailed where the version before passes the case: it would prove nothing."""
        if case is None:
            return
        with time_stage(timings, "old fails"):
            report = await prove_recorded(before, (case,), self.forge.engine)
        if report.verdict != "failed":
            reason = f"the version before passes the case {case.name!r}, so it proves nothing"
            raise RepairFailed(before.name, reason)

    async def _rehearse_version(
        self, entry: Entry, before: Bundle, after: Bundle, timings: dict[str, float]
    ) -> RehearsalResult:
        """Raises RepairFailed where one of the last calls came out well, and does not any more."""
        calls = await asyncio.to_thread(self.store.calls.find, entry.name, LOOKED_AT)
        gone = find_gone(before, after)
        good = [call for call in calls if call.succeeded and call.tool not in gone][:CALLS]
        rehearsal = Rehearsal(self.store.calls, self.forge.engine)
        with time_stage(timings, "rehearse"):
            rehearsed = await rehearsal.rehearse_calls(before, after, good)
        if rehearsed.worse:
            reason = f"{rehearsed.worse} does not come out as it did under the version before"
            raise RepairFailed(entry.name, reason)
        return rehearsed

    def _check_unchanged(self, entry: Entry) -> None:
        """Raises RepairFailed where a person archived it meanwhile, or another version came."""
        current = self.store.servers.get(entry.name)
        if current.version != entry.version:
            raise RepairFailed(entry.name, f"version {current.version} came meanwhile")
        if current.state == "archived":
            raise RepairFailed(entry.name, "it was archived meanwhile")

    @contextmanager
    def _hold_trial(self, trial: CanaryTrial, bundle: Bundle) -> Iterator[None]:
        """Put a version on trial that the block registers, before anybody can call it. Where it is
        not registered, whatever becomes the version of that number is on no trial.
        """
        canaries = self.store.canaries
        earlier = canaries.get(trial.entry)
        canaries.begin_trial(trial)
        try:
            yield
        except (RegistryError, SandboxError):
            registered = self.store.servers.find_current(trial.entry)
            if registered != (bundle.version, bundle.compute_digest()):
                canaries.withdraw_trial(trial, earlier, time.time())
            raise

    def _build_trial(self, entry: Entry, bundle: Bundle) -> CanaryTrial:
        standing = self.store.standings.get(entry.name)
        good = round((standing.ratio or 0.0) * standing.window)
        old = OutcomeCounts(good, standing.window - good)
        return CanaryTrial(entry.name, bundle.version, entry.version, time.time(), old=old)


async def _run_all(
    fails: Coroutine[Any, Any, None],
    proved: Coroutine[Any, Any, tuple[Bundle, Proof]],
    rehearsed: Coroutine[Any, Any, RehearsalResult],
) -> tuple[None, tuple[Bundle, Proof], RehearsalResult]:
    """All three at once, each to its end; the first exception of them is raised then."""
    failed = asyncio.ensure_future(fails)
    proof, again = asyncio.ensure_future(proved), asyncio.ensure_future(rehearsed)
    try:
        await asyncio.wait((failed, proof, again))
    finally:
        for task in (failed, proof, again):
            task.cancel()
    return failed.result(), proof.result(), again.result()


def _drop_new_operations(before: Bundle, bundle: Bundle, proof: Proof) -> Bundle | None:
    """The bundle without the operations that fail, where those are all new: the version before may
    have left them out for the same reason. None where it is not that.
    """
    known = {operation.id for operation in before.spec.operations} if before.spec else set()
    failed = {case.operation for report in proof.reports for case in report.list_failures()}
    if proof.passed or not failed or failed & known:
        return None
    return remove_operations(bundle, failed)


def _render_failure(proof: Proof) -> str:
    failed = next(report for report in proof.reports if not report.passed)
    told = [f"{case.operation} {case.case}: {case.evidence}" for case in failed.list_failures()[:1]]
    told += [f"{finding.where} {finding.reason}" for finding in failed.findings[:1]]
    return f"stage {failed.stage} failed: {'; '.join(told)[:400]}"
