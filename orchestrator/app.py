"""Composition root: builds the parts of a process from its settings, and closes them again."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.approvals.flows import FlowRules
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.needs import is_met
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import sign_audit
from orchestrator.calling import CallParts, open_call_parts
from orchestrator.chores import (
    encode_tools,
    load_ahead,
    run_chores,
    sweep_dead,
    take_up_edits,
    take_up_work,
    watch_descriptions,
)
from orchestrator.context import Context, open_context
from orchestrator.forging.authors.authors import Authors
from orchestrator.forging.contact.source_credentials import mark_credentials
from orchestrator.forging.edits import EditWatcher
from orchestrator.forging.order import Report
from orchestrator.forging.secret_scan import SecretScan
from orchestrator.gateway.approved_writes import ApprovedWrites
from orchestrator.gateway.catalog import Catalog
from orchestrator.gateway.dispatch import Dispatch
from orchestrator.gateway.engine import Engine
from orchestrator.gateway.sessions import ReadSessions
from orchestrator.gateway.thirdparty import GrantedEnvironmentProvider
from orchestrator.healing.monitor import Healing
from orchestrator.jobs.runner import JobRunner
from orchestrator.later import Later
from orchestrator.processes.garbage import collect_rarely
from orchestrator.processes.kill import keep_reserve
from orchestrator.processes.liveness import ENDING, register_process
from orchestrator.processes.logs import configure_logs
from orchestrator.processes.memory import limit_arenas
from orchestrator.processes.signals import Signals
from orchestrator.processes.watchdog import LoopWatchdog
from orchestrator.results.keeper import ResultKeeper
from orchestrator.settings import EngineName, Settings
from orchestrator.tasks.suggestions import Suggestions
from registry.audit.heads import HeadSigner
from registry.errors import RegistryError
from registry.models import Job
from registry.secrets.vault import Vault
from registry.servers.bundles import Bundles
from registry.sessions.kept_results import KeepLimits
from registry.store import Store
from sandbox.killswitch import KillSwitch

if TYPE_CHECKING:
    from orchestrator.forging.forge import Forge
    from orchestrator.healing.drift import Drift
    from orchestrator.job_parts import JobParts
    from orchestrator.jobs.submissions import Submissions
    from orchestrator.replay.replay import Replayer
    from orchestrator.tasks.answering import Answering


@dataclass
class App:
    """One process's parts, made by `open_app`. Only fronts and commands hold it whole."""

    settings: Settings
    process: str
    store: Store
    vault: Vault
    kill_switch: KillSwitch
    signed_policy: SignedPolicy
    roster: Catalog
    pulse: Signals
    consents: Grants
    outfit: GrantedEnvironmentProvider
    dispatch: Dispatch
    approved: ApprovedWrites
    shelf: Bundles
    engine: Engine
    authors: Authors
    healing: Healing
    suggestions: Suggestions
    results: ResultKeeper
    job_parts: Later[JobParts]
    """What its jobs take."""
    jobs: JobRunner = field(init=False)

    @property
    def forge(self) -> Forge:
        return self.job_parts.get().forge

    @property
    def drift(self) -> Drift:
        return self.job_parts.get().drift

    @property
    def submissions(self) -> Submissions:
        return self.job_parts.get().submissions

    @property
    def answering(self) -> Answering:
        return self.job_parts.get().answering

    def watch_changes(self, seconds: float) -> AsyncIterator[None]:
        return self.pulse.follow_changes(seconds)

    def replays(self, engine: EngineName | None = None) -> Replayer:
        """What runs recorded calls and jobs again, on that engine or on the one they ran on."""
        made: Replayer = importlib.import_module("orchestrator.replay.replay").Replayer(
            self.store,
            self.shelf,
            self.engine,
            self.settings.of_engine,
            self.process,
            self.kill_switch,
            engine,
        )
        return made

    async def load_search_tables(self) -> None:
        """Load what finds tools for a task, but for the index."""
        await asyncio.to_thread(self.store.search.load_tables)

    async def load_task_graph(self) -> None:
        """Load what carries out tasks."""
        parts = await self.job_parts.fetch()
        await parts.load_task_graph()

    async def run_job(self, job: Job, report: Report) -> Mapping[str, Any]:
        """Carry out a job of any kind."""
        parts = await self.job_parts.fetch()
        return await parts.run_job(job, report)

    def is_met(self, job: Job) -> bool:
        """Whether a job that waits has by now what it waits for."""
        mark = partial(mark_credentials, self.consents, self.vault)
        return is_met(self.consents, job, mark) and self.authors.can_resume(job)


@asynccontextmanager
async def open_app(settings: Settings, kind: str, *, patient: bool = False) -> AsyncIterator[App]:
    """Everything, for a process that calls or forges.

    A `patient` process lives long: it works off jobs and approvals by itself, and its jobs wait for
    people. Without an engine it opens all the same, and what needs one says so.
    """
    configure_logs()
    collect_rarely()
    if patient:
        limit_arenas()
    async with AsyncExitStack() as stack:
        ground = await stack.enter_async_context(open_context(settings))
        stack.callback(sign_audit, settings, ground.store.audit)
        # Until all parts are closed: a freeze also stops what a process waits for at its end.
        stack.enter_context(ground.pulse.watch_signals())
        calling = await open_call_parts(ground, stack)
        app = _assemble_app(ground, calling, patient)
        stack.push_async_callback(app.authors.close)
        dispatch = app.dispatch
        for begun in (app.approved.begun, dispatch.writing, dispatch.nested.writing):
            stack.push_async_callback(begun.close)
        stack.push_async_callback(app.jobs.close)
        register_process(app.store.processes, app.process, kind)
        chores = [*_list_chores(app, ground, calling.sessions)] if patient else []
        if kind == "serve":
            # A process of one server searches nothing, and its clients ask for no jobs.
            chores += [
                load_ahead(
                    (app.job_parts.fetch, app.load_search_tables, app.load_task_graph),
                    lambda: bool(dispatch.running),
                ),
                encode_tools(app.store, settings.semantic),
            ]
        for chore in chores:
            stack.push_async_callback(_cancel_task, asyncio.create_task(chore))
        if patient:
            stack.callback(_register_ending, app)
        yield app


def _register_ending(app: App) -> None:
    """What is queued or approved from now on is another process's: whoever asks for it starts one
    where none is alive.
    """
    with suppress(RegistryError):
        register_process(app.store.processes, app.process, ENDING)


def _assemble_app(ground: Context, calling: CallParts, patient: bool) -> App:
    """The parts, with those that know each other made known to each other."""
    settings, store, roster, dispatch = (
        ground.settings,
        ground.store,
        ground.roster,
        calling.dispatch,
    )
    approved = ApprovedWrites(
        store.approvals, dispatch.carry_out_approval, ground.signed_policy, ground.process
    )
    authors = Authors(
        settings.of_model, store, ground.vault, ground.consents, ground.kill_switch, time.time
    )
    healing = Healing(store, ground.shelf, roster.forget_servers, roster.is_on_trial)
    results = _build_result_keeper(ground)

    def open_parts() -> JobParts:
        # Loaded by name: most processes only call.
        module = importlib.import_module("orchestrator.job_parts")
        desk = module.Desk(app.jobs, authors, healing, app.suggestions, results)
        made: JobParts = module.open_job_parts(ground, calling, desk)
        return made

    app = App(
        settings,
        ground.process,
        store,
        ground.vault,
        ground.kill_switch,
        ground.signed_policy,
        roster,
        ground.pulse,
        ground.consents,
        calling.outfit,
        dispatch,
        approved,
        ground.shelf,
        calling.engine,
        authors,
        healing,
        Suggestions(store, roster, ground.signed_policy),
        results,
        Later(open_parts),
    )
    calling.ledger.stored = healing.record_call
    app.jobs = JobRunner(
        store,
        ground.process,
        app.run_job,
        ground.pulse.wait_for_change,
        patient=patient,
        met=app.is_met,
    )
    return app


def _build_result_keeper(ground: Context) -> ResultKeeper:
    settings = ground.settings
    limits = KeepLimits(
        settings.kept_seconds, settings.kept_session_mb << 20, settings.kept_mb << 20
    )
    return ResultKeeper(
        ground.store.kept_results,
        ground.roster.get_server,
        limits,
        settings.result_bytes,
        is_flow_allowed=FlowRules(ground.consents, ground.store.servers).is_allowed,
    )


def _list_chores(
    app: App, ground: Context, sessions: ReadSessions
) -> Iterator[Coroutine[Any, Any, None]]:
    """What a process that lives long does beside answering."""
    keep_reserve(app.settings.reserve)
    yield take_up_work(app.jobs, app.approved.carry_out_approved, app.pulse, app.kill_switch)
    yield take_up_edits(
        EditWatcher(
            app.settings.home,
            app.store,
            app.shelf,
            lambda: app.forge,
            app.roster.find_tool,
            SecretScan(app.vault),
        ),
        app.kill_switch,
    )
    yield watch_descriptions(app.store, app.healing, lambda: app.drift, app.kill_switch)
    watchdog = LoopWatchdog(partial(app.store.processes.record_stalls, app.process))
    heads = HeadSigner(app.settings.heads)
    yield run_chores(
        app.store,
        sessions,
        heads,
        ground.signed_policy,
        watchdog,
        lambda: bool(app.dispatch.running),
        app.dispatch.captures.sealed.prune,
    )
    yield sweep_dead(app.store, ground.shelf, app.settings.instance)


async def _cancel_task(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
