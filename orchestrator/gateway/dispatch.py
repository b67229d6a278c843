"""Dispatch of tool calls: gate, session, record. Approved writes are carried out here too."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from orchestrator.approvals.accounts import choose_approved
from orchestrator.approvals.gate import Ask, Deny, GateQuestion, judge_call
from orchestrator.calls import Call, Done, RefusedCall, Reply
from orchestrator.errors import UnknownTool
from orchestrator.gateway.admission import Admission
from orchestrator.gateway.approved_writes import ApprovalRequester, InFlight
from orchestrator.gateway.arguments import add_note
from orchestrator.gateway.audit_writer import CallWriter
from orchestrator.gateway.catalog import Catalog, RegisteredServer
from orchestrator.gateway.denial import add_denial, explain_denial
from orchestrator.gateway.execute import Execution
from orchestrator.gateway.nested import InnerCalls, NestedCalls
from orchestrator.gateway.record import CallRecorder, build_cancelled_outcome, find_write_state
from orchestrator.gateway.secret_arguments import (
    find_secret_arguments,
    hide_outcome_beside,
    mark_secrets,
    render_unstored,
)
from registry.approvals.approvals import MAX_NESTING
from registry.approvals.decisions import find_broken_term
from registry.errors import KeyUnusable, NotCallable, VaultDamaged
from registry.health.causes import find_cause
from registry.models import Approval, Invocation, Job, generate_id
from registry.servers.quarantine import explain_archive, explain_quarantine
from registry.store import Store
from registry.trust import is_rate_limit
from sandbox.broker.broker import Broker
from sandbox.bundle.apispec import Access
from sandbox.bundle.model import Bundle
from sandbox.errors import BundleInvalid, Frozen
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Outcome
from sandbox.session.recording import CallLog
from sandbox.wire.exchange import Capture, Release, digest_request
from sandbox.wire.framing import CONTAINERS, measure_depth
from sandbox.wire.notifications import ignore_progress

MAX_DEPTH = 240
"""Levels of a call's arguments. JSON is written by orjson down to 254."""


@dataclass
class Dispatch:
    """Calls tools of registered servers. One per process, on one event loop.

    `running` are the calls that go on now, `writing` those that have begun to write.
    """

    store: Store
    ledger: CallWriter
    roster: Catalog
    admission: Admission
    execution: Execution
    captures: ApprovalRequester
    recorder: CallRecorder
    kill_switch: KillSwitch
    process: str
    now: Callable[[], float] = time.time
    running: dict[str, tuple[Call, asyncio.Task[Reply]]] = field(default_factory=dict)
    writing: InFlight = field(default_factory=InFlight)
    nested: NestedCalls = field(init=False)

    def __post_init__(self) -> None:
        self.nested = NestedCalls(
            self, self.roster, self.admission, self.execution, self.recorder, self.ledger
        )

    def start_call(
        self, call: Call, identity: str = "", member: RegisteredServer | None = None
    ) -> tuple[str, asyncio.Task[Reply]]:
        """Begin a call; its id and the task, which outlives a client's patience.

        A write is never begun twice under one `identity`. `member` is its server, where the caller
        has just looked it up.
        """
        identity = identity or generate_id()
        task = asyncio.get_running_loop().create_task(self.answer_call(identity, call, member))
        self.running[identity] = (call, task)
        task.add_done_callback(lambda _: self.running.pop(identity, None))
        return identity, task

    async def close(self) -> None:
        """Cancel the calls that still go on; what has begun to write is not ended by that."""
        tasks = [task for _, task in self.running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.admission.workbench.close()

    async def call_tool(self, call: Call, identity: str = "") -> Reply:
        """The call from gate to record. Raises UnknownTool, BundleInvalid."""
        _, task = self.start_call(call, identity)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def answer_call(
        self, identity: str, call: Call, member: RegisteredServer | None = None
    ) -> Reply:
        """The same under an id that is given, in the task of whoever awaits it."""
        member = member or self.roster.find_server(call.server, call.tool)
        holds = not CONTAINERS.isdisjoint(map(type, call.arguments.values()))
        if holds and measure_depth(dict(call.arguments), MAX_DEPTH) > MAX_DEPTH:
            return self._refuse_deep(
                call, MAX_DEPTH, "not every part of a call's way can read them"
            )
        call = await self.admission.read_arguments(call, member)
        if call.note:
            reply = await self.answer_call(identity, replace(call, note=""), member)
            return add_note(reply, call.note)
        question = self.admission.build_question(call, member)
        ruling = judge_call(question)
        if call.has_vault_secret and (isinstance(ruling, Ask) or question.access == "write"):
            ruling = Deny(render_unstored(call))
        ruling = self.admission.count_rule_use(identity, call, ruling)
        if isinstance(ruling, Deny):
            self.ledger.note_refusal("refused", call, ruling.reason)
            return RefusedCall(call, await self._explain_ruling(ruling, member))
        # A read is answered before it is recorded: what could not be recorded is not begun. Of that
        # there is no audit row either. A write finds out when its intent is stored.
        if question.access == "read" and (backlog := self.ledger.find_backlog()):
            return RefusedCall(call, backlog)
        invocation = self.recorder.begin_call(identity, call, member.entry, question.access)
        if isinstance(ruling, Ask):
            with self.recorder.account_unrecorded(invocation):
                reason = _describe_asking(call) or call.flow or ruling.reason
                return await self._request_approval(invocation, call, member, reason)
        if question.access == "read":
            with self.recorder.account_unrecorded(invocation):
                return await self._call_read(invocation, call, member)
        used = ruling.rule.id if ruling.rule else ""
        write = self._call_write(invocation, call, member, Release(None), used)
        # What has begun to write is not left half-recorded because its client went away.
        return await self.writing.await_shielded(write)

    async def _explain_ruling(self, ruling: Deny, member: RegisteredServer) -> str:
        """Why a call is denied, and of a quarantined or archived server what lifts that."""
        entry, frozen = member.entry, self.kill_switch.engaged
        if entry.state == "archived" and not frozen:
            return f"the server is archived: {explain_archive(entry)}"
        if entry.state != "quarantined" or frozen:
            return ruling.reason
        name = entry.name
        why = await asyncio.to_thread(explain_quarantine, self.store.servers, name)
        return f"{ruling.reason}; it was {why}" if why else ruling.reason

    def _refuse_deep(self, call: Call, limit: int, why: str) -> RefusedCall:
        reason = f"its arguments are nested deeper than {limit}: {why}"
        self.ledger.note_refusal("refused", call, reason)
        return RefusedCall(call, reason)

    async def carry_out_approval(self, approval: Approval) -> Reply:
        """Run an approved call that this process has claimed, exactly as it was approved."""
        try:
            with choose_approved((*approval.steps, *approval.uses)):
                return await self._carry_out_chosen(approval)
        finally:
            await asyncio.to_thread(self.captures.sealed.discard, approval.id)

    async def _carry_out_chosen(self, approval: Approval) -> Reply:
        call = _build_call(approval)
        try:
            member = self.roster.find_server(call.server, call.tool)
            whole = await asyncio.to_thread(self.captures.sealed.open, approval)
        except (UnknownTool, BundleInvalid, VaultDamaged, KeyUnusable) as error:
            return self._refuse_approval(approval, call, str(error))
        entry = member.entry
        if entry.version != approval.version:
            reason = f"{call.server} is at version {entry.version} now; ask again"
            return self._refuse_approval(approval, call, reason)
        # Also of a tool that reads: what a person approved is a write (`Call.asks`).
        access: Access = "write"
        ruling = judge_call(GateQuestion(entry.state, access, member.standing, None, frozen=False))
        if isinstance(ruling, Deny):
            return self._refuse_approval(approval, call, ruling.reason)
        try:
            changed = find_broken_term(approval, self.captures.build_terms(approval, member))
        except (VaultDamaged, KeyUnusable) as error:
            return self._refuse_approval(approval, call, str(error))
        if changed:
            return self._refuse_approval(approval, call, _describe_change(changed))
        places = find_secret_arguments(member.tools[call.tool], member.bundle.credentials)
        call = mark_secrets(replace(call, arguments=whole.arguments), places)
        if not self.captures.sealed.is_as_shown(call, whole.wire, approval):
            return self._refuse_approval(approval, call, _describe_change("wire"))
        begun = self.recorder.begin_call(generate_id(), call, entry, access)
        invocation = replace(begun, approval=approval.id)
        release = Release(digest_request(whole.wire), approval.steps)
        try:
            return await self._call_write(invocation, call, member, release)
        except (Frozen, NotCallable) as error:
            # The intent was not stored: nothing was sent, and nobody else takes the claim up.
            return self._refuse_approval(approval, call, str(error))

    def _refuse_approval(self, approval: Approval, call: Call, reason: str) -> RefusedCall:
        self.store.approvals.store_outcome(
            approval.id, self.process, "failed", {"error": reason}, self.now()
        )
        return RefusedCall(call, reason)

    def build_call_log(self, call: Call, bundle: Bundle, identity: str) -> CallLog:
        """What takes up a call's exchanges, and makes the calls that it makes."""
        consents = self.execution.brokers.consents
        calls = InnerCalls(self.nested, consents, bundle, call, identity)
        tape = CallLog(heard=call.heard, logged=call.logged, calls=calls)
        if call.secrets:
            tape.keep_out(call.secrets)
        return tape

    async def _call_read(
        self, invocation: Invocation, call: Call, member: RegisteredServer
    ) -> Done:
        bundle = member.bundle
        tape = self.build_call_log(call, bundle, invocation.id)
        try:
            outcome = await self.execution.run_read(call, bundle, tape)
            safe = await hide_outcome_beside(call, outcome, tape) if tape.hide else outcome
        except asyncio.CancelledError:
            self.recorder.record_later(invocation, build_cancelled_outcome(call.tool, tape), tape)
            raise
        outcome = safe if call.has_vault_secret else outcome
        ended = self.recorder.record_later(invocation, safe, tape)
        if ended.failure is None:
            return Done(call, invocation.id, outcome, member.standing)
        # An API that refuses for a rate would refuse the version before as well.
        limited = is_rate_limit(ended.failure.kind, ended.failure.status)
        if ended.counted and not limited and member.earlier is not None:
            earlier = await self._retry_with_earlier(call, member, member.earlier)
            if earlier is not None:
                return replace(earlier, standing=member.standing)
        return await self._tell_end(call, ended, outcome, member)

    async def _tell_end(
        self,
        call: Call,
        ended: Invocation,
        outcome: Outcome,
        member: RegisteredServer,
        rule: str = "",
    ) -> Done:
        """The reply of a call that was made; of one that failed, with what to do and why."""
        bundle = member.bundle
        if outcome.failure is not None:
            outcome = await self._explain(call, bundle, outcome)
        done = Done(call, ended.id, outcome, member.standing, rule)
        return await self._add_cause(done, ended, bundle) if ended.failure is not None else done

    async def _explain(self, call: Call, bundle: Bundle, outcome: Outcome) -> Outcome:
        """A failure with what to do about a credential that it wanted for. The record has it as it
        came.
        """
        source = self.execution.brokers.build_credentials(bundle)
        # A vault may be slow.
        denial = await asyncio.to_thread(explain_denial, bundle, call.tool, outcome, source)
        return add_denial(outcome, denial) if denial else outcome

    async def _add_cause(self, done: Done, ended: Invocation, bundle: Bundle) -> Done:
        """The reply with why the call failed, in words, and of drift which repair mends it."""
        cause = find_cause(ended, bundle.get_tool(ended.tool))
        if cause is None or cause.kind != "drift":
            return replace(done, cause=cause.text if cause else "")
        jobs = await asyncio.to_thread(self.store.repairs.find, ended.entry, self.now())
        told = f"{cause.text}{_render_repair(jobs[0]) if jobs else ''}"
        return replace(done, cause=told, is_drift=True)

    async def _retry_with_earlier(
        self, call: Call, member: RegisteredServer, earlier: Bundle
    ) -> Done | None:
        """A read that failed under a version on trial, under the one before; None where that has no
        such tool, or fails as well.
        """
        reads = {tool.name for tool in earlier.tools if tool.access == "read"}
        if call.tool not in reads or self.kill_switch.engaged:
            return None
        invocation = self.recorder.begin_call(generate_id(), call, member.entry, "read")
        invocation = replace(invocation, version=earlier.version)
        tape = self.build_call_log(call, earlier, invocation.id)
        with self.recorder.account_unrecorded(invocation):
            outcome = await self.execution.run_read(call, earlier, tape)
            safe = await hide_outcome_beside(call, outcome, tape) if tape.hide else outcome
            outcome = safe if call.has_vault_secret else outcome
            self.recorder.record_later(invocation, safe, tape)
        if not outcome.ok:
            return None
        return Done(call, invocation.id, outcome, self.store.standings.get(call.server))

    async def _request_approval(
        self, invocation: Invocation, call: Call, member: RegisteredServer, reason: str
    ) -> Reply:
        """Run the call until its first write, which is captured unsent and shown to a person."""
        if measure_depth(dict(call.arguments), MAX_NESTING) > MAX_NESTING:
            refused = self._refuse_deep(call, MAX_NESTING, "nobody could be shown them")
            self.ledger.account_call(invocation, "refused")
            return refused
        bundle = member.bundle
        tape = self.build_call_log(
            replace(call, heard=ignore_progress, logged=None), bundle, invocation.id
        )
        outcome, broker = await self.execution.run_single_use(call, bundle, Capture(), tape)
        if broker.captured is not None:
            held = await self.captures.request_approval(call, bundle, broker, reason, invocation.id)
            self.recorder.account_held(invocation)
            return held
        safe = await hide_outcome_beside(call, outcome, tape) if tape.hide else outcome
        ended = self.recorder.record_later(invocation, safe, tape)
        return await self._tell_end(call, ended, outcome, member)

    async def _call_write(
        self,
        invocation: Invocation,
        call: Call,
        member: RegisteredServer,
        release: Release,
        rule: str = "",
    ) -> Reply:
        """Store the intent, send at most one write, store what became of it."""
        bundle = member.bundle
        ended, outcome, broker = await self.send_write(invocation, call, bundle, release)
        if invocation.approval:
            state = find_write_state(broker, release, outcome)
            told = replace(outcome, result=ended.result)
            if state == "failed":
                # Who asks for the write's outcome later has to be told what to do, too.
                told = await self._explain(call, bundle, told)
            self.store.approvals.store_outcome(
                invocation.approval, self.process, state, told.result, self.now()
            )
        if broker.captured is not None and not broker.released:
            reason = "the call would now send another request than the one approved"
            return await self.captures.request_approval(call, bundle, broker, reason, invocation.id)
        return await self._tell_end(call, ended, outcome, member, rule)

    async def send_write(
        self, invocation: Invocation, call: Call, bundle: Bundle, release: Release
    ) -> tuple[Invocation, Outcome, Broker]:
        """A write between its intent and its record, both on disk."""
        with self.recorder.account_unrecorded(invocation):
            await self.recorder.store_intent(invocation)
            tape = self.build_call_log(call, bundle, invocation.id)
            outcome, broker = await self.execution.run_single_use(call, bundle, release, tape)
            safe = await hide_outcome_beside(call, outcome, tape) if tape.hide else outcome
            ended = await self.recorder.record_now(invocation, safe, tape)
        return ended, outcome, broker


def _render_repair(job: Job) -> str:
    """What becomes of a server's newest repair."""
    match job.state:
        case "failed":
            return f"; job {job.id} could not mend it: {job.message[:300]}"
        case "done":
            return f"; job {job.id} mended what it could"
    return f"; job {job.id} mends it, where `toolwright serve` or `toolwright work` runs"


def _describe_asking(call: Call) -> str:
    """Why a person is asked about a call that its document does not describe; "" for any other."""
    if not call.asks:
        return ""
    return f"{call.name} may do something else here than its document describes: {call.asks}"


def _describe_change(part: str) -> str:
    what = _CHANGED.get(part, f"its {part}")
    return f"what was approved is not what would be done: {what} changed since; ask again"


_CHANGED = {
    "steps": "a server that the write goes through, its version, its files or its credential",
    "uses": "a server whose tools it calls, its version, its files or its credential",
}


def _build_call(approval: Approval) -> Call:
    return Call(
        server=approval.entry,
        tool=approval.tool,
        arguments=approval.arguments,
        task=approval.task,
        reason=approval.reason,
        session=approval.session,
    )
