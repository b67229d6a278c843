"""A call's row: what is stored before it runs, and what when it has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.calls import Call
from orchestrator.engines import Engine
from orchestrator.ledger import Ledger
from orchestrator.outcomes import settled
from registry.records import Entry, Invocation
from registry.store import Store
from sandbox.apispec import Access
from sandbox.recording import Recording, Tape
from sandbox.runner import Outcome


@dataclass(frozen=True)
class Recorder:
    """Reads are stored soon, writes at once, before and after."""

    store: Store
    ledger: Ledger
    engine: Engine
    process: str
    now: Callable[[], float] = time.time

    def begun(self, identity: str, call: Call, entry: Entry, access: Access) -> Invocation:
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

    def soon(self, invocation: Invocation, outcome: Outcome, tape: Tape) -> Invocation:
        """The call with what became of it; it is on disk a moment later."""
        ended = settled(invocation, outcome, self._recording(invocation, tape))
        self.ledger.record_soon(ended)
        return ended

    async def intend(self, invocation: Invocation) -> None:
        """Store that a write is about to be made. Raises Frozen."""
        await asyncio.to_thread(self.store.intend, invocation, self.now())

    async def at_once(self, invocation: Invocation, outcome: Outcome, tape: Tape) -> Invocation:
        """The call with what became of it, on disk."""
        ended = settled(invocation, outcome, self._recording(invocation, tape))
        await asyncio.to_thread(self.store.record, ended, self.now())
        self.ledger.stored(ended)
        return ended

    def _recording(self, invocation: Invocation, tape: Tape) -> Recording:
        return Recording(
            self.engine.name,
            self.engine.base,
            invocation.arguments,
            tape.inputs,
            tuple(tape.exchanges),
        )
