"""Answers to what task runs ask: checked against the question, and kept with the job, once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.calls import split_tool_name
from orchestrator.errors import LoginInAddress, UnknownTool
from orchestrator.gateway.catalog import Catalog
from orchestrator.results.keeper import ResultKeeper
from orchestrator.results.references import has_references
from orchestrator.tasks.model import Plan
from orchestrator.tasks.planning.parse import parse_plan
from orchestrator.tasks.run.flow import holds_reference, merge_arguments
from registry.database.canonical import to_compact_json
from registry.errors import AnswerRefused
from registry.models import Job
from registry.needs import AnswerNeed
from registry.store import Store
from sandbox.bundle.model import ToolDefinition
from sandbox.errors import BundleInvalid
from sandbox.plain_secrets import has_login
from sandbox.schemas.validator import SchemaViolation, get_checker
from sandbox.wire.framing import measure_depth

MAX_ANSWER = 64_000
MAX_DEPTH = 40


@dataclass(frozen=True)
class Answering:
    """Takes answers to the runs that wait for them."""

    store: Store
    roster: Catalog
    results: ResultKeeper

    def take_answer(
        self, run: str, answer: Mapping[str, Any], by: str, session: str = ""
    ) -> Job | tuple[SchemaViolation, ...]:
        """The run, queued again with the answer, or what is wrong with that: the question stays.
        Raises AnswerRefused where the run asks nothing, or asked something else; RowNotFound.
        """
        job = self.store.jobs.get(run)
        need = job.needs
        if job.state != "waiting" or not isinstance(need, AnswerNeed):
            raise AnswerRefused(run, f"it asks nothing, it is {job.state}")
        begun_in = str(job.request.get("session", ""))
        if session and begun_in and session != begun_in:
            raise AnswerRefused(run, "it was begun in another session")
        if measure_depth(dict(answer), MAX_DEPTH) > MAX_DEPTH:
            return (SchemaViolation("/answer", f"is nested deeper than {MAX_DEPTH}"),)
        if len(to_compact_json(dict(answer))) > MAX_ANSWER:
            return (SchemaViolation("/answer", f"is longer than {MAX_ANSWER} characters"),)
        named = answer.get("question", need.question)
        if named != need.question:
            raise AnswerRefused(run, f"it asks {need.question} and not {str(named)[:100]}")
        problem = get_checker(need.schema).find_problem(dict(answer))
        if problem is not None:
            return (SchemaViolation(f"/answer{problem.where}", problem.reason),)
        problems = tuple(self._iterate_problems(job, answer))
        if problems:
            return problems
        return self.store.jobs.answer(run, need.question, answer, by, time.time())

    def _iterate_problems(self, job: Job, answer: Mapping[str, Any]) -> Iterator[SchemaViolation]:
        """What is wrong with an answer that its question's schema cannot say."""
        result = job.result if isinstance(job.result, Mapping) else {}
        question = result.get("question") or {}
        shown = question.get("shown") or {}
        session = str(job.request.get("session", ""))
        if has_login(str(answer.get("source") or "")):
            yield SchemaViolation("/answer/source", str(LoginInAddress("source")))
        if "steps" in answer:
            yield from self._check_plan(answer, session)
        arguments = answer.get("arguments")
        tool = answer.get("tool") or shown.get("tool")
        if arguments is None or not tool or tool == "none":
            return
        if "confirm" in answer and has_references(arguments):
            told = "has a reference to a kept result: what is confirmed has to be seen"
            yield SchemaViolation("/answer/arguments", told)
            return
        found = self.results.look_up(session, arguments)
        for problem in found.problems:
            yield SchemaViolation(f"/answer/arguments{problem.where}", problem.reason)
        if found.problems:
            return
        arguments, known = found.arguments, shown.get("known") or {}
        yield from self._check_arguments(
            "/answer/arguments", tool, merge_arguments(known, arguments)
        )

    def _check_plan(self, answer: Mapping[str, Any], session: str) -> Iterator[SchemaViolation]:
        steps = []
        for number, step in enumerate(answer["steps"]):
            found = self.results.look_up(session, step.get("arguments") or {})
            for wrong in found.problems:
                where = f"/answer/steps/{number}/arguments{wrong.where}"
                yield SchemaViolation(where, wrong.reason)
            steps.append({**step, "arguments": {} if found.problems else found.arguments})
        plan = parse_plan({"steps": steps})
        if not isinstance(plan, Plan):
            for problem in plan:
                told = f"{problem.code} {problem.name}".strip().replace("_", " ")
                yield SchemaViolation(f"/answer{problem.where}", told)
            return
        for number, step in enumerate(steps):
            where, tool = f"/answer/steps/{number}", step.get("tool")
            if tool and self._find_tool(tool) is None:
                yield SchemaViolation(f"{where}/tool", f"there is no tool {tool!r}")
            elif tool and step.get("arguments") and not holds_reference(step["arguments"]):
                yield from self._check_arguments(f"{where}/arguments", tool, step["arguments"])

    def _check_arguments(
        self, where: str, name: str, arguments: Mapping[str, Any]
    ) -> Iterator[SchemaViolation]:
        tool = self._find_tool(name)
        if tool is None:
            yield SchemaViolation(where, f"there is no tool {name!r}")
            return
        problem = get_checker(tool.input_schema).find_problem(dict(arguments))
        if problem is not None:
            yield SchemaViolation(f"{where}{problem.where}", problem.reason)

    def _find_tool(self, name: str) -> ToolDefinition | None:
        parts = split_tool_name(name)
        try:
            return self.roster.find_tool(*parts) if parts else None
        except (UnknownTool, BundleInvalid):
            return None
