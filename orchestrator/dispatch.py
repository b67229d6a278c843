"""The routed call: gate, session, record. Also what an approved write is carried out by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from orchestrator.brokers import Brokers
from orchestrator.calls import Call, Done, Pending, Refused, Reply
from orchestrator.changes import present_in, reading_of
from orchestrator.clearance import Clearance
from orchestrator.engines import Engine
from orchestrator.errors import UnknownTool
from orchestrator.gate import Allow, Ask, Deny, Question, Ruling, Write, rule
from orchestrator.innercalls import InnerCalls, told
from orchestrator.ledger import Ledger
from orchestrator.outcomes import broken, cancelled, settled
from orchestrator.roster import Member, Roster
from orchestrator.sessions import ReadSessions
from orchestrator.toolcalls import answered, tool_request, withheld
from registry.cause import cause_of
from registry.records import Approval, Entry, Invocation, new_id
from registry.store import Store
from registry.trust import Standing
from sandbox.brake import Brake
from sandbox.broker import Broker, Capture, Release, WriteMode
from sandbox.bundle import Bundle
from sandbox.errors import BundleInvalid, DefinitionsChanged, SandboxError
from sandbox.exchange import Exchange, WireRequest, wire_digest
from sandbox.progress import unheard
from sandbox.recording import Recording, Tape
from sandbox.runner import Outcome, Session
from sandbox.sender import refused
from sandbox.session import CUT, PipeSession
from sandbox.toolcall import Called
from sandbox.validation import checker

Clock = Callable[[], float]
NO_WRITE = "a call of a tool that reads, or that has written already, makes no further write"
PRESENT_SECONDS = 5.0
"""How long a request for an approval waits to learn what the write would change."""


@dataclass
class Dispatch:
    """Calls tools of registered servers. One per process, on one event loop."""

    store: Store
    ledger: Ledger
    roster: Roster
    sessions: ReadSessions
    engine: Engine
    brokers: Brokers
    clearance: Clearance
    brake: Brake
    process: str
    approval_seconds: float
    now: Clock = time.time
    running: dict[str, tuple[Call, asyncio.Task[Reply]]] = field(default_factory=dict)
    writing: set[asyncio.Task[Reply]] = field(default_factory=set)
    within_writing: set[asyncio.Task[Called]] = field(default_factory=set)

    def start(self, call: Call, identity: str = "") -> tuple[str, asyncio.Task[Reply]]:
        """Begin a call; its id and the task, which outlives a client's patience.

        A write is never begun twice under one `identity`.
        """
        identity = identity or new_id()
        task = asyncio.get_running_loop().create_task(self._call(identity, call))
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

    async def _call(self, identity: str, call: Call) -> Reply:
        member = self.roster.find(call.server, call.tool)
        entry, bundle, server = member.entry, member.bundle, member.standing
        access = bundle.tool(call.tool).access
        question = Question(
            state=entry.state,
            access=access,
            server=server,
            write=self._facts(call, member) if access == "write" else None,
            frozen=self.brake.engaged,
        )
        ruling = self._counted(identity, call, rule(question))
        if isinstance(ruling, Deny):
            self.ledger.note("refused", call, ruling.reason)
            return Refused(call, ruling.reason)
        invocation = self._invocation(identity, call, entry, access)
        if isinstance(ruling, Ask):
            return await self._ask(invocation, call, bundle, ruling.reason, server)
        if access == "read":
            tape = self._tape(call, bundle, identity)
            try:
                outcome = await self._read(call, bundle, tape)
            except asyncio.CancelledError:
                self._record_soon(invocation, cancelled(call.tool, tape), tape)
                raise
            ended = self._record_soon(invocation, outcome, tape)
            if ended.failure is not None and ended.counted and member.earlier is not None:
                answered = await self._by_earlier(call, entry, member.earlier)
                if answered is not None:
                    return replace(answered, standing=server)
            return Done(call, identity, outcome, server, cause=_cause(ended, bundle))
        # What has begun to write is not left half-recorded because its client went away.
        standing_rule = ruling.rule.id if ruling.rule else ""
        write = self._write(invocation, call, bundle, Release(None), server, standing_rule)
        writing = asyncio.get_running_loop().create_task(write)
        self.writing.add(writing)
        writing.add_done_callback(self.writing.discard)
        return await asyncio.shield(writing)

    async def carry_out(self, approval: Approval) -> Reply:
        """Run an approved call that this process has claimed, exactly as it was approved."""
        call = _call_of(approval)
        try:
            member = self.roster.find(call.server, call.tool)
        except (UnknownTool, BundleInvalid) as error:
            return self._not_carried_out(approval, call, str(error))
        entry, bundle, standing = member.entry, member.bundle, member.standing
        if entry.version != approval.version:
            reason = f"{call.server} is at version {entry.version} now; ask again"
            return self._not_carried_out(approval, call, reason)
        access = bundle.tool(call.tool).access
        ruling = rule(Question(entry.state, access, standing, None, frozen=False))
        if isinstance(ruling, Deny):
            return self._not_carried_out(approval, call, ruling.reason)
        invocation = replace(self._invocation(new_id(), call, entry, access), approval=approval.id)
        release = Release(approval.wire_digest)
        return await self._write(invocation, call, bundle, release, standing)

    def _not_carried_out(self, approval: Approval, call: Call, reason: str) -> Refused:
        self.store.settle(approval.id, self.process, "failed", {"error": reason}, self.now())
        return Refused(call, reason)

    def _facts(self, call: Call, member: Member) -> Write:
        write = self.clearance.write(call, member.entry, member.bundle, member.standing, self.now())
        # Words alone never write: what a model made of them is always shown to a person.
        return replace(write, vouched=0, rules=()) if call.read_by else write

    def _counted(self, identity: str, call: Call, ruling: Ruling) -> Ruling:
        """The ruling, once a use of its rule is stored; another process may have used it up."""
        if not isinstance(ruling, Allow) or ruling.rule is None:
            return ruling
        if self.store.use_rule(ruling.rule.id, identity, call.name, self.now()):
            return ruling
        return Ask(f"the rule {ruling.rule.id} has ended")

    def _invocation(self, identity: str, call: Call, entry: Entry, access: Any) -> Invocation:
        return Invocation(
            id=identity,
            entry=call.server,
            version=entry.version,
            tool=call.tool,
            access=access,
            started=self.now(),
            arguments=call.arguments,
            task=call.task,
            reason=call.reason,
            session=call.session,
            process=self.process,
            state="intended",
        )

    def _record_soon(self, invocation: Invocation, outcome: Outcome, tape: Tape) -> Invocation:
        ended = settled(invocation, outcome, self._recording(invocation, tape))
        self.ledger.record_soon(ended)
        return ended

    async def _by_earlier(self, call: Call, entry: Entry, earlier: Bundle) -> Done | None:
        """A read that failed under a version on trial, under the one before; None where that has no
        such tool, or fails as well.
        """
        reads = {tool.name for tool in earlier.tools if tool.access == "read"}
        if call.tool not in reads or self.brake.engaged:
            return None
        invocation = self._invocation(new_id(), call, entry, "read")
        invocation = replace(invocation, version=earlier.version)
        tape = self._tape(call, earlier, invocation.id)
        outcome = await self._read(call, earlier, tape)
        self._record_soon(invocation, outcome, tape)
        if not outcome.ok:
            return None
        return Done(call, invocation.id, outcome, self.store.standing(call.server))

    def _recording(self, invocation: Invocation, tape: Tape) -> Recording:
        return Recording(
            self.engine.name,
            self.engine.base,
            invocation.arguments,
            tape.inputs,
            tuple(tape.exchanges),
        )

    async def _read(self, call: Call, bundle: Bundle, tape: Tape) -> Outcome:
        try:
            session = await self.lent(bundle)
        except SandboxError as error:
            return self._broken(call, error, tape)
        try:
            return await session.call(call.tool, call.arguments, tape=tape)
        except SandboxError as error:
            await self.sessions.drop(bundle.name, session)
            return self._broken(call, error, tape)
        finally:
            self.sessions.give_back(bundle)

    async def lent(self, bundle: Bundle) -> Session:
        """A warm session, never one from before something was granted or taken away."""
        await self.sessions.keep_only(bundle.name, self.brokers.given(bundle))
        session = await self.sessions.lend(bundle)
        if isinstance(session, PipeSession) and session.ended:
            # It ended while nobody used it: by a freeze, or by itself.
            await self.sessions.drop(bundle.name, session)
            return await self.sessions.lend(bundle)
        return session

    async def _claimed(self, call: Call, bundle: Bundle, broker: Broker, tape: Tape) -> Outcome:
        """A call of a third-party tool as one write, if the broker lets it be made: its session is
        the warm one, since such servers keep state.
        """
        request = tool_request(bundle, call.tool, call.arguments)
        session = await self.lent(bundle)
        try:
            problem = checker(bundle.tool(call.tool).input_schema).problem(call.arguments)
            held = None if problem else broker.claim(request)
            if held is not None:
                return withheld(call.tool, held)
            if not problem:
                tape.exchanges.append(Exchange(request, None, CUT, "no answer came"))
            outcome = await session.call(call.tool, call.arguments, tape=tape)
            if not problem:
                tape.exchanges[-1] = answered(request, outcome)
            return replace(outcome, exchanges=tuple(tape.exchanges))
        except SandboxError:
            await self.sessions.drop(bundle.name, session)
            raise
        finally:
            self.sessions.give_back(bundle)

    def _broken(self, call: Call, error: SandboxError, tape: Tape) -> Outcome:
        """The outcome of a session that ended; one whose tools changed takes its server along."""
        self.distrust(call.server, error)
        return broken(call.server, call.tool, error, tape)

    def distrust(self, server: str, error: SandboxError) -> None:
        """Quarantine a server whose definitions are not those that were registered."""
        if isinstance(error, DefinitionsChanged):
            self.store.set_state(server, "quarantined", self.now(), "guard", str(error))
            self.roster.forget()

    async def _single_use(
        self, call: Call, bundle: Bundle, writes: WriteMode, tape: Tape
    ) -> tuple[Outcome, Broker]:
        broker = self.brokers.for_tool(bundle, call.tool, writes)
        try:
            if bundle.launch is not None:
                return await self._claimed(call, bundle, broker, tape), broker
            async with self.engine.open(bundle, broker) as session:
                return await session.call(call.tool, call.arguments, tape=tape), broker
        except SandboxError as error:
            return self._broken(call, error, tape), broker

    async def _ask(
        self, invocation: Invocation, call: Call, bundle: Bundle, reason: str, standing: Standing
    ) -> Reply:
        """Run the call until its first write, which is captured unsent and shown to a person."""
        tape = self._tape(replace(call, heard=unheard, logged=None), bundle, invocation.id)
        outcome, broker = await self._single_use(call, bundle, Capture(), tape)
        if broker.captured is None:
            ended = self._record_soon(invocation, outcome, tape)
            return Done(call, invocation.id, outcome, standing, cause=_cause(ended, bundle))
        return await self._pending(call, bundle, broker, reason)

    async def _pending(self, call: Call, bundle: Bundle, broker: Broker, reason: str) -> Pending:
        assert broker.captured is not None
        present = await self._present(bundle, broker.captured)
        now = self.now()
        approval = Approval(
            id=new_id(),
            entry=call.server,
            version=bundle.version,
            tool=call.tool,
            arguments=call.arguments,
            wire=broker.captured,
            wire_digest=wire_digest(broker.captured),
            created=now,
            expires=now + self.approval_seconds,
            task=call.task,
            session=call.session,
            reason=call.reason or reason,
            present=present,
        )
        self.store.request_approval(approval)
        return Pending(call, approval, reason)

    async def _present(self, bundle: Bundle, wire: WireRequest) -> str:
        """What a write would change, where the server may read that: the broker asks for it as for
        any request of a read session. JSON text, or nothing.
        """
        reading = reading_of(wire)
        if reading is None or bundle.launch is not None:
            return ""
        try:
            async with asyncio.timeout(PRESENT_SECONDS):
                return present_in(await self.brokers.reading(bundle).perform(reading))
        except TimeoutError:
            return ""

    async def _write(
        self,
        invocation: Invocation,
        call: Call,
        bundle: Bundle,
        release: Release,
        standing: Standing,
        rule: str = "",
    ) -> Reply:
        """Store the intent, send at most one write, store what became of it."""
        ended, outcome, broker = await self._sent(invocation, call, bundle, release)
        if invocation.approval:
            self.store.settle(
                invocation.approval,
                self.process,
                _write_state(broker, release, outcome),
                ended.result,
                self.now(),
            )
        if broker.captured is not None and not broker.released:
            reason = "the call would now send another request than the one approved"
            return await self._pending(call, bundle, broker, reason)
        return Done(call, invocation.id, outcome, standing, rule, _cause(ended, bundle))

    async def _sent(
        self, invocation: Invocation, call: Call, bundle: Bundle, release: Release
    ) -> tuple[Invocation, Outcome, Broker]:
        await asyncio.to_thread(self.store.intend, invocation, self.now())
        tape = self._tape(call, bundle, invocation.id)
        outcome, broker = await self._single_use(call, bundle, release, tape)
        ended = settled(invocation, outcome, self._recording(invocation, tape))
        await asyncio.to_thread(self.store.record, ended, self.now())
        self.ledger.stored(ended)
        return ended, outcome, broker

    def _tape(self, call: Call, bundle: Bundle, identity: str) -> Tape:
        calls = InnerCalls(self, self.brokers.consents, bundle, call, identity)
        return Tape(heard=call.heard, logged=call.logged, calls=calls)

    async def within(self, call: Call, request: WireRequest, writes: WriteMode) -> Called:
        """A call that another call makes, from gate to record. A read goes the way of a client's
        call. A write is made where a person approved exactly it or its own gate allows it; else it
        is captured, and the call that makes it waits for a person.
        """
        try:
            member = self.roster.find(call.server, call.tool)
        except (UnknownTool, BundleInvalid) as error:
            return Called(refused(request, "refused", str(error)))
        identity = new_id()
        if member.bundle.tool(call.tool).access == "read":
            reply = await self._call(identity, call)
            if isinstance(reply, Done):
                return Called(told(request, reply.outcome, reply.invocation))
            held = isinstance(reply, Pending)
            return Called(refused(request, "captured" if held else "refused", reply.reason))
        question = Question(
            member.entry.state,
            "write",
            member.standing,
            self._facts(call, member),
            self.brake.engaged,
        )
        ruling = rule(question)
        if isinstance(ruling, Deny) or writes is None:
            reason = ruling.reason if isinstance(ruling, Deny) else NO_WRITE
            self.ledger.note("refused", call, reason)
            return Called(refused(request, "refused", reason))
        if writes == Release(None):
            ruling = self._counted(identity, call, ruling)
            writes = writes if isinstance(ruling, Allow) else Capture()
        writing = asyncio.get_running_loop().create_task(
            self._written_within(identity, call, member, request, writes)
        )
        if isinstance(writes, Capture):
            return await writing
        # What has begun to write is not left half-recorded because its caller went away.
        self.within_writing.add(writing)
        writing.add_done_callback(self.within_writing.discard)
        return await asyncio.shield(writing)

    async def _written_within(
        self,
        identity: str,
        call: Call,
        member: Member,
        request: WireRequest,
        writes: Release | Capture,
    ) -> Called:
        bundle = member.bundle
        invocation = self._invocation(identity, call, member.entry, "write")
        if isinstance(writes, Capture):
            tape = self._tape(call, bundle, identity)
            outcome, broker = await self._single_use(call, bundle, writes, tape)
            if broker.captured is None:
                self._record_soon(invocation, outcome, tape)
        else:
            _, outcome, broker = await self._sent(invocation, call, bundle, writes)
        if broker.captured is not None and not broker.released:
            held = refused(request, "captured", "held for a person's approval")
            return Called(held, captured=broker.captured)
        written = _written(broker, writes, outcome) if broker.released else None
        return Called(told(request, outcome, identity), written=written)


def _written(broker: Broker, writes: WriteMode, outcome: Outcome) -> Exchange:
    """The one write that left."""
    if broker.written is not None:
        return broker.written
    digest = writes.digest if isinstance(writes, Release) else None
    sent = [e for e in outcome.exchanges if wire_digest(e.request) == digest]
    return (sent or [*outcome.exchanges])[-1]


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


def _write_state(
    broker: Broker, release: Release, outcome: Outcome
) -> Literal["done", "failed", "unknown"]:
    """What became of an approved write, by what its upstream answered.

    An accepted write is done also where the tool then failed on the answer: a person who is told
    otherwise would do it again. `unknown` is one that may have left and got no answer.
    """
    if not broker.released:
        return "failed"
    left = (*outcome.exchanges, *filter(None, [broker.written]))
    sent = [e for e in left if wire_digest(e.request) == release.digest]
    statuses = [e.response.status for e in sent if e.response]
    if not statuses:
        return "unknown"
    return "done" if statuses[0] < 400 else "failed"
