"""Running a call in a sandbox: in its server's warm session, or in one of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from orchestrator.brokers import Brokers
from orchestrator.calls import Call
from orchestrator.engines import Engine
from orchestrator.outcomes import broken
from orchestrator.roster import Roster
from orchestrator.sessions import ReadSessions
from orchestrator.toolcalls import answered, tool_request, withheld
from registry.store import Store
from sandbox.broker import Broker, WriteMode
from sandbox.bundle import Bundle
from sandbox.errors import DefinitionsChanged, SandboxError
from sandbox.exchange import Exchange
from sandbox.recording import Tape
from sandbox.runner import Outcome, Session
from sandbox.session import CUT, PipeSession
from sandbox.validation import checker


@dataclass(frozen=True)
class Execution:
    """Knows nothing of gate and record. A session that breaks is an outcome like others."""

    store: Store
    roster: Roster
    sessions: ReadSessions
    engine: Engine
    brokers: Brokers
    now: Callable[[], float] = time.time

    async def read(self, call: Call, bundle: Bundle, tape: Tape) -> Outcome:
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

    async def single_use(
        self, call: Call, bundle: Bundle, writes: WriteMode, tape: Tape
    ) -> tuple[Outcome, Broker]:
        """A call in a session that may do what its tool may, and the broker that judged it."""
        broker = self.brokers.for_tool(bundle, call.tool, writes)
        try:
            if bundle.launch is not None:
                return await self._claimed(call, bundle, broker, tape), broker
            async with self.engine.open(bundle, broker) as session:
                return await session.call(call.tool, call.arguments, tape=tape), broker
        except SandboxError as error:
            return self._broken(call, error, tape), broker

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
