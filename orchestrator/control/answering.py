"""A task run's question as a form of the page, and what was typed into it as the run's answer.

The run itself checks again that an answer fits its tool, and asks anew where it does not.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from orchestrator.control.arguments import fill_field, list_arguments, read_fields
from orchestrator.control.asking import MAY_BE_SENT, read_asking
from orchestrator.control.clicks import SuggestedService, name_clicks, split_services
from orchestrator.control.middleware import read_body
from orchestrator.control.rooms.fields import FormField, build_field
from orchestrator.control.texts import ShownText, cut_text
from orchestrator.control.values import ShownData, show_data
from orchestrator.errors import FormInvalid, OrchestratorError
from orchestrator.job_requests import check_address
from orchestrator.results.references import has_references
from registry.errors import RowNotFound
from registry.jobs.jobs import awaits_answer
from registry.models import Job
from registry.needs import AnswerNeed
from registry.store import Store
from sandbox.schemas.coercion import coerce_arguments, nest_values
from sandbox.schemas.validator import get_checker

MAX_QUESTION = 2_000
MAX_CHOICES = 20


@dataclass(frozen=True)
class Confirmation:
    """A call that a person is to say yes or no to; `told` is what follows. `arguments` is None
    where it takes none.
    """

    kind: ClassVar[str] = "confirm"
    tool: ShownText
    told: str
    arguments: ShownData | None
    reasons: tuple[ShownText, ...]


@dataclass(frozen=True)
class ToolOption:
    """A tool: `name` is what is sent and stands in an attribute alone."""

    name: str
    label: ShownText
    about: ShownText


@dataclass(frozen=True)
class ToolChoice:
    """Tools of which a person is to choose one."""

    kind: ClassVar[str] = "choose"
    text: tuple[ShownText, ...]
    candidates: tuple[ToolOption, ...]


@dataclass(frozen=True)
class PlannedStep:
    """A step; `tool` and what it comes `after` may be ""."""

    task: ShownText
    tool: ShownText
    after: ShownText


@dataclass(frozen=True)
class ShownPlan:
    kind: ClassVar[str] = "plan"
    steps: tuple[PlannedStep, ...]


@dataclass(frozen=True)
class ArgumentForm:
    """Fields for the arguments that are missing beside those that are known, or for a source, with
    services that may be meant.
    """

    kind: ClassVar[str] = "arguments"
    text: tuple[ShownText, ...]
    known: tuple[tuple[ShownText, ShownText], ...] = ()
    fields: tuple[FormField, ...] = ()
    wants_source: bool = False
    services: tuple[SuggestedService, ...] = ()


AskedForm = Confirmation | ToolChoice | ShownPlan | ArgumentForm


@dataclass(frozen=True)
class ShownQuestion:
    """What a task run asks, as a form: its id on the page, the job, and the question that the
    answer names.
    """

    id: str
    job: str
    question: str
    asked: AskedForm


@dataclass(frozen=True)
class AnswerDesk:
    """The endpoints that answer a run and end one. `ensure_worker` has queued jobs carried on."""

    store: Store
    ensure_worker: Callable[[], None]

    async def answer_run(self, request: Request) -> Response:
        """Answer what a task run asks: `question` as it was shown, and `confirm` (`yes` or `no`),
        `tool`, `accept`, `source`, or `fields`, texts by argument.
        """
        identity, body = request.path_params["id"], await read_body(request)
        told = await asyncio.to_thread(self._answer, identity, body)
        return JSONResponse({"job": identity, "told": told})

    def _answer(self, identity: str, body: Mapping[str, Any]) -> str:
        job = self.store.jobs.get(identity)
        need = job.needs
        if not (awaits_answer(job) and isinstance(need, AnswerNeed)):
            raise OrchestratorError(f"this task asks nothing: it is {job.state}.")
        answer = read_answer(job, need, body)
        check_address(answer.get("source", ""))
        problem = get_checker(need.schema).find_problem(answer)
        if problem is not None:
            raise OrchestratorError(f"{problem.where.strip('/') or 'answer'}: {problem.reason}")
        self.store.jobs.answer(identity, need.question, answer, "page", time.time())
        self.ensure_worker()
        return "Answered. The task goes on."

    async def cancel_job(self, request: Request) -> Response:
        """End a job that has not ended. Needs no PIN: it only stops something."""
        identity = request.path_params["id"]
        ended = await asyncio.to_thread(self.store.jobs.cancel, identity, "page", time.time())
        told = "It is cancelled." if ended else "It had ended before."
        return JSONResponse({"job": identity, "told": told})


def read_answer(job: Job, need: AnswerNeed, body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer that a form stands for. Raises OrchestratorError for what is none."""
    question = _get_question(job)
    answer: dict[str, Any] = {"question": str(body.get("question") or "")[:200]}
    if answer["question"] != need.question:
        raise OrchestratorError("it asks something else by now; look at it again.")
    kind = question.get("kind")
    if kind == "confirm":
        if body.get("confirm") not in ("yes", "no"):
            raise OrchestratorError("say yes or no.")
        return {**answer, "confirm": body["confirm"] == "yes"}
    if kind == "choose":
        return {**answer, "tool": str(body.get("tool") or "")}
    if kind == "plan":
        return {**answer, "accept": True}
    if "source" in need.schema["properties"]:
        return {**answer, "source": str(body.get("source") or "").strip()}
    return {**answer, "arguments": _read_arguments(question, body.get("fields") or {})}


def _read_arguments(question: Mapping[str, Any], fields: Any) -> dict[str, Any]:
    """The arguments of dotted names, nested as their tool takes them."""
    if not isinstance(fields, Mapping):
        raise OrchestratorError("the arguments are an object of texts.")
    shown = question["shown"]
    values, problems = read_fields(_build_schema(shown), fields)
    if problems:
        raise FormInvalid({each.where: each.reason for each in problems})
    arguments = nest_values(values)
    if has_references(arguments):
        raise OrchestratorError("type the value itself and no reference to an earlier result.")
    return dict(coerce_arguments(shown.get("inputSchema") or {}, arguments).arguments)


def _build_schema(shown: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of the fields that a question shows: what is missing, else what is known."""
    missing = shown.get("missing") or {}
    properties = dict(missing) or {name: {} for name in shown.get("known") or ()}
    return {"properties": properties, "required": list(missing)}


def _get_question(job: Job) -> Mapping[str, Any]:
    question = job.result.get("question") if isinstance(job.result, Mapping) else None
    return question if isinstance(question, Mapping) else {}


def show_question(job: Job, where: str = "ask", store: Store | None = None) -> ShownQuestion | None:
    """What a run asks; None where it asks nothing. `where` makes the form's id one of its own on
    the page; the `store` says whether a write may be sent at once.
    """
    question = _get_question(job)
    if not isinstance(job.needs, AnswerNeed) or not question:
        return None
    identity = f"{where}-{job.id}", job.id, job.needs.question
    if question.get("kind") == "confirm":
        return ShownQuestion(*identity, _show_confirmation(question, store))
    show = _KINDS.get(str(question.get("kind")), _show_arguments)
    return ShownQuestion(*identity, show(question))


def _show_confirmation(question: Mapping[str, Any], store: Store | None) -> Confirmation:
    shown = question["shown"]
    given = shown.get("arguments") or {}
    return Confirmation(
        cut_text(str(shown.get("tool"))),
        "It reads." if shown.get("access") == "read" else _explain_write(str(shown["tool"]), store),
        show_data(given) if given else None,
        tuple(cut_text(str(each)) for each in shown.get("why") or ()),
    )


def _explain_write(name: str, store: Store | None) -> str:
    """What a yes to a write does. Whether a rule allows it is judged when it is called."""
    server, _, tool = name.partition(".")
    try:
        found = store.servers.get(server).get_tool(tool) if store else None
    except (RowNotFound, KeyError):
        found = None
    if store and found and read_asking(store, server, found, time.time()).may_be_sent_at_once:
        return MAY_BE_SENT
    return "It writes: the exact request comes to Approvals first."


def _show_choice(question: Mapping[str, Any]) -> ToolChoice:
    lines, services = _split_text(question)
    found = question["shown"].get("candidates") or ()
    candidates = [each for each in found if isinstance(each, Mapping)]
    return ToolChoice(
        (*lines, *(each.title for each in services)),
        tuple(
            ToolOption(name, cut_text(name), cut_text(str(each.get("description", ""))))
            for each in candidates[:MAX_CHOICES]
            for name in (str(each.get("tool")),)
        ),
    )


def _show_plan(question: Mapping[str, Any]) -> ShownPlan:
    steps = [each for each in question["shown"].get("steps") or () if isinstance(each, Mapping)]
    numbers = {str(step.get("id")): f"step {number}" for number, step in enumerate(steps, 1)}
    return ShownPlan(
        tuple(
            PlannedStep(
                cut_text(str(step.get("task", ""))),
                cut_text(str(step["tool"]) if step.get("tool") else ""),
                cut_text(
                    ", ".join(numbers.get(each, each) for each in map(str, step.get("after") or ()))
                ),
            )
            for step in steps[:MAX_CHOICES]
        )
    )


def _show_arguments(question: Mapping[str, Any]) -> ArgumentForm:
    shown = question.get("shown") or {}
    lines, services = _split_text(question)
    if "source" in question["schema"]["properties"]:
        return ArgumentForm(lines, wants_source=True, services=services)
    known = (shown.get("known") or {}) if shown.get("missing") else {}
    earlier = shown.get("earlier") or {}
    return ArgumentForm(
        lines,
        tuple(
            (cut_text(str(name)[:80]), cut_text(json.dumps(value, ensure_ascii=False)))
            for name, value in known.items()
        ),
        tuple(
            build_field(fill_field(each, earlier[each.name]) if each.name in earlier else each)
            for each in list_arguments(_build_schema(shown))
        ),
    )


def _split_text(
    question: Mapping[str, Any],
) -> tuple[tuple[ShownText, ...], tuple[SuggestedService, ...]]:
    """The lines of a question, and the services that it suggests."""
    lines, services = split_services(str(question.get("text", ""))[:MAX_QUESTION].split("\n"))
    return tuple(cut_text(name_clicks(line), MAX_QUESTION) for line in lines), services


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], AskedForm]] = {
    "choose": _show_choice,
    "plan": _show_plan,
}
