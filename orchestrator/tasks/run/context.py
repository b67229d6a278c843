"""The context that the nodes of one run share: its job, the parts of the process, its questions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forge.authors.interface import Author
from orchestrator.errors import RunWaits
from orchestrator.forging.order import ForgeStep, Report
from orchestrator.tasks.model import Question
from orchestrator.tasks.parts import TaskParts
from orchestrator.tasks.run.outcome import list_progress
from orchestrator.tasks.run.questions import build_need, encode_question, name_question
from orchestrator.tasks.run.state import MAX_TOKENS, RunState
from orchestrator.tasks.run.taking import Taken, take_kept
from registry.models import Job
from registry.store import Store
from sandbox.bundle.model import ToolDefinition


@dataclass(frozen=True)
class RunContext:
    """`quiet`: the run asks nobody and makes no server; what would ask ends it."""

    parts: TaskParts
    job: Job
    report: Report
    quiet: bool = False

    @property
    def store(self) -> Store:
        return self.parts.suggestions.store

    def tell(self, node: str, progress: float, message: str) -> None:
        """Record that a node begins; another process may have taken the job (JobLost)."""
        self.report(ForgeStep(node, progress, message))

    def ask(self, question: Question, state: RunState) -> Mapping[str, Any]:
        """The answer to a question, kept with the job. Raises RunWaits where there is none yet."""
        answers = self.job.request.get("answers")
        name = name_question(question, self.job.id)
        if isinstance(answers, Mapping) and isinstance(answers.get(name), Mapping):
            given: Mapping[str, Any] = answers[name]
            return given
        need = build_need(question, self.job.id)
        told = encode_question(question, self.job.id)
        result = {
            "state": "asking",
            "run": self.job.id,
            **told,
            "strategy": state.get("strategy", ""),
            "steps": list_progress(state),
        }
        raise RunWaits(need, need.text, result)

    def get_tool(self, name: str) -> ToolDefinition:
        """The tool of a `server.tool`, as it counts now. Raises UnknownTool, BundleInvalid."""
        server, _, tool = name.partition(".")
        return self.parts.roster.find_tool(server, tool)

    async def take_arguments(
        self, state: RunState, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Taken]:
        """Arguments that whoever asked gave, with the values of the session's results that they
        refer to. Never for what a model or an API wrote. Raises ReferenceRefused.
        """
        if not arguments:
            return {}, {}
        session = state.get("session", "")
        return await asyncio.to_thread(take_kept, self.parts.results, session, arguments)

    async def open_author(self, server: str = "") -> Author | None:
        """The configured endpoint, while this run may ask it more; None where there is none. A
        quiet run asks no model either: nobody ordered more than the server.
        """
        if self.quiet:
            return None
        spent = self.store.model_usage.sum_for_job(self.job.id)
        if spent.tokens >= MAX_TOKENS:
            return None
        return await self.parts.authors.open_endpoint(self.job.id, server)
