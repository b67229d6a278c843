"""Nested calls, which a running call makes of other servers' tools: gate, session and record of
each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.approvals.gate import Allow, Deny, judge_call
from orchestrator.calls import Call, Done, Lineage, Pending, Reply, split_tool_name
from orchestrator.errors import UnknownTool
from orchestrator.gateway.admission import Admission
from orchestrator.gateway.approved_writes import InFlight
from orchestrator.gateway.audit_writer import CallWriter
from orchestrator.gateway.catalog import Catalog, RegisteredServer
from orchestrator.gateway.composition import MAX_DEPTH
from orchestrator.gateway.execute import Execution
from orchestrator.gateway.record import CallRecorder
from orchestrator.gateway.secret_arguments import render_unstored
from registry.models import Invocation, generate_id
from sandbox.broker.broker import Broker
from sandbox.broker.host.tools import (
    CALL,
    ToolCallResult,
    build_failure,
    build_success,
    get_called_tool,
    list_calls,
    parse_arguments,
)
from sandbox.broker.sender import build_refused_exchange
from sandbox.bundle.model import Bundle
from sandbox.errors import BundleInvalid
from sandbox.session.interface import Failure, Outcome
from sandbox.session.recording import CallLog
from sandbox.wire.exchange import Capture, Exchange, Release, WireRequest, WriteMode, digest_request

MAX_CALLS = 50
"""Of one client's call, however deep they lie."""


class CallCarrier(Protocol):
    """Who makes such a call, from its gate to its record."""

    async def carry_call(
        self, call: Call, request: WireRequest, writes: WriteMode
    ) -> ToolCallResult: ...


class PermissionReader(Protocol):
    """What a server was granted, at this moment."""

    def find_permissions(self, server: str) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class InnerCalls:
    """Answers the calls of one running call, whose record has the id `identity`. What its tool does
    not declare or nobody granted its server is refused.
    """

    carrier: CallCarrier
    consents: PermissionReader
    bundle: Bundle
    outer: Call
    identity: str
    made: list[str] = field(default_factory=list)
    """What was called, where no call is above this one."""

    async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
        name, lineage = get_called_tool(request), self._build_lineage()
        parts = split_tool_name(name)
        problem = self._find_problem(name, lineage)
        if parts is None or problem:
            return ToolCallResult(
                build_refused_exchange(request, "refused", problem or f"{name} is no tool")
            )
        outer = self.outer
        call = Call(
            *parts,
            parse_arguments(request),
            task=outer.task,
            reason=f"for {outer.name}, call {self.identity}: {outer.reason}".removesuffix(": "),
            session=outer.session,
            read_by=outer.read_by,
            within=lineage,
        )
        return await self.carrier.carry_call(call, request, writes)

    def _build_lineage(self) -> Lineage:
        """That of the calls made here."""
        before = self.outer.within
        names = (*(before.names if before else ()), self.outer.name)
        return Lineage(names, before.made if before else self.made)

    def _find_problem(self, name: str, lineage: Lineage) -> str:
        permission, tool = f"{CALL}{name}", self.bundle.get_tool(self.outer.tool)
        if permission not in self.bundle.permissions or name not in list_calls(tool):
            return f"{name} is not among the tools that {self.outer.name} declares to call"
        if permission not in self.consents.find_permissions(self.bundle.name):
            how = f"toolwright grant {self.bundle.name} {permission}"
            return f"nobody granted {self.bundle.name} to call {name}; a person can: `{how}`"
        if len(lineage.names) > MAX_DEPTH:
            return f"calls may lie at most {MAX_DEPTH} deep in each other"
        if name.partition(".")[0] in {above.partition(".")[0] for above in lineage.names}:
            return f"{name} is called by a call of its own server"
        if len(lineage.made) >= MAX_CALLS:
            return f"more than {MAX_CALLS} calls in one call"
        lineage.made.append(name)
        return ""


def build_answer_exchange(request: WireRequest, outcome: Outcome, record: str) -> Exchange:
    """What the calling code is told of a call that ran."""
    failure = outcome.failure
    if failure is None:
        value = outcome.structured if outcome.structured is not None else {"text": outcome.text}
        return Exchange(request, build_success(value, record), elapsed_ms=outcome.elapsed_ms)
    if failure.kind == "frozen":
        return build_refused_exchange(request, "frozen", failure.message)
    message = _render_message(failure)
    return Exchange(
        request, build_failure(failure.kind, message, record), elapsed_ms=outcome.elapsed_ms
    )


def _render_message(failure: Failure) -> str:
    where = f" at {failure.where}" if failure.where else ""
    return f"{failure.message}{where}"


NO_WRITE = "a call of a tool that reads, or that has written already, makes no further write"


class CallRunner(Protocol):
    """Who makes a client's calls."""

    async def answer_call(self, identity: str, call: Call, member: RegisteredServer) -> Reply: ...

    def build_call_log(self, call: Call, bundle: Bundle, identity: str) -> CallLog: ...

    async def send_write(
        self, invocation: Invocation, call: Call, bundle: Bundle, release: Release
    ) -> tuple[Invocation, Outcome, Broker]: ...


@dataclass(frozen=True)
class NestedCalls:
    """Carries out calls of other servers' tools (`CallCarrier`). `writing` are writes begun."""

    caller: CallRunner
    roster: Catalog
    admission: Admission
    execution: Execution
    recorder: CallRecorder
    ledger: CallWriter
    writing: InFlight = field(default_factory=InFlight)

    async def carry_call(
        self, call: Call, request: WireRequest, writes: WriteMode
    ) -> ToolCallResult:
        """A read goes the way of a client's call. A write is made where a person approved exactly
        it or its own gate allows it; else it is captured, and the call that makes it waits for a
        person.
        """
        try:
            member = self.roster.find_server(call.server, call.tool)
        except (UnknownTool, BundleInvalid) as error:
            return ToolCallResult(build_refused_exchange(request, "refused", str(error)))
        identity, call = generate_id(), await self.admission.read_arguments(call, member)
        question = self.admission.build_question(call, member)
        if question.access == "read":
            return await self._call_read(identity, call, request, member)
        kept = call.has_vault_secret
        ruling = Deny(render_unstored(call)) if kept else judge_call(question)
        if isinstance(ruling, Deny) or writes is None:
            reason = ruling.reason if isinstance(ruling, Deny) else NO_WRITE
            self.ledger.note_refusal("refused", call, reason)
            return ToolCallResult(build_refused_exchange(request, "refused", reason))
        if writes == Release(None):
            ruling = self.admission.count_rule_use(identity, call, ruling)
            writes = writes if isinstance(ruling, Allow) else Capture()
        if isinstance(writes, Capture):
            return await self._capture_write(identity, call, member, request)
        return await self.writing.await_shielded(
            self._send_write(identity, call, member, request, writes)
        )

    async def _call_read(
        self, identity: str, call: Call, request: WireRequest, member: RegisteredServer
    ) -> ToolCallResult:
        reply = await self.caller.answer_call(identity, call, member)
        if isinstance(reply, Done):
            return ToolCallResult(build_answer_exchange(request, reply.outcome, reply.invocation))
        held = isinstance(reply, Pending)
        return ToolCallResult(
            build_refused_exchange(request, "captured" if held else "refused", reply.reason)
        )

    async def _capture_write(
        self, identity: str, call: Call, member: RegisteredServer, request: WireRequest
    ) -> ToolCallResult:
        invocation = self.recorder.begin_call(identity, call, member.entry, "write")
        tape = self.caller.build_call_log(call, member.bundle, identity)
        with self.recorder.account_unrecorded(invocation):
            outcome, broker = await self.execution.run_single_use(
                call, member.bundle, Capture(), tape
            )
        if broker.captured is None:
            self.recorder.record_later(invocation, outcome, tape)
        else:
            self.recorder.account_held(invocation)
        return _build_called(request, identity, outcome, broker, Capture())

    async def _send_write(
        self,
        identity: str,
        call: Call,
        member: RegisteredServer,
        request: WireRequest,
        release: Release,
    ) -> ToolCallResult:
        invocation = self.recorder.begin_call(identity, call, member.entry, "write")
        _, outcome, broker = await self.caller.send_write(invocation, call, member.bundle, release)
        return _build_called(request, identity, outcome, broker, release)


def _build_called(
    request: WireRequest, identity: str, outcome: Outcome, broker: Broker, writes: WriteMode
) -> ToolCallResult:
    """What the calling code gets of a call that may have written."""
    if broker.captured is not None and not broker.released:
        held = build_refused_exchange(request, "captured", "held for a person's approval")
        return ToolCallResult(held, captured=broker.captured, steps=broker.captured_steps)
    written = _find_write(broker, writes, outcome) if broker.released else None
    return ToolCallResult(build_answer_exchange(request, outcome, identity), written=written)


def _find_write(broker: Broker, writes: WriteMode, outcome: Outcome) -> Exchange:
    """The one write that left."""
    if broker.written is not None:
        return broker.written
    digest = writes.digest if isinstance(writes, Release) else None
    sent = [e for e in outcome.exchanges if digest_request(e.request) == digest]
    return (sent or [*outcome.exchanges])[-1]
