"""Calls that calls make, each from its gate to its record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.admission import Admission
from orchestrator.calls import Call, Done, Pending, Reply
from orchestrator.errors import UnknownTool
from orchestrator.execution import Execution
from orchestrator.gate import Allow, Deny, rule
from orchestrator.innercalls import told
from orchestrator.ledger import Ledger
from orchestrator.recorder import Recorder
from orchestrator.roster import Member, Roster
from orchestrator.underway import UnderWay
from registry.records import Invocation, new_id
from sandbox.broker import Broker, Capture, Release, WriteMode
from sandbox.bundle import Bundle
from sandbox.errors import BundleInvalid
from sandbox.exchange import Exchange, WireRequest, wire_digest
from sandbox.recording import Tape
from sandbox.runner import Outcome
from sandbox.sender import refused
from sandbox.toolcall import Called

NO_WRITE = "a call of a tool that reads, or that has written already, makes no further write"


class Caller(Protocol):
    """Who makes a client's calls."""

    async def answered(self, identity: str, call: Call) -> Reply: ...

    def tape(self, call: Call, bundle: Bundle, identity: str) -> Tape: ...

    async def sent(
        self, invocation: Invocation, call: Call, bundle: Bundle, release: Release
    ) -> tuple[Invocation, Outcome, Broker]: ...


@dataclass(frozen=True)
class Nested:
    """Makes them as `innercalls.Carrier`. `writing` are their writes that have begun."""

    caller: Caller
    roster: Roster
    admission: Admission
    execution: Execution
    recorder: Recorder
    ledger: Ledger
    writing: UnderWay = field(default_factory=UnderWay)

    async def within(self, call: Call, request: WireRequest, writes: WriteMode) -> Called:
        """A read goes the way of a client's call. A write is made where a person approved exactly
        it or its own gate allows it; else it is captured, and the call that makes it waits for a
        person.
        """
        try:
            member = self.roster.find(call.server, call.tool)
        except (UnknownTool, BundleInvalid) as error:
            return Called(refused(request, "refused", str(error)))
        identity = new_id()
        if member.bundle.tool(call.tool).access == "read":
            return await self._read(identity, call, request)
        ruling = rule(self.admission.question(call, member))
        if isinstance(ruling, Deny) or writes is None:
            reason = ruling.reason if isinstance(ruling, Deny) else NO_WRITE
            self.ledger.note("refused", call, reason)
            return Called(refused(request, "refused", reason))
        if writes == Release(None):
            ruling = self.admission.counted(identity, call, ruling)
            writes = writes if isinstance(ruling, Allow) else Capture()
        if isinstance(writes, Capture):
            return await self._captured(identity, call, member, request)
        return await self.writing.shielded(self._written(identity, call, member, request, writes))

    async def _read(self, identity: str, call: Call, request: WireRequest) -> Called:
        reply = await self.caller.answered(identity, call)
        if isinstance(reply, Done):
            return Called(told(request, reply.outcome, reply.invocation))
        held = isinstance(reply, Pending)
        return Called(refused(request, "captured" if held else "refused", reply.reason))

    async def _captured(
        self, identity: str, call: Call, member: Member, request: WireRequest
    ) -> Called:
        invocation = self.recorder.begun(identity, call, member.entry, "write")
        tape = self.caller.tape(call, member.bundle, identity)
        outcome, broker = await self.execution.single_use(call, member.bundle, Capture(), tape)
        if broker.captured is None:
            self.recorder.soon(invocation, outcome, tape)
        return _called(request, identity, outcome, broker, Capture())

    async def _written(
        self, identity: str, call: Call, member: Member, request: WireRequest, release: Release
    ) -> Called:
        invocation = self.recorder.begun(identity, call, member.entry, "write")
        _, outcome, broker = await self.caller.sent(invocation, call, member.bundle, release)
        return _called(request, identity, outcome, broker, release)


def _called(
    request: WireRequest, identity: str, outcome: Outcome, broker: Broker, writes: WriteMode
) -> Called:
    """What the calling code gets of a call that may have written."""
    if broker.captured is not None and not broker.released:
        held = refused(request, "captured", "held for a person's approval")
        return Called(held, captured=broker.captured)
    written = _write_of(broker, writes, outcome) if broker.released else None
    return Called(told(request, outcome, identity), written=written)


def _write_of(broker: Broker, writes: WriteMode, outcome: Outcome) -> Exchange:
    """The one write that left."""
    if broker.written is not None:
        return broker.written
    digest = writes.digest if isinstance(writes, Release) else None
    sent = [e for e in outcome.exchanges if wire_digest(e.request) == digest]
    return (sent or [*outcome.exchanges])[-1]
