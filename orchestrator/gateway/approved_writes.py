"""Requesting approvals of captured writes, and sending the writes that people approved."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from orchestrator.approvals.preview import build_read_request, extract_present
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.calls import Call, Pending, split_tool_name
from orchestrator.errors import DecisionsInDoubt, UnknownTool
from orchestrator.gateway.brokers import BrokerFactory
from orchestrator.gateway.catalog import Catalog, RegisteredServer
from orchestrator.gateway.composition import list_inner_tools
from orchestrator.gateway.sealed_arguments import SealedArguments
from registry.approvals.approvals import ApprovalTable
from registry.approvals.terms import ApprovalTerms, build_terms
from registry.database.canonical import hash_text
from registry.errors import DatabaseUnusable, DuplicateRow
from registry.models import Approval
from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.errors import BundleInvalid, Frozen
from sandbox.offload import run_beside, run_counted
from sandbox.schemas.coercion import find_claims
from sandbox.schemas.validator import get_checker
from sandbox.wire.exchange import WireRequest, WriteStep, digest_request

CLOSE_SECONDS = 5.0

T = TypeVar("T")


@dataclass(frozen=True)
class InFlight:
    """Tasks that outlive those who wait for them: whoever asked for one may go away."""

    tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def start_work(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def await_shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives; it goes on where its waiter is cancelled."""
        return await asyncio.shield(self.start_work(work))

    async def close(self) -> None:
        """Let end what has begun; what takes too long is cut, its outcome unknown."""
        begun = tuple(self.tasks)
        if begun:
            _, late = await asyncio.wait(begun, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*begun, return_exceptions=True)


@dataclass
class ApprovedWrites:
    """Claims approvals for this process. `begun` are the calls that it carries out now,
    `broken_off` the claims whose intent or end the registry could not store.
    """

    approvals: ApprovalTable
    send: Callable[[Approval], Coroutine[Any, Any, object]]
    signed_policy: SignedPolicy
    process: str
    begun: InFlight = field(default_factory=InFlight)
    broken_off: set[str] = field(default_factory=set)

    async def carry_out_approved(self) -> None:
        """Claim what people approved, and begin to do it.

        While the key of their decisions is in doubt nothing is claimed, and nothing is lost.
        """
        if self.signed_policy.find_obstacle():
            return
        for id in tuple(self.broken_off):
            self.approvals.release_claim(id, self.process, time.time())
            self.broken_off.discard(id)
        for approval in self.approvals.find_ids("approved"):
            try:
                claimed = self._claim(approval)
            except Frozen:
                return
            if claimed is not None:
                self.begun.start_work(self._send(claimed))

    async def carry_out_one(self, approval: str) -> bool:
        """Claim one approved write and carry it out to its end; False where another process has it
        or it is not approved. Raises Frozen, RowNotFound, and
        DecisionsInDoubt while the key of people's decisions is.
        """
        if obstacle := self.signed_policy.find_obstacle():
            raise DecisionsInDoubt(obstacle)
        claimed = self._claim(approval)
        if claimed is not None:
            await self.begun.await_shielded(self._send(claimed))
        return claimed is not None

    async def _send(self, claimed: Approval) -> object:
        try:
            return await self.send(claimed)
        except DatabaseUnusable:
            self.broken_off.add(claimed.id)
            raise

    def _claim(self, approval: str) -> Approval | None:
        now, forgery = time.time(), self.signed_policy.check_forgery
        return self.approvals.claim(approval, self.process, now, forgery)


def derive_approval_id(invocation: str) -> str:
    """The id of the approval that a call asks for: one a call, however often it is begun."""
    return hash_text(f"approval of {invocation}")[:16]


PRESENT_SECONDS = 5.0
"""How long a request for an approval waits to learn what the write would change."""


@dataclass(frozen=True)
class ApprovalRequester:
    """`approval_seconds` is how long a person has."""

    approvals: ApprovalTable
    brokers: BrokerFactory
    roster: Catalog
    approval_seconds: float
    sealed: SealedArguments
    now: Callable[[], float] = time.time

    async def request_approval(
        self, call: Call, bundle: Bundle, broker: Broker, reason: str, invocation: str
    ) -> Pending:
        """Store the request for an approval of exactly the write that the broker captured. A call
        that is made again under its id (`invocation`) has the approval that was requested first.
        """
        captured = broker.captured
        assert captured is not None
        present = await self._read_present(bundle, captured)
        now, id = self.now(), derive_approval_id(invocation)
        shown = await run_beside(partial(self.sealed.hide, call, captured))
        # Who decides is told what the API will probably refuse. What is hidden is not what the
        # document would judge.
        tool = bundle.get_tool(call.tool)
        find = partial(find_claims, bundle, tool, call.arguments)
        weight = get_checker(tool.input_schema).weight
        claims = "" if shown.hides else await run_counted(call.arguments, find, weight)
        approval = Approval(
            id=id,
            entry=call.server,
            version=bundle.version,
            tool=call.tool,
            arguments=shown.arguments,
            wire=shown.wire,
            wire_digest=digest_request(shown.wire),
            created=now,
            expires=now + self.approval_seconds,
            task=call.task,
            session=call.session,
            reason=". ".join(filter(None, (claims, call.flow, call.reason or reason))),
            present=present,
            steps=broker.captured_steps,
            uses=self._list_uses(bundle, call.tool),
        )
        try:
            self.approvals.add_pending(approval)
        except DuplicateRow:
            return Pending(call, self.approvals.get(approval.id), reason, claims)
        if shown.hides:
            await asyncio.to_thread(self.sealed.keep, approval.id, call, captured)
        return Pending(call, approval, reason, claims)

    def build_terms(self, approval: Approval, member: RegisteredServer) -> ApprovalTerms:
        """The terms of what an approved call would be now: of the versions, files and credentials
        that there are. The text follows from all of them; which tools it may call, from its files.
        """
        steps = tuple(self._build_step(step.server, step.tool) for step in approval.steps)
        uses = tuple(self._build_step(used.server, used.tool) for used in approval.uses)
        return build_terms(replace(approval, version=member.entry.version, steps=steps, uses=uses))

    def _list_uses(self, bundle: Bundle, tool: str) -> tuple[WriteStep, ...]:
        names = list_inner_tools(bundle.get_tool(tool), self.roster.find_tool)
        parts = filter(None, map(split_tool_name, names))
        return tuple(self._build_step(server, called) for server, called in parts)

    def _build_step(self, server: str, tool: str) -> WriteStep:
        """The tool as it is now; version 0 where there is none."""
        try:
            bundle = self.roster.find_server(server, tool).bundle
        except (UnknownTool, BundleInvalid):
            return WriteStep(server, 0, "", tool)
        return self.brokers.build_step(bundle, tool)

    async def _read_present(self, bundle: Bundle, wire: WireRequest) -> str:
        """What a write would change, where the server may read that: the broker asks for it as for
        any request of a read session. JSON text, or nothing.
        """
        reading = build_read_request(wire)
        if reading is None or bundle.launch is not None:
            return ""
        try:
            async with asyncio.timeout(PRESENT_SECONDS):
                return extract_present(
                    await self.brokers.build_read_broker(bundle).perform(reading)
                )
        except TimeoutError:
            return ""
