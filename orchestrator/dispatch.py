"""The routed call: gate, session, record. Also what an approved write is carried out by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from orchestrator.brokers import Brokers
from orchestrator.calls import Call, Done, Pending, Refused, Reply
from orchestrator.errors import UnknownTool
from orchestrator.gate import Ask, Deny, Question, rule
from orchestrator.ledger import Ledger, exchange_json
from orchestrator.roster import Roster
from orchestrator.sessions import ReadSessions
from registry.records import Approval, Entry, Failed, Invocation, new_id
from registry.store import Store
from registry.trust import Standing
from sandbox.brake import Brake
from sandbox.broker import Broker, Capture, Release, WriteMode, wire_digest
from sandbox.bundle import Bundle
from sandbox.errors import (
    BaseImageMissing,
    BundleInvalid,
    EngineUnavailable,
    Frozen,
    LoadFailed,
    SandboxError,
)
from sandbox.exchange import Exchange
from sandbox.runner import Failure, Outcome, Runner

Clock = Callable[[], float]
OUTSIDE = frozenset({"refused", "timeout", "unreachable", "too_large", "rate_limited", "captured"})


@dataclass
class Dispatch:
    """Calls tools of registered servers. One per process, on one event loop."""

    store: Store
    ledger: Ledger
    roster: Roster
    sessions: ReadSessions
    runner: Runner
    brokers: Brokers
    brake: Brake
    process: str
    approval_seconds: float
    now: Clock = time.time
    running: dict[str, tuple[Call, asyncio.Task[Reply]]] = field(default_factory=dict)
    writing: set[asyncio.Task[Reply]] = field(default_factory=set)

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
            operation=self._earned(call) if access == "write" else None,
            frozen=self.brake.engaged,
        )
        ruling = rule(question)
        if isinstance(ruling, Deny):
            self.ledger.note("refused", call, ruling.reason)
            return Refused(call, ruling.reason)
        invocation = self._invocation(identity, call, entry, access)
        if isinstance(ruling, Ask):
            return await self._ask(invocation, call, bundle, ruling.reason, server)
        if access == "read":
            try:
                outcome = await self._read(call, bundle)
            except asyncio.CancelledError:
                self.ledger.record_soon(_settled(invocation, _cancelled(call)))
                raise
            self.ledger.record_soon(_settled(invocation, outcome))
            return Done(call, identity, outcome, server)
        # What has begun to write is not left half-recorded because its client went away.
        write = self._write(invocation, call, bundle, Release(None), server)
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

    def _earned(self, call: Call) -> Standing:
        return self.store.operation_standing(call.server, call.tool)

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

    async def _read(self, call: Call, bundle: Bundle) -> Outcome:
        try:
            session = await self.sessions.lend(bundle)
        except SandboxError as error:
            return _broken(call, error)
        try:
            return await session.call(call.tool, call.arguments)
        except SandboxError as error:
            await self.sessions.drop(bundle.name, session)
            return _broken(call, error)
        finally:
            self.sessions.give_back(bundle)

    async def _single_use(
        self, call: Call, bundle: Bundle, writes: WriteMode
    ) -> tuple[Outcome, Broker]:
        broker = self.brokers.for_tool(bundle, call.tool, writes)
        try:
            async with self.runner.open(bundle, broker) as session:
                return await session.call(call.tool, call.arguments), broker
        except SandboxError as error:
            return _broken(call, error), broker

    async def _ask(
        self, invocation: Invocation, call: Call, bundle: Bundle, reason: str, standing: Standing
    ) -> Reply:
        """Run the call until its first write, which is captured unsent and shown to a person."""
        outcome, broker = await self._single_use(call, bundle, Capture())
        if broker.captured is None:
            self.ledger.record_soon(_settled(invocation, outcome))
            return Done(call, invocation.id, outcome, standing)
        return self._pending(call, invocation.version, broker, reason)

    def _pending(self, call: Call, version: int, broker: Broker, reason: str) -> Pending:
        assert broker.captured is not None
        now = self.now()
        approval = Approval(
            id=new_id(),
            entry=call.server,
            version=version,
            tool=call.tool,
            arguments=call.arguments,
            wire=broker.captured,
            wire_digest=wire_digest(broker.captured),
            created=now,
            expires=now + self.approval_seconds,
            task=call.task,
            session=call.session,
            reason=call.reason or reason,
        )
        self.store.request_approval(approval)
        return Pending(call, approval, reason)

    async def _write(
        self,
        invocation: Invocation,
        call: Call,
        bundle: Bundle,
        release: Release,
        standing: Standing,
    ) -> Reply:
        """Store the intent, send at most one write, store what became of it."""
        await asyncio.to_thread(self.store.intend, invocation, self.now())
        outcome, broker = await self._single_use(call, bundle, release)
        settled = _settled(invocation, outcome)
        await asyncio.to_thread(self.store.record, settled, self.now())
        if invocation.approval:
            self.store.settle(
                invocation.approval,
                self.process,
                _write_state(broker, release, outcome),
                settled.result,
                self.now(),
            )
        if broker.captured is not None and not broker.released:
            reason = "the call would now send another request than the one approved"
            return self._pending(call, invocation.version, broker, reason)
        return Done(call, invocation.id, outcome, standing)


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
    sent = [e for e in outcome.exchanges if wire_digest(e.request) == release.digest]
    statuses = [e.response.status for e in sent if e.response]
    if not statuses:
        return "unknown"
    return "done" if statuses[0] < 400 else "failed"


def _settled(invocation: Invocation, outcome: Outcome) -> Invocation:
    failure = outcome.failure
    return replace(
        invocation,
        state="done",
        result=dict(outcome.result),
        failure=None if failure is None else _counted(failure, outcome.exchanges),
        latency_ms=outcome.elapsed_ms,
        exchanges=tuple(map(exchange_json, outcome.exchanges)),
    )


def _counted(failure: Failure, exchanges: tuple[Exchange, ...]) -> Failed:
    """The failure as it is counted: what a sandbox says happened outside, the broker has to have
    seen, or it is the server's own bug.
    """
    kind, status = failure.kind, failure.status
    if kind == "http":
        seen = any(e.response is not None and e.response.status == status for e in exchanges)
        kind = "credential" if status in (401, 403) else "http"
    else:
        seen = kind not in OUTSIDE or any(e.refusal == kind for e in exchanges)
    return Failed(kind if seen else "bug", failure.message, status)


def _cancelled(call: Call) -> Outcome:
    failure = Failure("cancelled", "the client cancelled the call")
    return Outcome(call.tool, {"isError": True, "content": []}, failure)


def _broken(call: Call, error: SandboxError) -> Outcome:
    kinds = {
        Frozen: "frozen",
        LoadFailed: "bug",
        EngineUnavailable: "engine",
        BaseImageMissing: "engine",
    }
    failure = Failure(kinds.get(type(error), "crashed"), str(error))
    result = {
        "isError": True,
        "content": [{"type": "text", "text": f"{call.name}: {error}"}],
        "_meta": {"toolwright/error": {"kind": failure.kind}},
    }
    return Outcome(call.tool, result, failure)
