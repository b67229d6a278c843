"""Executing a call in a sandbox: in its server's warm session, or in a single-use one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from orchestrator.calls import Call
from orchestrator.gateway.brokers import BrokerFactory
from orchestrator.gateway.catalog import Catalog
from orchestrator.gateway.engine import Engine
from orchestrator.gateway.record import build_broken_outcome
from orchestrator.gateway.sessions import ReadSessions
from registry.servers.entries import ServerTable
from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.errors import DefinitionsChanged, SandboxError, SessionBroken
from sandbox.offload import run_counted
from sandbox.schemas.validator import get_checker
from sandbox.session.interface import Failure, Outcome
from sandbox.session.pipe import CUT
from sandbox.session.recording import CallLog
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse, WriteMode

METHOD = "CALL"

log = structlog.get_logger()


def build_tool_request(bundle: Bundle, tool: str, arguments: Mapping[str, Any]) -> WireRequest:
    """The call as it is shown, digested and approved. Raises KeyError.

    Its headers bind the version, the image and the tool's definition; equal arguments give the same
    bytes in whatever order they came.
    """
    assert bundle.launch is not None
    original = bundle.launch.get_tool(tool).original
    headers = (
        ("tool", json.dumps(original)),
        ("server-version", str(bundle.version)),
        ("definition", bundle.launch.pins[original]),
        ("image", bundle.launch.image or bundle.launch.way),
    )
    body = json.dumps(arguments, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return WireRequest(METHOD, f"mcp://{bundle.name}/{tool}", headers, body.encode())


def build_exchange(request: WireRequest, outcome: Outcome) -> Exchange:
    """The exchange of a call that was answered: 200 where the tool says it succeeded, else 500."""
    said_no = bool(outcome.result.get("isError"))
    return Exchange(request, WireResponse(500 if said_no else 200), elapsed_ms=outcome.elapsed_ms)


def build_withheld_outcome(tool: str, held: Exchange) -> Outcome:
    """The outcome of a call that was not made."""
    failure = Failure(held.refusal, held.reason)
    result = {"isError": True, "content": [{"type": "text", "text": held.reason}]}
    return Outcome(tool, result, failure, (held,))


@dataclass(frozen=True)
class Execution:
    """Knows nothing of gate and record. A session that breaks is an outcome like others."""

    servers: ServerTable
    roster: Catalog
    sessions: ReadSessions
    engine: Engine
    brokers: BrokerFactory
    now: Callable[[], float] = time.time

    def prepare_call(self, server: str, tool: str) -> None:
        """Open the session of a tool that a call will probably want, beside what is done until
        then. Only of one that reads and was forged: a write has a session of its own, and the
        packages of others may have to be fetched. Raises UnknownTool, BundleInvalid.
        """
        if not self.sessions.has_room_ahead:
            return
        member = self.roster.find_server(server, tool)
        bundle = member.bundle
        if member.tools[tool].access == "read" and not (bundle.launch or bundle.packages):
            self.sessions.open_ahead(bundle)

    async def run_read(self, call: Call, bundle: Bundle, tape: CallLog) -> Outcome:
        try:
            lent = await self.sessions.lend_session(bundle)
        except SandboxError as error:
            return self._end_broken(call, error, tape)
        except Exception as error:
            return self._end_failed(call, error, tape)
        try:
            return await lent.session.call(call.tool, call.arguments, tape=tape)
        except SandboxError as error:
            await self.sessions.drop_sessions(bundle.name, lent.session)
            return self._end_broken(call, error, tape)
        except Exception as error:
            await self.sessions.drop_sessions(bundle.name, lent.session)
            return self._end_failed(call, error, tape)
        finally:
            lent.give_back()

    async def run_single_use(
        self, call: Call, bundle: Bundle, writes: WriteMode, tape: CallLog
    ) -> tuple[Outcome, Broker]:
        """A call in a session that may do what its tool may, and the broker that judged it."""
        broker = self.brokers.build_tool_broker(bundle, call.tool, writes)
        try:
            if bundle.launch is not None:
                return await self._call_claimed(call, bundle, broker, tape), broker
            async with self.engine.open(bundle, broker) as session:
                return await session.call(call.tool, call.arguments, tape=tape), broker
        except SandboxError as error:
            return self._end_broken(call, error, tape), broker
        except Exception as error:
            return self._end_failed(call, error, tape), broker

    async def _call_claimed(
        self, call: Call, bundle: Bundle, broker: Broker, tape: CallLog
    ) -> Outcome:
        """A call of a third-party tool as one write, if the broker lets it be made: its session is
        the warm one, since such servers keep state.
        """
        request = build_tool_request(bundle, call.tool, call.arguments)
        lent = await self.sessions.lend_session(bundle)
        try:
            checker, problem = get_checker(bundle.get_tool(call.tool).input_schema), None
            if not checker.fits_plainly(call.arguments):
                check = partial(checker.find_problem, call.arguments)
                problem = await run_counted(call.arguments, check, checker.weight)
            held = None if problem else broker.claim_write(request)
            if held is not None:
                return build_withheld_outcome(call.tool, held)
            if not problem:
                tape.exchanges.append(Exchange(request, None, CUT, "no answer came"))
            outcome = await lent.session.call(call.tool, call.arguments, tape=tape)
            if not problem:
                tape.exchanges[-1] = build_exchange(request, outcome)
            return replace(outcome, exchanges=tuple(tape.exchanges))
        except Exception:
            await self.sessions.drop_sessions(bundle.name, lent.session)
            raise
        finally:
            lent.give_back()

    def _end_broken(self, call: Call, error: SandboxError, tape: CallLog) -> Outcome:
        """The outcome of a session that ended; one whose tools changed takes its server along."""
        self.quarantine_changed(call.server, error)
        return build_broken_outcome(call.server, call.tool, error, tape)

    def _end_failed(self, call: Call, error: Exception, tape: CallLog) -> Outcome:
        """The outcome of a call on which our own code failed: whatever a server answered, its call
        is recorded.
        """
        log.error("a call failed on our side", tool=call.name, exc_info=error)
        broken = SessionBroken(f"Toolwright could not take its answer ({type(error).__name__})")
        return build_broken_outcome(call.server, call.tool, broken, tape)

    def quarantine_changed(self, server: str, error: SandboxError) -> None:
        """Quarantine a server whose definitions are not those that were registered."""
        if isinstance(error, DefinitionsChanged):
            self.servers.set_state(server, "quarantined", self.now(), "guard", str(error))
            self.roster.forget_servers()
