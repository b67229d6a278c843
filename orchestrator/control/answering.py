"""What a task run asks, as a form of the page, and what was typed into it as the run's answer.

The run itself checks again that an answer fits its tool, and asks anew where it does not.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from orchestrator.control.arguments import fill_field, list_arguments, read_fields
from orchestrator.control.markup import escape_text, render_facts
from orchestrator.control.middleware import read_body
from orchestrator.control.rooms.fields import render_field
from orchestrator.control.values import render_data
from orchestrator.errors import OrchestratorError
from orchestrator.results.references import has_references
from registry.jobs.jobs import awaits_answer
from registry.models import Job
from registry.needs import AnswerNeed
from registry.store import Store
from sandbox.schemas.coercion import coerce_arguments, nest_values
from sandbox.schemas.validator import get_checker

NONE = "none"
MAX_QUESTION = 2_000
MAX_CHOICES = 20


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
        raise OrchestratorError("; ".join(f"{each.where[:80]}: {each.reason}" for each in problems))
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


def render_question(job: Job, where: str = "ask") -> str:
    """The form that answers what a run asks. `where` makes its id one of its own on the page."""
    question = _get_question(job)
    if not isinstance(job.needs, AnswerNeed) or not question:
        return ""
    kind = str(question.get("kind"))
    render = _KINDS.get(kind, _render_arguments)
    name = f"{where}-{job.id}"
    return (
        f'<form class="fields question" id="{escape(name)}" data-post="/jobs/{escape(job.id)}/'
        f'answer" autocomplete="off">'
        f'<input type="hidden" name="question" value="{escape(job.needs.question)}">'
        f"{render(question, name)}<output></output></form>"
    )


def _render_confirmation(question: Mapping[str, Any], _: str) -> str:
    shown = question["shown"]
    reads = shown.get("access") == "read"
    does = "It reads." if reads else "It writes: the exact request comes to Approvals first."
    reasons = "".join(f"<p>{escape_text(str(each))}</p>" for each in shown.get("why") or ())
    given = shown.get("arguments") or {}
    return (
        f"<p><strong>Call <code>{escape_text(str(shown.get('tool')))}</code>?</strong> {does}</p>"
        f"{render_data(given) if given else '<p>It is called without arguments.</p>'}{reasons}"
        '<div class="actions"><button class="primary" name="confirm" value="yes">Yes, call it'
        '</button><button class="quiet" name="confirm" value="no">No</button></div>'
    )


def _render_choice(question: Mapping[str, Any], name: str) -> str:
    shown = question["shown"]
    candidates = [each for each in shown.get("candidates") or () if isinstance(each, Mapping)]
    options = [
        (str(each.get("tool")), str(each.get("description", "")))
        for each in candidates[:MAX_CHOICES]
    ]
    lines = "".join(
        f'<label class="choice"><input type="radio" name="tool" value="{escape(tool)}" required '
        f'id="{escape(name)}-{number}"> '
        f"<span><code>{escape_text(tool)}</code> <small>{escape_text(about)}</small></span></label>"
        for number, (tool, about) in enumerate(options)
    )
    none = (
        f'<label class="choice"><input type="radio" name="tool" value="{NONE}" required '
        f'id="{escape(name)}-none"> <span>None of them: have a server made</span></label>'
    )
    return (
        f"{_render_text(question)}<fieldset><legend>Your choice</legend>{lines}{none}</fieldset>"
        '<div class="actions"><button class="primary">Answer</button></div>'
    )


def _render_plan(question: Mapping[str, Any], _: str) -> str:
    steps = [each for each in question["shown"].get("steps") or () if isinstance(each, Mapping)]
    lines = "".join(
        f"<li>{escape_text(str(step.get('task', '')))}{_name_tool(step)}{_name_earlier(step)}</li>"
        for step in steps[:MAX_CHOICES]
    )
    return (
        f"<p><strong>The task has several steps:</strong></p><ol>{lines}</ol>"
        '<div class="actions"><button class="primary" name="accept" value="yes">'
        "Do them in this order</button></div>"
    )


def _name_tool(step: Mapping[str, Any]) -> str:
    return f" <code>{escape_text(str(step['tool']))}</code>" if step.get("tool") else ""


def _name_earlier(step: Mapping[str, Any]) -> str:
    after = ", ".join(map(str, step.get("after") or ()))
    return f" <small>after {escape_text(after)}</small>" if after else ""


def _render_arguments(question: Mapping[str, Any], _: str) -> str:
    shown = question.get("shown") or {}
    send = '<div class="actions"><button class="primary">Answer</button></div>'
    if "source" in question["schema"]["properties"]:
        return (
            f"{_render_text(question)}<label><span>Source</span>"
            '<input name="source" required maxlength="2000" placeholder="https://host/openapi.json">'
            f"</label>{send}"
        )
    known = render_facts(
        (str(name)[:80], escape_text(json.dumps(value, ensure_ascii=False)))
        for name, value in (shown.get("known") or {}).items()
    )
    earlier = shown.get("earlier") or {}
    fields = "".join(
        render_field(fill_field(each, earlier[each.name]) if each.name in earlier else each)
        for each in list_arguments(_build_schema(shown))
    )
    told = known if shown.get("missing") else ""
    return f"{_render_text(question)}{told}{fields}{send}"


def _render_text(question: Mapping[str, Any]) -> str:
    lines = str(question.get("text", ""))[:MAX_QUESTION].split("\n")
    return "".join(f"<p>{escape_text(line, MAX_QUESTION)}</p>" for line in lines)


_KINDS: Mapping[str, Callable[[Mapping[str, Any], str], str]] = {
    "confirm": _render_confirmation,
    "choose": _render_choice,
    "plan": _render_plan,
}
