"""The routed call: gate, session, record. Also what an approved write is carried out by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from orchestrator.admission import Admission
from orchestrator.calls import Call, Done, Refused, Reply
from orchestrator.captures import Captures
from orchestrator.errors import UnknownTool
from orchestrator.execution import Execution
from orchestrator.gate import Ask, Deny, Question, rule
from orchestrator.innercalls import InnerCalls
from orchestrator.ledger import Ledger
from orchestrator.nested import Nested
from orchestrator.outcomes import cancelled, write_state
from orchestrator.recorder import Recorder
from orchestrator.roster import Member, Roster
from orchestrator.underway import UnderWay
from registry.cause import cause_of
from registry.records import Approval, Invocation, new_id
from registry.store import Store
from sandbox.brake import Brake
from sandbox.broker import Broker, Capture, Release
from sandbox.bundle import Bundle
from sandbox.errors import BundleInvalid
from sandbox.progress import unheard
from sandbox.recording import Tape
from sandbox.runner import Outcome


@dataclass
class Dispatch:
    """Calls tools of registered servers. One per process, on one event loop.

    `running` are the calls that go on now, `writing` those that have begun to write.
    """

    store: Store
    ledger: Ledger
    roster: Roster
    admission: Admission
    execution: Execution
    captures: Captures
    recorder: Recorder
    brake: Brake
    process: str
    now: Callable[[], float] = time.time
    running: dict[str, tuple[Call, asyncio.Task[Reply]]] = field(default_factory=dict)
    writing: UnderWay = field(default_factory=UnderWay)
    nested: Nested = field(init=False)

    def __post_init__(self) -> None:
        self.nested = Nested(
            self, self.roster, self.admission, self.execution, self.recorder, self.ledger
        )

    def start(self, call: Call, identity: str = "") -> tuple[str, asyncio.Task[Reply]]:
        """Begin a call; its id and the task, which outlives a client's patience.

        A write is never begun twice under one `identity`.
        """
        identity = identity or new_id()
        task = asyncio.get_running_loop().create_task(self.answered(identity, call))
        self.running[identity] = (call, task)
        task.add_done_callback(lambda _: self.running.pop(identity, None))
        return identity, task

    async def call(self, call: Call, identity: str = "") -> Reply:
        """The call from gate to record. Raises UnknownTool, BundleInvalid."""
        _, task = self.start(call, identity)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def answered(self, identity: str, call: Call) -> Reply:
        """The same under an id that is given, in the task of whoever awaits it."""
        member = self.roster.find(call.server, call.tool)
        question = self.admission.question(call, member)
        ruling = self.admission.counted(identity, call, rule(question))
        if isinstance(ruling, Deny):
            self.ledger.note("refused", call, ruling.reason)
            return Refused(call, ruling.reason)
        invocation = self.recorder.begun(identity, call, member.entry, question.access)
        if isinstance(ruling, Ask):
            return await self._ask(invocation, call, member, ruling.reason)
        if question.access == "read":
            return await self._read(invocation, call, member)
        used = ruling.rule.id if ruling.rule else ""
        write = self._write(invocation, call, member, Release(None), used)
        # What has begun to write is not left half-recorded because its client went away.
        return await self.writing.shielded(write)

    async def carry_out(self, approval: Approval) -> Reply:
        """Run an approved call that this process has claimed, exactly as it was approved."""
        call = _call_of(approval)
        try:
            member = self.roster.find(call.server, call.tool)
        except (UnknownTool, BundleInvalid) as error:
            return self._not_carried_out(approval, call, str(error))
        entry = member.entry
        if entry.version != approval.version:
            reason = f"{call.server} is at version {entry.version} now; ask again"
            return self._not_carried_out(approval, call, reason)
        access = member.bundle.tool(call.tool).access
        ruling = rule(Question(entry.state, access, member.standing, None, frozen=False))
        if isinstance(ruling, Deny):
            return self._not_carried_out(approval, call, ruling.reason)
        begun = self.recorder.begun(new_id(), call, entry, access)
        invocation, release = replace(begun, approval=approval.id), Release(approval.wire_digest)
        return await self._write(invocation, call, member, release)

    def _not_carried_out(self, approval: Approval, call: Call, reason: str) -> Refused:
        self.store.settle(approval.id, self.process, "failed", {"error": reason}, self.now())
        return Refused(call, reason)

    def tape(self, call: Call, bundle: Bundle, identity: str) -> Tape:
        """What takes up a call's exchanges, and makes the calls that it makes."""
        consents = self.execution.brokers.consents
        calls = InnerCalls(self.nested, consents, bundle, call, identity)
        return Tape(heard=call.heard, logged=call.logged, calls=calls)

    async def _read(self, invocation: Invocation, call: Call, member: Member) -> Done:
        bundle = member.bundle
        tape = self.tape(call, bundle, invocation.id)
        try:
            outcome = await self.execution.read(call, bundle, tape)
        except asyncio.CancelledError:
            self.recorder.soon(invocation, cancelled(call.tool, tape), tape)
            raise
        ended = self.recorder.soon(invocation, outcome, tape)
        if ended.failure is not None and ended.counted and member.earlier is not None:
            earlier = await self._by_earlier(call, member, member.earlier)
            if earlier is not None:
                return replace(earlier, standing=member.standing)
        return Done(call, invocation.id, outcome, member.standing, cause=_cause(ended, bundle))

    async def _by_earlier(self, call: Call, member: Member, earlier: Bundle) -> Done | None:
        """A read that failed under a version on trial, under the one before; None where that has no
        such tool, or fails as well.
        """
        reads = {tool.name for tool in earlier.tools if tool.access == "read"}
        if call.tool not in reads or self.brake.engaged:
            return None
        invocation = self.recorder.begun(new_id(), call, member.entry, "read")
        invocation = replace(invocation, version=earlier.version)
        tape = self.tape(call, earlier, invocation.id)
        outcome = await self.execution.read(call, earlier, tape)
        self.recorder.soon(invocation, outcome, tape)
        if not outcome.ok:
            return None
        return Done(call, invocation.id, outcome, self.store.standing(call.server))

    async def _ask(self, invocation: Invocation, call: Call, member: Member, reason: str) -> Reply:
        """Run the call until its first write, which is captured unsent and shown to a person."""
        bundle = member.bundle
        tape = self.tape(replace(call, heard=unheard, logged=None), bundle, invocation.id)
        outcome, broker = await self.execution.single_use(call, bundle, Capture(), tape)
        if broker.captured is not None:
            return await self.captures.pending(call, bundle, broker.captured, reason)
        ended = self.recorder.soon(invocation, outcome, tape)
        return Done(call, invocation.id, outcome, member.standing, cause=_cause(ended, bundle))

    async def _write(
        self, invocation: Invocation, call: Call, member: Member, release: Release, rule: str = ""
    ) -> Reply:
        """Store the intent, send at most one write, store what became of it."""
        bundle = member.bundle
        ended, outcome, broker = await self.sent(invocation, call, bundle, release)
        if invocation.approval:
            state = write_state(broker, release, outcome)
            self.store.settle(invocation.approval, self.process, state, ended.result, self.now())
        if broker.captured is not None and not broker.released:
            reason = "the call would now send another request than the one approved"
            return await self.captures.pending(call, bundle, broker.captured, reason)
        return Done(call, invocation.id, outcome, member.standing, rule, _cause(ended, bundle))

    async def sent(
        self, invocation: Invocation, call: Call, bundle: Bundle, release: Release
    ) -> tuple[Invocation, Outcome, Broker]:
        """A write between its intent and its record, both on disk."""
        await self.recorder.intend(invocation)
        tape = self.tape(call, bundle, invocation.id)
        outcome, broker = await self.execution.single_use(call, bundle, release, tape)
        ended = await self.recorder.at_once(invocation, outcome, tape)
        return ended, outcome, broker


def _cause(ended: Invocation, bundle: Bundle) -> str:
    """Why a call failed, in words; "" where it did not."""
    cause = cause_of(ended, bundle.tool(ended.tool))
    return cause.text if cause else ""


def _call_of(approval: Approval) -> Call:
    return Call(
        server=approval.entry,
        tool=approval.tool,
        arguments=approval.arguments,
        task=approval.task,
        reason=approval.reason,
        session=approval.session,
    )
