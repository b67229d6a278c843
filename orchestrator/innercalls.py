"""The calls that one running call makes of other servers' tools: `sandbox.toolcall.ToolCalls`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.calls import Call, Lineage, split_name
from orchestrator.composition import MAX_DEPTH
from sandbox.bundle import Bundle
from sandbox.exchange import Exchange, WireRequest
from sandbox.runner import Failure, Outcome
from sandbox.sender import refused
from sandbox.toolcall import CALL, Called, arguments_of, called_tool, calls_of, failed, given
from sandbox.writemode import WriteMode

MAX_CALLS = 50
"""Of one client's call, however deep they lie."""


class Carrier(Protocol):
    """Who makes such a call, from its gate to its record."""

    async def within(self, call: Call, request: WireRequest, writes: WriteMode) -> Called: ...


class Permitted(Protocol):
    """What a server was granted, at this moment."""

    def permissions(self, server: str) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class InnerCalls:
    """Answers the calls of one running call, whose record has the id `identity`. What its tool does
    not declare or nobody granted its server is refused.
    """

    carrier: Carrier
    consents: Permitted
    bundle: Bundle
    outer: Call
    identity: str
    made: list[str] = field(default_factory=list)
    """What was called, where no call is above this one."""

    async def perform(self, request: WireRequest, writes: WriteMode) -> Called:
        name, lineage = called_tool(request), self._lineage()
        parts = split_name(name)
        problem = self._problem(name, lineage)
        if parts is None or problem:
            return Called(refused(request, "refused", problem or f"{name} is no tool"))
        outer = self.outer
        call = Call(
            *parts,
            arguments_of(request),
            task=outer.task,
            reason=f"for {outer.name}, call {self.identity}: {outer.reason}".removesuffix(": "),
            session=outer.session,
            read_by=outer.read_by,
            within=lineage,
        )
        return await self.carrier.within(call, request, writes)

    def _lineage(self) -> Lineage:
        """That of the calls made here."""
        before = self.outer.within
        names = (*(before.names if before else ()), self.outer.name)
        return Lineage(names, before.made if before else self.made)

    def _problem(self, name: str, lineage: Lineage) -> str:
        permission, tool = f"{CALL}{name}", self.bundle.tool(self.outer.tool)
        if permission not in self.bundle.permissions or name not in calls_of(tool):
            return f"{name} is not among the tools that {self.outer.name} declares to call"
        if permission not in self.consents.permissions(self.bundle.name):
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


def told(request: WireRequest, outcome: Outcome, record: str) -> Exchange:
    """What the calling code is told of a call that ran."""
    failure = outcome.failure
    if failure is None:
        value = outcome.structured if outcome.structured is not None else {"text": outcome.text}
        return Exchange(request, given(value, record), elapsed_ms=outcome.elapsed_ms)
    if failure.kind == "frozen":
        return refused(request, "frozen", failure.message)
    message = _message(failure)
    return Exchange(request, failed(failure.kind, message, record), elapsed_ms=outcome.elapsed_ms)


def _message(failure: Failure) -> str:
    where = f" at {failure.where}" if failure.where else ""
    return f"{failure.message}{where}"
