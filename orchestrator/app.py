"""Builds everything a process needs from its settings, and closes it again."""

from __future__ import annotations

import asyncio
import importlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from orchestrator import answers
from orchestrator.acceptance import SecondReading
from orchestrator.admission import Admission
from orchestrator.approved import Approved
from orchestrator.authors import Authors
from orchestrator.briefing import Briefing
from orchestrator.brokers import Brokers
from orchestrator.calls import Call
from orchestrator.captures import Captures
from orchestrator.clearance import Clearance
from orchestrator.consents import Consents
from orchestrator.descriptions import Descriptions
from orchestrator.dispatch import Dispatch
from orchestrator.documentation import Documentation
from orchestrator.drafting import Drafting
from orchestrator.drift import Drift
from orchestrator.edits import Edits
from orchestrator.engines import Engine
from orchestrator.errors import UnknownTool
from orchestrator.execution import Execution
from orchestrator.forgejobs import ForgeJobs
from orchestrator.forging import Forge
from orchestrator.freeze import keep_reserve
from orchestrator.ground import Ground, open_ground, register
from orchestrator.healing import Healing
from orchestrator.jobs import Jobs, Report
from orchestrator.ledger import Ledger
from orchestrator.needs import is_met
from orchestrator.outfitting import Outfitting
from orchestrator.proving import Proving
from orchestrator.pulse import Pulse
from orchestrator.recorder import Recorder
from orchestrator.repairs import Repairs
from orchestrator.roster import Roster
from orchestrator.rounds import Rounds
from orchestrator.sessions import ReadSessions
from orchestrator.settings import Settings
from orchestrator.submissions import Submissions
from orchestrator.upkeep import (
    do_chores,
    recover,
    sweep_dead,
    take_up_edits,
    take_up_work,
    watch_descriptions,
)
from registry.notary import Notary
from registry.records import Entry, Job
from registry.store import Store
from registry.vault import Vault
from sandbox.apispec import Access
from sandbox.brake import Brake
from sandbox.bundle import ToolDefinition
from sandbox.errors import BundleInvalid


@dataclass
class App:
    """One process's parts. Made by `open_app`; the front, the commands and the graph use it."""

    settings: Settings
    process: str
    store: Store
    vault: Vault
    brake: Brake
    clearance: Clearance
    roster: Roster
    pulse: Pulse
    consents: Consents
    outfit: Outfitting
    dispatch: Dispatch
    approved: Approved
    forge: Forge
    forge_jobs: ForgeJobs
    authors: Authors
    healing: Healing
    jobs: Jobs = field(init=False)
    submissions: Submissions = field(init=False)

    def access(self, call: Call) -> str:
        """`read` or `write`. Raises UnknownTool, BundleInvalid."""
        return self.roster.find(call.server, call.tool).bundle.tool(call.tool).access

    def tool(self, server: str, tool: str) -> ToolDefinition:
        """A tool as it counts. Raises UnknownTool, BundleInvalid."""
        return self.roster.tool(server, tool)

    def exists(self, server: str, tool: str) -> bool:
        try:
            self.access(Call(server, tool))
        except UnknownTool:
            return False
        return True

    def candidates(self, task: str, k: int) -> list[dict[str, Any]]:
        """The tools that fit a task, best first, as clients see them."""
        found = []
        for match in self.store.search(task, k):
            entry = self.store.entry(match.entry)
            standing, access = self.store.standing(match.entry), self._counted(entry, match.tool)
            found.append(answers.match_json(match, entry, standing, access))
        return found

    def _counted(self, entry: Entry, tool: str) -> Access:
        """What a tool counts as; what was registered where its files cannot be read."""
        try:
            return self.roster.find(entry.name, tool).bundle.tool(tool).access
        except (UnknownTool, BundleInvalid):
            return entry.tool(tool).access

    def changes(self, seconds: float) -> AsyncIterator[None]:
        return self.pulse.changes(seconds)

    def finished(self, identity: str) -> Mapping[str, Any]:
        return answers.invocation_json(self.store.invocation(identity))

    async def do_job(self, job: Job, report: Report) -> Mapping[str, Any]:
        """Carry out a task run. Its graph library is loaded when the first one comes."""
        graph = await asyncio.to_thread(importlib.import_module, "orchestrator.graph")
        result: Mapping[str, Any] = await graph.run_task(self, job, report)
        return result


@asynccontextmanager
async def open_app(settings: Settings, kind: str, *, patient: bool = False) -> AsyncIterator[App]:
    """Everything, for a process that calls or forges.

    A `patient` process lives long: it works off jobs and approvals by itself, and its jobs wait for
    people. Without an engine it opens all the same, and what needs one says so.
    """
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    async with AsyncExitStack() as stack:
        ground = await stack.enter_async_context(open_ground(settings))
        calling = await _open_calling(ground, stack)
        app = _assembled(ground, calling, _open_making(ground, calling, stack), patient)
        dispatch = app.dispatch
        for begun in (app.approved.begun, dispatch.writing, dispatch.nested.writing):
            stack.push_async_callback(begun.close)
        stack.push_async_callback(app.jobs.close)
        stack.enter_context(app.pulse.running())
        register(app.store, app.process, kind)
        for chore in _chores(app, ground, calling.sessions) if patient else ():
            stack.push_async_callback(_stopped, asyncio.create_task(chore))
        yield app


@dataclass(frozen=True)
class _Calling:
    """What calls of registered servers take."""

    outfit: Outfitting
    engine: Engine
    brokers: Brokers
    sessions: ReadSessions
    ledger: Ledger
    dispatch: Dispatch


async def _open_calling(ground: Ground, stack: AsyncExitStack) -> _Calling:
    """What died before is cleaned up once the engine is there, and before anything is called."""
    settings, store, upstream = ground.settings, ground.store, ground.network.upstream
    common = (ground.consents, ground.vault, upstream, ground.throttle, ground.brake)
    outfit = Outfitting(*common, ground.footnotes)
    engine = await stack.enter_async_context(
        Engine(
            settings.of_engine, ground.process, ground.brake, structlog.get_logger().info, outfit
        )
    )
    await asyncio.to_thread(recover, store, ground.shelf, settings.instance)
    brokers = Brokers(*common, private=settings.of_engine.private, footnotes=ground.footnotes)
    sessions = ReadSessions(engine, brokers.reading, settings.idle_seconds)
    stack.push_async_callback(sessions.close)
    ledger = Ledger(store, ground.roster.update)
    stack.push_async_callback(ledger.close)
    dispatch = Dispatch(
        store,
        ledger,
        ground.roster,
        Admission(store, ground.clearance, ground.brake),
        Execution(store, ground.roster, sessions, engine, brokers),
        Captures(store, brokers, settings.approval_seconds),
        Recorder(store, ledger, engine, ground.process),
        ground.brake,
        ground.process,
    )
    return _Calling(outfit, engine, brokers, sessions, ledger, dispatch)


@dataclass(frozen=True)
class _Making:
    """What making servers takes."""

    forge: Forge
    authors: Authors
    drafting: Drafting
    jobs: ForgeJobs


def _open_making(ground: Ground, calling: _Calling, stack: AsyncExitStack) -> _Making:
    store, shelf, vault, consents = ground.store, ground.shelf, ground.vault, ground.consents
    engine, brake = calling.engine, ground.brake
    descriptions = Descriptions(consents, vault, brake, ground.network.upstream)
    forge = Forge(store, consents, shelf, engine, calling.brokers, brake, descriptions)
    authors = Authors(ground.settings.of_model, store, vault, consents, brake, time.time)
    stack.push_async_callback(authors.close)
    rounds = Rounds(store, authors)
    second, tool = SecondReading(rounds, engine), ground.roster.tool
    proving = Proving(store, forge, second, tool)
    drafting = Drafting(store, forge, Briefing(store, shelf), rounds, proving)
    jobs = ForgeJobs(store, forge, drafting, Documentation(store, forge, authors))
    return _Making(forge, authors, drafting, jobs)


def _assembled(ground: Ground, calling: _Calling, making: _Making, patient: bool) -> App:
    """The parts, with those that know each other made known to each other."""
    store, roster, dispatch = ground.store, ground.roster, calling.dispatch
    app = App(
        ground.settings,
        ground.process,
        store,
        ground.vault,
        ground.brake,
        ground.clearance,
        roster,
        ground.pulse,
        ground.consents,
        calling.outfit,
        dispatch,
        Approved(store, dispatch, ground.clearance, ground.process),
        making.forge,
        making.jobs,
        making.authors,
        Healing(store, making.forge, roster.forget, roster.on_trial),
    )
    calling.ledger.stored = app.healing.noticed
    repairs = Repairs(store, making.forge, dispatch.call, roster.forget)
    app.jobs = Jobs(
        store,
        ground.process,
        {"forge": making.jobs.carry_out, "do": app.do_job, "repair": repairs.repair_job},
        person=_person(ground) if patient else None,
        met=lambda job: is_met(app.consents, job) and app.authors.can_go_on(job),
    )
    app.submissions = Submissions(store, ground.process, app.jobs, making.drafting)
    return app


def _chores(
    app: App, ground: Ground, sessions: ReadSessions
) -> Iterator[Coroutine[Any, Any, None]]:
    """What a process that lives long does beside answering."""
    keep_reserve(app.settings.reserve)
    yield take_up_work(app.jobs, app.approved.carry_out, app.pulse, app.brake)
    yield take_up_edits(Edits(app.settings.home, app.store, app.forge, app.roster.tool), app.brake)
    yield watch_descriptions(Drift(app.store, app.forge, app.healing), app.brake)
    yield do_chores(app.store, sessions, Notary(app.settings.heads), ground.clearance)
    yield sweep_dead(app.store, ground.shelf, app.settings.instance)


def _person(ground: Ground) -> Callable[[], Any]:
    """Wait until grants, sources or secrets are not what they were."""

    async def done_something() -> None:
        before = _given(ground)
        while await asyncio.to_thread(_given, ground) == before:
            await ground.pulse.changed()

    return done_something


def _given(ground: Ground) -> Any:
    try:
        modified = ground.settings.vault.stat().st_mtime_ns
    except FileNotFoundError:
        modified = 0
    return ground.consents.grants(), ground.consents.sources(), modified


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
