"""Builds everything a process needs from its settings, and closes it again."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil
import structlog

from orchestrator import answers
from orchestrator.authors import Authors
from orchestrator.briefing import Briefing
from orchestrator.brokers import Brokers
from orchestrator.calls import Call, Reply
from orchestrator.clearance import Clearance
from orchestrator.consents import Consents, void_json
from orchestrator.dispatch import Dispatch
from orchestrator.documentation import Documentation, awaits_document, claims_in, kept
from orchestrator.drafting import Drafting
from orchestrator.drift import Drift
from orchestrator.edits import Edits
from orchestrator.engines import Engine
from orchestrator.errors import OrchestratorError, ProseFound, SourceMissing, UnknownTool
from orchestrator.footnotes import Footnotes
from orchestrator.forging import NO_SOURCE, Forge, Forged, Order, Step
from orchestrator.freeze import keep_reserve
from orchestrator.healing import Healing
from orchestrator.jobs import Jobs, Report
from orchestrator.ledger import Ledger
from orchestrator.needs import is_met
from orchestrator.outfitting import Outfitting
from orchestrator.people import authority
from orchestrator.pulse import Pulse
from orchestrator.repairs import Repairs
from orchestrator.roster import Roster
from orchestrator.rounds import Rounds
from orchestrator.sessions import ReadSessions
from orchestrator.settings import Settings
from orchestrator.shelf import Shelf
from orchestrator.upkeep import (
    do_chores,
    recover,
    sweep_dead,
    take_up_edits,
    take_up_work,
    watch_descriptions,
)
from orchestrator.vaults import open_vault
from registry.cause import cause_of
from registry.drafts import awaits_draft
from registry.errors import DraftRefused, RegistryError
from registry.notary import Notary
from registry.records import DraftRow, Entry, Invocation, Job, Process, new_id
from registry.store import Store
from registry.vault import Vault
from sandbox.apispec import Access
from sandbox.brake import Brake
from sandbox.bundle import ToolDefinition
from sandbox.errors import BundleInvalid, Frozen
from sandbox.exchange import Upstream
from sandbox.livehttp import LiveHttp
from sandbox.pauses import Pauses
from sandbox.policy import Origin
from sandbox.throttle import MAX_PAUSE, Throttle
from sandbox.validation import Problem

CLOSE_SECONDS = 5.0


@dataclass
class App:
    """One process's parts. Made by `open_app`; the front, the commands and the graph use it."""

    settings: Settings
    process: str
    store: Store
    vault: Vault
    brake: Brake
    roster: Roster
    pulse: Pulse
    dispatch: Dispatch
    forge: Forge
    drafting: Drafting
    documentation: Documentation
    outfit: Outfitting
    consents: Consents
    authors: Authors
    jobs: Jobs = field(init=False)
    healing: Healing = field(init=False)
    carrying_out: set[asyncio.Task[Reply]] = field(default_factory=set)

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

    def resubmit(self, job: str, document: str) -> Job:
        """A new job for an order whose source was of no use, with the description handed in."""
        earlier = self.store.job(job)
        if earlier.kind != "forge":
            raise OrchestratorError(f"{job} is no forge job. `status` lists the jobs.")
        if earlier.request.get("parent"):
            raise OrchestratorError(f"{job} changes a server: hand in its code, not a document.")
        if awaits_draft(earlier):
            self.store.cancel_job(job, "submit", time.time())
        return self.jobs.create("forge", {**earlier.request, "document": document})

    def hand_in(self, job: str, given: Mapping[str, Any]) -> DraftRow | tuple[Problem, ...]:
        """A draft for a job that waits for one; it is queued. Or what is wrong with the draft.
        Raises DraftRefused.
        """
        if awaits_document(self.store.job(job)):
            raise DraftRefused(job, "it waits for the API's description: submit it as `document`")
        return self.drafting.hand_in(self.store.job(job), given)

    def as_experimental(self, job: str) -> Job:
        """A new job that registers the last draft of one that ended without a server, whatever the
        stages say. Only for a person. Raises OrchestratorError where there is no such draft.
        """
        earlier = self.store.job(job)
        drafts = [row for row in self.store.drafts(job) if row.content.get("code")]
        if earlier.state != "failed" or not drafts:
            raise OrchestratorError(f"job {job} did not end with a draft that failed.")
        told = {"experimental": True, "author": "client", "source": NO_SOURCE}
        now, last = time.time(), drafts[-1]
        request = {**earlier.request, **told}
        # It waits until it has its draft: nobody else is to begin it without.
        made = Job(new_id(), "forge", request, created=now, updated=now, state="waiting")
        self.store.create_job(made)
        by = (last.author, last.model)
        self.store.copy_draft(made.id, last.digest, last.content, now, *by)
        self.store.resume_job(made.id, "terminal", now)
        return made

    def overview(self) -> dict[str, Any]:
        """What goes on, for `status`, the page and scripts."""
        state = self.store.freeze_state()
        return {
            "frozen": state.frozen,
            "frozen_by": state.by if state.frozen else "",
            "frozen_since": state.since if state.frozen else None,
            "running": [
                {"call": identity, "tool": call.name, "task": call.task}
                for identity, (call, _) in self.dispatch.running.items()
            ],
            "jobs": [
                answers.job_line(job)
                for state_name in ("queued", "running", "waiting")
                for job in self.store.jobs(state_name)
            ],
            "approvals": [answers.approval_json(a) for a in self.store.approvals("pending")],
            "approvals_held": self.dispatch.clearance.held(),
            "grants_void": [void_json(*void) for void in self.consents.void()],
            "repairs": [
                answers.job_line(job) for job in self.store.jobs(limit=50) if job.kind == "repair"
            ][:10],
            "recent": [
                {"call": i.id, "tool": f"{i.entry}.{i.tool}", "ok": i.succeeded, "task": i.task}
                | _why(i)
                for i in self.store.invocations(limit=10)
            ],
            "servers": len(self.store.summaries()),
            "writer": self._writer(),
        }

    def _writer(self) -> str:
        """Who writes code for a forge that begins now, in words."""
        try:
            return self.authors.choice("", "", "").told
        except (OrchestratorError, RegistryError) as error:
            return str(error)

    async def forge_again(self, server: str, report: Callable[[Step], None]) -> bool:
        """Forge a server anew from its source; whether that made a new version."""
        entry = self.store.entry(server)
        if self.forge.shelf.bundle(entry).provenance.author != "compiler":
            return False
        order = Order(source=entry.source, name=server)
        forged = await self.forge.forge(order, report)
        return forged.entry.version > entry.version

    async def forge_job(self, job: Job, report: Report) -> Mapping[str, Any]:
        """Carry out a forge job; what its result says."""

        def step(step: Step) -> None:
            report(step.stage, step.progress, step.message)

        forged = await self._forged(job, Order.from_json(job.request), step)
        return {
            "server": forged.entry.name,
            "version": forged.entry.version,
            "state": forged.entry.state,
            "tools": [f"{forged.entry.name}.{tool.name}" for tool in forged.entry.tools][:200],
            "problems": list(forged.left_out)[:50],
            "milliseconds": {key: round(value, 1) for key, value in forged.timings.items()},
        }

    async def _forged(self, job: Job, order: Order, step: Callable[[Step], None]) -> Forged:
        """Compiled from a description, also one that is prose; from somebody's code where there is
        none to be had.
        """
        read = kept(job)
        if read is not None:
            return await self.documentation.finish(job, order, read, step)
        if order.parent or (isinstance(job.result, dict) and not awaits_document(job)):
            return await self.drafting.carry_on(job, order, step)
        claims = claims_in(order.document)
        if claims is not None:
            return await self.documentation.claimed(job, order, claims, step)
        try:
            return await self.forge.forge(order, step, (job.id, job.attempt))
        except SourceMissing:
            return await self.drafting.carry_on(job, order, step)
        except ProseFound as found:
            return await self.documentation.carry_on(job, order, found, step)

    async def do_job(self, job: Job, report: Report) -> Mapping[str, Any]:
        """Carry out a task run. Its graph library is loaded when the first one comes."""
        graph = await asyncio.to_thread(importlib.import_module, "orchestrator.graph")
        result: Mapping[str, Any] = await graph.run_task(self, job, report)
        return result

    async def carry_out_approved(self) -> None:
        """Claim what people approved, and begin to do it.

        While the key of their decisions is in doubt nothing is claimed, and nothing is lost.
        """
        if self.dispatch.clearance.held():
            return
        for approval in self.store.approvals("approved"):
            try:
                claimed = self.store.claim(
                    approval.id, self.process, time.time(), self.dispatch.clearance.forgery
                )
            except Frozen:
                return
            if claimed is not None:
                task = asyncio.create_task(self.dispatch.carry_out(claimed))
                self.carrying_out.add(task)
                task.add_done_callback(self.carrying_out.discard)


@asynccontextmanager
async def open_app(settings: Settings, kind: str, *, patient: bool = False) -> AsyncIterator[App]:
    """Everything, for a process that calls or forges.

    A `patient` process lives long: it works off jobs and approvals by itself, and its jobs wait for
    people. Without an engine it opens all the same, and what needs one says so.
    """
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    process = new_id()
    async with AsyncExitStack() as stack:
        store = stack.enter_context(
            Store.open(settings.database_url, process, settings.recordings_mb << 20)
        )
        vault = open_vault(settings)
        shelf = Shelf(settings.home, store)
        _register(store, process, "starting")
        stack.callback(_unregister, store, process)
        brake = Brake()
        clearance = Clearance(store, authority(settings))
        consents = Consents(store, clearance.key)
        roster = Roster(store, shelf, clearance)
        pulse = Pulse(store, brake, process, roster.forget)
        network = _Network()
        stack.push_async_callback(network.close)
        throttle = Throttle(shared=Pauses(settings.home / "pauses", MAX_PAUSE))
        footnotes = Footnotes(store)
        stack.push_async_callback(footnotes.close)
        outfit = Outfitting(consents, vault, network.upstream, throttle, brake, footnotes)
        engine = await stack.enter_async_context(
            Engine(settings.of_engine, process, brake, structlog.get_logger().info, outfit)
        )
        await asyncio.to_thread(recover, store, shelf, settings.instance)
        ours = settings.of_engine.private
        brokers = Brokers(
            consents, vault, network.upstream, throttle, brake, private=ours, footnotes=footnotes
        )
        sessions = ReadSessions(engine, brokers.reading, settings.idle_seconds)
        stack.push_async_callback(sessions.close)
        ledger = Ledger(store, roster.update)
        stack.push_async_callback(ledger.close)
        dispatch = Dispatch(
            store,
            ledger,
            roster,
            sessions,
            engine,
            brokers,
            clearance,
            brake,
            process,
            settings.approval_seconds,
        )
        forge = Forge(store, consents, vault, shelf, engine, brokers, brake, network.upstream)
        authors = Authors(settings.of_model, store, vault, consents, brake, time.time)
        stack.push_async_callback(authors.close)
        drafting = Drafting(
            store, forge, Briefing(store, shelf), Rounds(store, authors), roster.tool
        )
        app = App(
            settings,
            process,
            store,
            vault,
            brake,
            roster,
            pulse,
            dispatch,
            forge,
            drafting,
            Documentation(store, forge, authors),
            outfit,
            consents,
            authors,
        )
        app.healing = Healing(store, forge, roster.forget, roster.on_trial)
        repairs = Repairs(store, forge, dispatch.call, roster.forget)
        ledger.stored = app.healing.noticed
        app.jobs = Jobs(
            store,
            process,
            {"forge": app.forge_job, "do": app.do_job, "repair": repairs.repair_job},
            person=_person(app) if patient else None,
            met=lambda job: is_met(consents, job) and authors.can_go_on(job),
        )
        stack.push_async_callback(_ended, app.carrying_out)
        stack.push_async_callback(_ended, dispatch.writing)
        stack.push_async_callback(_ended, dispatch.within_writing)
        stack.push_async_callback(app.jobs.close)
        stack.enter_context(pulse.running())
        _register(store, process, kind)
        for chore in _chores(app, shelf, sessions) if patient else ():
            stack.push_async_callback(_stopped, asyncio.create_task(chore))
        yield app


def _chores(app: App, shelf: Shelf, sessions: ReadSessions) -> Iterator[Coroutine[Any, Any, None]]:
    """What a process that lives long does beside answering."""
    keep_reserve(app.settings.reserve)
    yield take_up_work(app.jobs, app.carry_out_approved, app.pulse, app.brake)
    yield take_up_edits(Edits(app.settings.home, app.store, app.forge), app.brake)
    yield watch_descriptions(Drift(app.store, app.forge, app.healing), app.brake)
    yield do_chores(app.store, sessions, Notary(app.settings.heads), app.dispatch.clearance)
    yield sweep_dead(app.store, shelf, app.settings.instance)


def _why(call: Invocation) -> dict[str, str]:
    """What is told of a failed call beside that it failed."""
    cause = cause_of(call)
    return {"cause": cause.text} if cause else {}


async def _ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Let writes end that have begun; what takes too long is cut, its outcome unknown."""
    begun = tuple(tasks)
    if begun:
        _, late = await asyncio.wait(begun, timeout=CLOSE_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)


def _unregister(store: Store, process: str) -> None:
    """Leave: what was begun and not ended is another process's, or nobody's, from now on."""
    now = time.time()
    store.settle_unknown((process,), now)
    store.requeue_orphans((process,), now)
    store.remove_process(process)


def _register(store: Store, process: str, kind: str) -> None:
    now = time.time()
    start = psutil.Process().create_time()
    store.register_process(Process(process, os.getpid(), start, kind, now, now))


class _Network:
    """Connection pools, one per set of private origins that people allowed."""

    def __init__(self) -> None:
        self._pools: dict[frozenset[Origin], LiveHttp] = {}

    def upstream(self, private: frozenset[Origin]) -> Upstream:
        if private not in self._pools:
            self._pools[private] = LiveHttp(private, response_bytes=32 * 1024 * 1024)
        return self._pools[private]

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()


def _person(app: App) -> Callable[[], Any]:
    """Wait until grants, sources or secrets are not what they were."""

    async def done_something() -> None:
        before = _given(app)
        while await asyncio.to_thread(_given, app) == before:
            await app.pulse.changed()

    return done_something


def _given(app: App) -> Any:
    try:
        modified = app.settings.vault.stat().st_mtime_ns
    except FileNotFoundError:
        modified = 0
    return app.consents.grants(), app.consents.sources(), modified


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
