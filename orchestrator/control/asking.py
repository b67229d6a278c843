"""Questions of task runs on the control page: shown as forms, answered by `toolwright do`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from orchestrator.control.commands import run_command
from orchestrator.control.markup import MAX_VALUE, escape_text
from orchestrator.control.middleware import read_body
from orchestrator.settings import Settings
from orchestrator.typed_answers import list_wanted, read_typed_answer
from registry.jobs.jobs import awaits_answer
from registry.models import Job
from registry.store import Store
from sandbox.wire.content import join_texts

SECONDS = 300.0
MAX_RUNNING = 4
"""Answers at a time: each is a process."""
MAX_FIELDS = 50
LINE_LETTERS = 400


@dataclass
class RunAnswers:
    """The endpoint that answers what a run asks, and goes on with it."""

    settings: Settings
    store: Store
    running: int = 0

    async def answer_run(self, request: Request) -> Response:
        """Answer the question that was shown: `question`, with `confirm`, `tool`, `source` or
        `fields`, texts by argument. Answers with `told` and the `text` that the run came to.
        """
        body = await read_body(request)
        job = await asyncio.to_thread(self.store.jobs.get, request.path_params["id"])
        question = find_question(job)
        if question is None or body.get("question") != question["id"]:
            return JSONResponse({"error": "this question is no longer asked; look again"}, 409)
        typed = _list_texts({**body, **_list_texts(body.get("fields"))})
        answer = read_typed_answer(question, typed)
        if self.running >= MAX_RUNNING:
            return JSONResponse({"error": "too many runs go on from this page; wait"}, 429)
        self.running += 1
        try:
            said = await asyncio.to_thread(self._run, job.id, answer)
        finally:
            self.running -= 1
        return JSONResponse(describe_end(said))

    def _run(self, run: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        command = partial(run_command, self.settings, "do", "--run", run, "--answer", "-", "--json")
        return command(seconds=SECONDS, told=json.dumps(answer))


def find_question(job: Job) -> Mapping[str, Any] | None:
    """What a run asks; None where it asks nothing."""
    result = job.result if isinstance(job.result, Mapping) else {}
    question = result.get("question")
    return question if awaits_answer(job) and isinstance(question, Mapping) else None


def describe_end(said: Mapping[str, Any]) -> dict[str, Any]:
    """What `toolwright do --json` printed, for the page."""
    if "content" in said:
        failed = bool(said.get("isError"))
        told = "It failed." if failed else "Done."
        return {"told": told, "failed": failed, "text": join_texts(said["content"])[:MAX_VALUE]}
    if said.get("state") == "waiting":
        return {"told": str(said.get("message") or "It asks something else.")}
    return {"error": str(said.get("error") or "it ended without an answer")}


def render_question(job: Job) -> str:
    """The forms that answer what a run asks, "" where it asks nothing."""
    question = find_question(job)
    if question is None:
        return ""
    shown, kind = question["shown"], question["kind"]
    form = partial(_render_form, job.id, str(question["id"]))
    if kind == "confirm":
        told = [f"{shown['tool']} ({shown['access']})", *_list_values(shown["arguments"])]
        yes = form(_hide("confirm", "yes"), "Yes, make this call")
        no = form(_hide("confirm", "no"), "No")
        return _render_lines([*told, *shown["why"]]) + yes + no
    if kind == "choose":
        lines = [f"{each['tool']}: {each['description']}" for each in shown["candidates"]]
        options = [(str(each["tool"]), str(each["tool"])) for each in shown["candidates"]]
        chosen = _render_select("tool", [*options, ("none", "none of them")])
        return _render_lines(["Which tool does this?", *lines]) + form(chosen, "Take it")
    if kind == "plan":
        lines = [f"{each['id']}: {each['task']}" for each in shown["steps"]]
        return _render_lines(lines) + form("", "Do them in this order")
    text = f"<p>{escape_text(question['text'], LINE_LETTERS)}</p>"
    if "source" in question["schema"]["properties"]:
        return text + form(_render_input("Source", 'name="source"'), "Go on")
    fields = "".join(
        _render_input(name, f'data-field="{escape(name)}"')
        for name in list_wanted(shown)[:MAX_FIELDS]
    )
    return text + _render_lines(_list_values(shown["known"])) + form(fields, "Go on")


def _list_texts(given: Any) -> dict[str, str]:
    entries = given.items() if isinstance(given, Mapping) else ()
    return {str(name): text for name, text in entries if isinstance(text, str)}


def _list_values(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {json.dumps(each, ensure_ascii=False)}" for name, each in arguments.items()]


def _render_lines(lines: list[str]) -> str:
    shown = "".join(f"<li>{escape_text(line, LINE_LETTERS)}</li>" for line in lines[:MAX_FIELDS])
    return f"<ul>{shown}</ul>" if shown else ""


def _render_form(run: str, question: str, fields: str, word: str) -> str:
    return (
        f'<form class="fields" data-post="/jobs/{escape(run)}/answer" autocomplete="off">'
        f'{_hide("question", question)}{fields}<div class="actions">'
        f'<button class="primary">{escape(word)}</button></div><output></output></form>'
    )


def _hide(name: str, value: str) -> str:
    return f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'


def _render_select(name: str, options: list[tuple[str, str]]) -> str:
    listed = "".join(f'<option value="{escape(v)}">{escape_text(t)}</option>' for v, t in options)
    return f'<label><span>Tool</span><select name="{escape(name)}">{listed}</select></label>'


def _render_input(label: str, attributes: str) -> str:
    return f"<label><span>{escape_text(label, 80)}</span><input {attributes} required></label>"
