"""A write that was captured unsent becomes what a person is asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.brokers import Brokers
from orchestrator.calls import Call, Pending
from orchestrator.changes import present_in, reading_of
from registry.records import Approval, new_id
from registry.store import Store
from sandbox.bundle import Bundle
from sandbox.exchange import WireRequest, wire_digest

PRESENT_SECONDS = 5.0
"""How long a request for an approval waits to learn what the write would change."""


@dataclass(frozen=True)
class Captures:
    """`approval_seconds` is how long a person has."""

    store: Store
    brokers: Brokers
    approval_seconds: float
    now: Callable[[], float] = time.time

    async def pending(
        self, call: Call, bundle: Bundle, captured: WireRequest, reason: str
    ) -> Pending:
        """Store the request for an approval of exactly this write."""
        present = await self._present(bundle, captured)
        now = self.now()
        approval = Approval(
            id=new_id(),
            entry=call.server,
            version=bundle.version,
            tool=call.tool,
            arguments=call.arguments,
            wire=captured,
            wire_digest=wire_digest(captured),
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
