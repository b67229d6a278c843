"""The parts that call registered servers, without those that forge; a process that only calls."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from orchestrator.approvals.signing_key import sign_audit
from orchestrator.context import Context, open_context
from orchestrator.gateway.admission import Admission
from orchestrator.gateway.approved_writes import ApprovalRequester
from orchestrator.gateway.audit_writer import CallWriter
from orchestrator.gateway.brokers import BrokerFactory
from orchestrator.gateway.catalog import Catalog
from orchestrator.gateway.dispatch import Dispatch
from orchestrator.gateway.engine import Engine
from orchestrator.gateway.execute import Execution
from orchestrator.gateway.record import CallRecorder
from orchestrator.gateway.sealed_arguments import SealedArguments
from orchestrator.gateway.sessions import ReadSessions
from orchestrator.gateway.thirdparty import GrantedEnvironmentProvider
from orchestrator.healing.monitor import Healing
from orchestrator.processes.liveness import register_process
from orchestrator.processes.logs import configure_logs
from orchestrator.recovery import clean_up_dead
from orchestrator.settings import Settings
from registry.calls.record_process import RecordOffload
from sandbox.budget import build_process_budget
from sandbox.killswitch import KillSwitch

SESSIONS_AHEAD = 4
"""Of servers that `find` or a task proposed. A container takes 7 to 10 MB."""


@dataclass(frozen=True)
class Caller:
    """The parts of a process that calls tools and does nothing else, made by `open_caller`."""

    roster: Catalog
    dispatch: Dispatch
    ledger: CallWriter
    kill_switch: KillSwitch


@asynccontextmanager
async def open_caller(settings: Settings, kind: str) -> AsyncIterator[Caller]:
    """A process that calls tools: what fails is counted, and repairs are queued for others."""
    configure_logs()
    async with AsyncExitStack() as stack:
        ground = await stack.enter_async_context(open_context(settings))
        stack.callback(sign_audit, settings, ground.store.audit)
        # Until all parts are closed: a freeze also stops what a process waits for at its end.
        stack.enter_context(ground.pulse.watch_signals())
        parts = await open_call_parts(ground, stack)
        roster, dispatch = ground.roster, parts.dispatch
        healing = Healing(ground.store, ground.shelf, roster.forget_servers, roster.is_on_trial)
        parts.ledger.stored = healing.record_call
        for begun in (dispatch.writing, dispatch.nested.writing):
            stack.push_async_callback(begun.close)
        register_process(ground.store.processes, ground.process, kind)
        yield Caller(roster, dispatch, parts.ledger, ground.kill_switch)


@dataclass(frozen=True)
class CallParts:
    """What calls of registered servers take."""

    outfit: GrantedEnvironmentProvider
    engine: Engine
    brokers: BrokerFactory
    sessions: ReadSessions
    ledger: CallWriter
    dispatch: Dispatch


async def open_call_parts(ground: Context, stack: AsyncExitStack) -> CallParts:
    """What died before is cleaned up once the engine is there, and before anything is called."""
    settings, store, upstream = ground.settings, ground.store, ground.network.open_upstream
    common = (ground.consents, ground.vault, upstream, ground.throttle, ground.kill_switch)
    outfit = GrantedEnvironmentProvider(*common, ground.footnotes)
    engine = await stack.enter_async_context(
        Engine(
            settings.of_engine,
            ground.process,
            ground.kill_switch,
            partial(print, file=sys.stderr),
            outfit,
        )
    )
    await asyncio.to_thread(clean_up_dead, store, ground.shelf, settings.instance)
    brokers = BrokerFactory(
        *common,
        private=settings.of_engine.private,
        footnotes=ground.footnotes,
        memory=build_process_budget(settings.calls_mb),
    )
    sessions = ReadSessions(
        engine,
        brokers.build_read_broker,
        settings.idle_seconds,
        brokers.find_held_grants,
        SESSIONS_AHEAD if settings.spares else 0,
    )
    stack.push_async_callback(sessions.close)
    offload = RecordOffload(settings.database_url, ground.process, settings.recordings_mb << 20)
    stack.push_async_callback(offload.close)
    ledger = CallWriter(store, ground.roster.update_standing, offload=offload)
    stack.push_async_callback(ledger.write_count)
    stack.push_async_callback(ledger.close)
    dispatch = Dispatch(
        store,
        ledger,
        ground.roster,
        Admission(store.rules, ground.signed_policy, ground.kill_switch),
        Execution(store.servers, ground.roster, sessions, engine, brokers),
        ApprovalRequester(
            store.approvals,
            brokers,
            ground.roster,
            settings.approval_seconds,
            SealedArguments(ground.vault, store.approvals),
        ),
        CallRecorder(store.calls, ledger, engine, ground.process),
        ground.kill_switch,
        ground.process,
    )
    # Else they would fail by the end of their sessions, as if these had crashed.
    stack.push_async_callback(dispatch.close)
    return CallParts(outfit, engine, brokers, sessions, ledger, dispatch)
