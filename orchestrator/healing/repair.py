"""Runs repair jobs: finds the remedy, proves the new version, and retries the call that failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.calls import Call, Done, Reply
from orchestrator.errors import GainsUndecided, NoRemedy, RepairFailed
from orchestrator.forging.forge import Forge
from orchestrator.forging.order import ForgeStep, Report
from orchestrator.forging.progress import time_stage
from orchestrator.forging.succession import find_unallowed_gains
from orchestrator.healing.escalation import Escalation
from orchestrator.healing.monitor import BROKEN, diagnose_call
from orchestrator.healing.own_cases import OwnCases
from orchestrator.healing.remedies import (
    FailedCall,
    Remedy,
    build_pace_remedy,
    build_recompile_remedy,
    build_widening_remedy,
)
from orchestrator.healing.replace import Replacement, VersionReplacer
from orchestrator.healing.reprove import Reprover
from orchestrator.replay.rehearsal import build_failed_case
from registry.errors import RecordingMissing
from registry.health.causes import Cause
from registry.models import Entry, Invocation, Job
from registry.servers.quarantine import render_forge_command
from registry.store import Store
from registry.trust import is_rate_limit
from sandbox.bundle.model import Bundle
from sandbox.errors import Frozen
from sandbox.stages.recorded import prove_recorded

EVIDENCE = 200
"""How many of a server's last calls a rate is learned from."""
RETRIES = (0.0, 1.0, 3.0)
"""Seconds to wait before each try of the call that failed."""

Retry = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True)
class RepairRunner:
    """Carries out the repairs of servers that are ours. `retry` is a call; `changed` is called when
    a version has taken its place in this process.
    """

    store: Store
    forge: Forge
    retry: Retry
    changed: Callable[[], None]
    now: Callable[[], float] = time.time

    async def repair_job(self, job: Job, report: Report) -> Mapping[str, Any]:
        """Carry out a repair; what its result says. Raises RepairFailed, GainsUndecided and what
        proving raises; the server is as it was then, or archived.
        """
        timings: dict[str, float] = {}
        with time_stage(timings, "diagnose"):
            server, version = str(job.request["server"]), int(job.request["version"])
            entry = self.store.servers.get(server)
            if entry.version != version:
                return {"server": server, "told": f"version {entry.version} is in place already"}
            before = await asyncio.to_thread(self.forge.shelf.load_bundle, entry)
            if before.launch is not None:
                raise RepairFailed(server, "it is a third-party server, not ours to change")
            if entry.state == "archived":
                raise RepairFailed(server, "it is archived")
            if job.request.get("check"):
                check = OwnCases(self.store, self.forge, self.now)
                told = await check.check_server(entry, before, str(job.request["call"]))
                self.changed()
                return told
            renewed = await self._renew_quarantined(job, entry, report)
            if renewed is not None:
                self.changed()
                return renewed
            failing = await asyncio.to_thread(self._load_failing_call, str(job.request["call"]))
        cause = failing.cause if failing else Cause("drift", str(job.request["cause"]), "recompile")
        report(ForgeStep("diagnose", 0.05, cause.text))
        try:
            replaced = await self._replace_version(
                job, entry, before, failing, cause, timings, report
            )
        except Frozen:
            raise
        except BROKEN as error:
            raise await self._escalate_failure(entry, before, failing, cause, error) from error
        self.changed()
        done: dict[str, Any] = {
            "server": server,
            "version": replaced.entry.version,
            "instead_of": version,
            "cause": cause.text,
            "rehearsed": replaced.rehearsed.again,
            "changes": list(replaced.changes),
        }
        if failing and not failing.call.succeeded:
            with time_stage(timings, "retry"):
                done["retried"] = await self._retry_call(job, failing.call)
        done["milliseconds"] = {name: round(ms, 1) for name, ms in timings.items()}
        return done

    async def _renew_quarantined(
        self, job: Job, entry: Entry, report: Report
    ) -> Mapping[str, Any] | None:
        """The result of a repair that nothing had to be changed for: the server was quarantined on
        another base image, and is good on the present one. None where it is not that.
        """
        if entry.state != "quarantined" or entry.base_image == self.forge.engine.base:
            return None
        reprover = Reprover(self.store, self.forge, self.now)
        found = await reprover.reprove_server(entry, report, fence=(job.id, job.attempt))
        if found.verdict != "renewed":
            return None
        told = f"on the present base image {found.reason}"
        return {"server": entry.name, "version": found.version, "told": told}

    async def _replace_version(
        self,
        job: Job,
        entry: Entry,
        before: Bundle,
        failing: FailedCall | None,
        cause: Cause,
        timings: dict[str, float],
        report: Report,
    ) -> Replacement:
        with time_stage(timings, "remedy"):
            remedy = await self._find_remedy(entry, before, failing, cause, report)
        report(ForgeStep("remedy", 0.2, remedy.told))
        replacing = VersionReplacer(self.store, self.forge)
        return await replacing.replace_version(
            entry,
            remedy.bundle,
            report,
            case=remedy.case,
            keep=remedy.lasting,
            fence=(job.id, job.attempt),
            timings=timings,
        )

    async def _find_remedy(
        self,
        entry: Entry,
        before: Bundle,
        failing: FailedCall | None,
        cause: Cause,
        report: Report,
    ) -> Remedy:
        """The change that mends it: of its pace, or as its refreshed description says, or by what
        it was answered. Raises NoRemedy, RepairFailed.
        """
        if failing and cause.repair == "rate":
            calls = await asyncio.to_thread(self._load_evidence, failing.call)
            return build_pace_remedy(before, failing, calls)
        if cause.repair in ("widen", "recompile"):
            widens = failing if cause.repair == "widen" else None
            try:
                fresh = await self._recompile_bundle(entry, before, report)
                # What may do more is a person's to decide; what it was answered may do without.
                if not (widens and find_unallowed_gains(fresh, before)):
                    remedy = build_recompile_remedy(before, fresh, failing)
                    return _widen_remedy(remedy, widens) if widens else remedy
            except NoRemedy:
                if widens is None:
                    raise
            assert widens is not None
            return build_widening_remedy(before, widens)
        raise NoRemedy("it is its code that has to change")

    async def _recompile_bundle(self, entry: Entry, before: Bundle, report: Report) -> Bundle:
        """The bundle of the description as it is now. Raises NoRemedy."""
        if before.provenance.author != "compiler":
            raise NoRemedy("it was not compiled from a description")
        try:
            return await self.forge.compile_again(entry, report)
        except Frozen:
            raise
        except BROKEN as error:
            raise NoRemedy(f"its description cannot be had: {error}") from error

    def _load_failing_call(self, identity: str) -> FailedCall | None:
        """The call that a repair is about. Raises NoRemedy where there is nothing to mend by."""
        if not identity:
            return None
        call = self.store.calls.get(identity)
        cause = diagnose_call(self.store.servers, self.forge.shelf, call)
        if cause is None:
            raise NoRemedy(f"{identity} did not fail")
        return FailedCall(call, cause, self._load_recording(identity))

    def _load_recording(self, identity: str) -> Any:
        try:
            kept = self.store.calls.get_recording(identity)
        except RecordingMissing:
            return None
        return kept.recording if kept.intact else None

    def _load_evidence(self, failing: Invocation) -> tuple[Invocation, ...]:
        """The server's last calls; of the newest that succeeded like the failing one also what it
        took in.
        """
        calls = list(self.store.calls.find(failing.entry, EVIDENCE))
        for place, call in enumerate(calls):
            same = call.tool == failing.tool and call.arguments == failing.arguments
            if same and call.succeeded:
                calls[place] = replace(call, recording=self._load_recording(call.id))
                break
        return tuple(calls)

    async def _escalate_failure(
        self,
        entry: Entry,
        before: Bundle,
        failing: FailedCall | None,
        cause: Cause,
        error: Exception,
    ) -> Exception:
        """What a repair that came to nothing ends with: a job for an author where code may help,
        and the next step down the ladder.
        """
        if isinstance(error, GainsUndecided):
            return error
        told = error.reason if isinstance(error, RepairFailed) else str(error).rstrip(".")
        if failing and failing.call.succeeded:
            # Its answers came: what differs is nobody's fault, and no reason to take it away.
            return RepairFailed(entry.name, told)
        ladder = Escalation(self.store, self.now)
        helps = cause.kind in ("bug", "drift") and isinstance(error, NoRemedy | RepairFailed)
        if helps and failing and failing.recording:
            report = await self._prove_failing(before, failing)
            job = await asyncio.to_thread(
                ladder.queue_rewrite, before, cause, failing.call.id, report
            )
            told = f"{told}. Job {job} waits for an author's code{_tell_forging(entry, cause)}"
        last = isinstance(error, NoRemedy) and not helps
        down = await asyncio.to_thread(ladder.archive_unrepaired, entry, before, cause, told, last)
        return RepairFailed(entry.name, f"{told}. {down}" if down else told)

    async def _prove_failing(self, before: Bundle, failing: FailedCall) -> Any:
        """How the failing call comes out again, as the stages tell it; None where it comes well."""
        case = build_failed_case(failing.call, failing.recording)
        if case is None:
            return None
        report = await prove_recorded(before, (case,), self.forge.engine)
        return report if report.verdict == "failed" else None

    async def _retry_call(self, job: Job, call: Invocation) -> Mapping[str, Any]:
        """The call that failed, made once more where it only reads; no write is repeated."""
        if call.access != "read":
            return {"told": "it writes: ask for it again"}
        again = Call(
            call.entry,
            call.tool,
            call.arguments,
            task=call.task,
            reason=f"tried again after repair {job.id}",
            session=call.session,
        )
        told: Mapping[str, Any] = {}
        for pause in RETRIES:
            await asyncio.sleep(pause)
            told = await self._call_once(again)
            if told["succeeded"] or not told["limited"]:
                break
        return told

    async def _call_once(self, call: Call) -> dict[str, Any]:
        """What a call came to, and whether it was refused for a rate: others may still crowd the
        API that began before the repair.
        """
        try:
            reply = await self.retry(call)
        except BROKEN as error:
            return {"told": str(error), "succeeded": False, "limited": False}
        if not isinstance(reply, Done):
            return {"told": reply.reason, "succeeded": False, "limited": False}
        failure = reply.outcome.failure
        limited = failure is not None and is_rate_limit(failure.kind, failure.status)
        return {"call": reply.invocation, "succeeded": failure is None, "limited": limited}


def _widen_remedy(remedy: Remedy, failing: FailedCall) -> Remedy:
    """The remedy, widened where the refreshed description does not have what was answered."""
    try:
        wider = build_widening_remedy(remedy.bundle, failing)
    except (NoRemedy, KeyError):
        return remedy
    return replace(wider, told=f"{remedy.told}; {wider.told}")


def _tell_forging(entry: Entry, cause: Cause) -> str:
    """What a person can do where the API is another one by its description, which no repair takes:
    it would answer some calls otherwise.
    """
    if cause.repair != "recompile" or entry.created_by != "compiler":
        return ""
    return f"; `{render_forge_command(entry)}` makes a version of the description as it is now"
