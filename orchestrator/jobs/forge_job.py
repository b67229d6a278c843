"""Forge jobs: from a machine-readable description, documentation, or submitted code."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forge.drafts.named import find_missing_tools
from orchestrator.errors import DraftWanted, EngineWanted, ProseFound, SourceMissing
from orchestrator.forging.documentation import Documentation, load_derived, parse_claims
from orchestrator.forging.drafts.drafting import DraftJobRunner
from orchestrator.forging.forge import Forge
from orchestrator.forging.order import NO_SOURCE, ForgeOrder, ForgeResult, Report
from registry.jobs.pending import read_pending
from registry.models import Job
from sandbox.errors import NO_ENGINE
from sandbox.wire.policy import COMPILER


@dataclass(frozen=True)
class ForgeJobRunner:
    """Finds out what a job can be made from, and has that made."""

    forge: Forge
    drafting: DraftJobRunner
    documentation: Documentation

    async def run_forge_job(self, job: Job, report: Report) -> Mapping[str, Any]:
        """Carry out a forge job, or a task run that forges; what a forge job's result says.

        Raises DraftWanted, EngineWanted, ForgeWaits where somebody has to do something first, and
        what `Forge.forge_server` raises.
        """
        order = ForgeOrder.from_request(job.request)
        try:
            forged = await self._forge_server(job, order, report)
            missing = find_missing_tools(order.task, {tool.name for tool in forged.bundle.tools})
            # A task run goes on to its task by itself, with what there is.
            own = job.kind == "forge" and not order.parent and order.author != "none"
            if missing and own and _is_compiled(forged):
                forged = await self._add_missing(job, order, forged, missing, report)
        except NO_ENGINE as error:
            raise EngineWanted(error) from error
        return {
            "server": forged.entry.name,
            "version": forged.entry.version,
            "state": forged.entry.state,
            "tools": [f"{forged.entry.name}.{tool.name}" for tool in forged.entry.tools][:200],
            "tool_count": len(forged.entry.tools),
            "problems": list(forged.left_out)[:50],
            "credentials": [each.to_json() for each in forged.wanted],
            "learned": list(map(str, forged.bundle.widened))[:50],
            "milliseconds": {key: round(value, 1) for key, value in forged.timings.items()},
            **({"unchanged": True} if forged.is_unchanged else {}),
        }

    async def _add_missing(
        self,
        job: Job,
        order: ForgeOrder,
        forged: ForgeResult,
        missing: Sequence[str],
        report: Report,
    ) -> ForgeResult:
        """The next version of a compiled server, with the tools that its task names and that are no
        operation of its API. Raises DraftWanted that says which.
        """
        name = forged.entry.name
        more = {"parent": name, "name": name, "source": NO_SOURCE, "document": ""}
        request, jobs = {**job.request, **more}, self.documentation.jobs
        jobs.keep_request(job.id, job.attempt, request, time.time())
        jobs.keep_result(job.id, job.attempt, None, time.time())
        going_on = replace(job, request=request, result=None)
        try:
            return await self.drafting.forge_draft(going_on, ForgeOrder.from_json(request), report)
        except DraftWanted as wanted:
            told = (
                f"{name} is registered with {len(forged.bundle.tools)} tools of its API; the task "
                f"names {', '.join(missing)} too, which no operation is. {wanted}"
            )
            raise DraftWanted(wanted.pending, told, wanted.needs) from wanted

    async def _forge_server(self, job: Job, order: ForgeOrder, report: Report) -> ForgeResult:
        """Compiled from a description, also one that is prose; from somebody's code where there is
        none to be had.
        """
        read = load_derived(job)
        if read is not None:
            return await self.documentation.forge_derived(job, order, read, report)
        begun = read_pending(job.result)
        drafted = self.drafting.has_drafts(job)
        if order.parent or drafted or (begun is not None and begun.waits_for != "document"):
            return await self.drafting.forge_draft(job, order, report)
        claims = parse_claims(order.document)
        if claims is not None:
            return await self.documentation.forge_claims(job, order, claims, report)
        try:
            return await self.forge.forge_server(order, report, (job.id, job.attempt))
        except SourceMissing:
            return await self.drafting.forge_draft(job, order, report)
        except ProseFound as found:
            return await self.documentation.read_and_forge(job, order, found, report)


def _is_compiled(forged: ForgeResult) -> bool:
    return forged.bundle.provenance.author == COMPILER
