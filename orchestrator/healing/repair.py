"""Repairs, carried out: the remedy, the proofs, the call that failed once more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from forge.errors import ForgeError
from orchestrator.calls import Call, Done, Reply
from orchestrator.causes import told_cause
from orchestrator.errors import GainsUndecided, NoRemedy, OrchestratorError, RepairFailed
from orchestrator.forging import Forge
from orchestrator.jobs import Report
from orchestrator.ladder import Ladder
from orchestrator.orders import Step
from orchestrator.remedies import Failing, Remedy, case_of, compiled_again, paced, widest
from orchestrator.replacing import Clocked, Replaced, Replacing, beyond
from registry.cause import Cause
from registry.errors import NotRecorded, RegistryError
from registry.records import Entry, Invocation, Job
from registry.store import Store
from sandbox.bundle import Bundle
from sandbox.errors import Frozen, SandboxError
from sandbox.recordedstage import prove_recorded

EVIDENCE = 200
"""How many of a server's last calls a rate is learned from."""
RETRIES = (0.0, 1.0, 3.0)
"""Seconds to wait before each try of the call that failed."""
BROKEN = (OrchestratorError, ForgeError, RegistryError, SandboxError)

Retry = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True)
class Repairs:
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
        clocked = Clocked()
        with clocked.phase("diagnose"):
            server, version = str(job.request["server"]), int(job.request["version"])
            entry = self.store.entry(server)
            if entry.version != version:
                return {"server": server, "told": f"version {entry.version} is in place already"}
            before = await asyncio.to_thread(self.forge.shelf.bundle, entry)
            if before.launch is not None:
                raise RepairFailed(server, "it is a third-party server, not ours to change")
            if entry.state == "archived":
                raise RepairFailed(server, "it is archived")
            failing = await asyncio.to_thread(self._failing, str(job.request["call"]))
        cause = failing.cause if failing else Cause("drift", str(job.request["cause"]), "recompile")
        report("diagnose", 0.05, cause.text)
        try:
            replaced = await self._replaced(job, entry, before, failing, cause, clocked, report)
        except Frozen:
            raise
        except BROKEN as error:
            raise await self._given_up(entry, before, failing, cause, error) from error
        self.changed()
        told: dict[str, Any] = {
            "server": server,
            "version": replaced.entry.version,
            "instead_of": version,
            "cause": cause.text,
            "rehearsed": replaced.rehearsed.again,
        }
        if failing:
            with clocked.phase("retry"):
                told["retried"] = await self._tried_again(job, failing.call)
        told["milliseconds"] = {name: round(ms, 1) for name, ms in clocked.timings.items()}
        return told

    async def _replaced(
        self,
        job: Job,
        entry: Entry,
        before: Bundle,
        failing: Failing | None,
        cause: Cause,
        clocked: Clocked,
        report: Report,
    ) -> Replaced:
        def step(step: Step) -> None:
            report(step.stage, step.progress, step.message)

        with clocked.phase("remedy"):
            remedy = await self._remedy(entry, before, failing, cause, step)
        report("remedy", 0.2, remedy.told)
        replacing = Replacing(self.store, self.forge)
        return await replacing.replace(
            entry,
            remedy.bundle,
            step,
            case=remedy.case,
            keep=remedy.lasting,
            fence=(job.id, job.attempt),
            clocked=clocked,
        )

    async def _remedy(
        self,
        entry: Entry,
        before: Bundle,
        failing: Failing | None,
        cause: Cause,
        step: Callable[[Step], None],
    ) -> Remedy:
        """The change that mends it: of its pace, or as its refreshed description says, or by what
        it was answered. Raises NoRemedy, RepairFailed.
        """
        if failing and cause.repair == "rate":
            calls = await asyncio.to_thread(self._evidence, failing.call)
            return paced(before, failing, calls)
        if cause.repair in ("widen", "recompile"):
            widens = failing if cause.repair == "widen" else None
            try:
                fresh = await self._fresh(entry, before, step)
                # What may do more is a person's to decide; what it was answered may do without.
                if not (widens and beyond(fresh, before)):
                    remedy = compiled_again(before, fresh, failing)
                    return _also_widened(remedy, widens) if widens else remedy
            except NoRemedy:
                if widens is None:
                    raise
            assert widens is not None
            return widest(before, widens)
        raise NoRemedy("it is its code that has to change")

    async def _fresh(self, entry: Entry, before: Bundle, step: Callable[[Step], None]) -> Bundle:
        """The bundle of the description as it is now. Raises NoRemedy."""
        if before.provenance.author != "compiler":
            raise NoRemedy("it was not compiled from a description")
        try:
            return await self.forge.compiled_again(entry, step)
        except Frozen:
            raise
        except BROKEN as error:
            raise NoRemedy(f"its description cannot be had: {error}") from error

    def _failing(self, identity: str) -> Failing | None:
        """The call that a repair is about. Raises NoRemedy where there is nothing to mend by."""
        if not identity:
            return None
        call = self.store.invocation(identity)
        cause = told_cause(self.store, self.forge.shelf, call)
        if cause is None:
            raise NoRemedy(f"{identity} did not fail")
        return Failing(call, cause, self._recording(identity))

    def _recording(self, identity: str) -> Any:
        try:
            kept = self.store.recording(identity)
        except NotRecorded:
            return None
        return kept.recording if kept.intact else None

    def _evidence(self, failing: Invocation) -> tuple[Invocation, ...]:
        """The server's last calls; of the newest that succeeded like the failing one also what it
        took in.
        """
        calls = list(self.store.invocations(failing.entry, EVIDENCE))
        for place, call in enumerate(calls):
            same = call.tool == failing.tool and call.arguments == failing.arguments
            if same and call.succeeded:
                calls[place] = replace(call, recording=self._recording(call.id))
                break
        return tuple(calls)

    async def _given_up(
        self,
        entry: Entry,
        before: Bundle,
        failing: Failing | None,
        cause: Cause,
        error: Exception,
    ) -> Exception:
        """What a repair that came to nothing ends with: a job for an author where code may help,
        and the next step down the ladder.
        """
        if isinstance(error, GainsUndecided):
            return error
        ladder = Ladder(self.store, self.now)
        told = str(error)
        helps = cause.kind in ("bug", "drift") and isinstance(error, NoRemedy | RepairFailed)
        if helps and failing and failing.recording:
            report = await self._shown(before, failing)
            job = await asyncio.to_thread(ladder.rewritten, before, cause, failing.call.id, report)
            told = f"{told}. Job {job} waits for an author's code"
        last = isinstance(error, NoRemedy) and not helps
        down = await asyncio.to_thread(ladder.given_up, entry, before, cause, told, last)
        return RepairFailed(entry.name, f"{told}. {down}" if down else told)

    async def _shown(self, before: Bundle, failing: Failing) -> Any:
        """How the failing call comes out again, as the stages tell it; None where it comes well."""
        case = case_of(failing.call, failing.recording)
        if case is None:
            return None
        report = await prove_recorded(before, (case,), self.forge.engine)
        return report if report.verdict == "failed" else None

    async def _tried_again(self, job: Job, call: Invocation) -> Mapping[str, Any]:
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
            told = await self._answered(again)
            if told["succeeded"] or not told["limited"]:
                break
        return told

    async def _answered(self, call: Call) -> dict[str, Any]:
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
        limited = failure is not None and (failure.status == 429 or failure.kind == "rate_limited")
        return {"call": reply.invocation, "succeeded": failure is None, "limited": limited}


def _also_widened(remedy: Remedy, failing: Failing) -> Remedy:
    """The remedy, widened where the refreshed description does not have what was answered."""
    try:
        wider = widest(remedy.bundle, failing)
    except (NoRemedy, KeyError):
        return remedy
    return replace(wider, told=f"{remedy.told}; {wider.told}")
