"""Task runs on the control page: how they were done, what they came to, and doing one again."""

from __future__ import annotations

import json
import os
import shlex
import time
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from orchestrator.control.answering import show_question
from orchestrator.control.asking import MAY_BE_SENT, SEND_OR_ASK
from orchestrator.control.console import render_replay
from orchestrator.control.page import render_panels
from orchestrator.control.rendering import ENVIRONMENT
from orchestrator.control.rooms.place import Place
from orchestrator.control.runs import CANCELLED, MAX_RUNS, NOT_DONE, THE_REST, UNANSWERED
from orchestrator.processes.liveness import read_start_time
from orchestrator.tasks.run.questions import (
    build_missing,
    build_need,
    build_source,
    encode_question,
    suggest_values,
)
from registry.jobs.model_usage import ModelCall
from registry.models import Job, Process
from registry.needs import AnswerNeed, HostNeed
from registry.store import Store
from tests.orchestrator.control.filled import CONFIRMATION, PLAN, ask_question, fill_store
from tests.orchestrator.plane import Plane
from tests.registry.samples import REPORTS, entry, tool

MARKUP = '<img src=x onerror=alert(1)>\u202e"'
STEP = {
    "id": "s1",
    "task": "list zones",
    "tool": "dns.list_zones",
    "arguments": {"page": 1},
    "call": "c1",
    "state": "done",
    "milliseconds": 12.4,
}
CALLED: dict[str, Any] = {
    "state": "called",
    **{"call": "c1", "trust": "", "rule": "", "cause": "", "failure": None},
    "result": {"content": [{"type": "text", "text": "two zones"}]},
    "steps": [STEP],
}


def run(id: str = "j1", result: Any = CALLED, **more: Any) -> Job:
    request = {"task": "list the zones", "files": "typed", "session": "s"}
    given = {"created": 100.0, "updated": 102.5, "state": "done", "result": result}
    return Job(id, "do", request, **{**given, **more})


def shown(store: Store, *jobs: Job) -> str:
    for job in jobs:
        store.jobs.create(replace(job, state="queued", result=None))
        if job.state != "queued":
            claimed = store.jobs.claim(job.id, "w", job.created)
            assert claimed is not None
            args = (job.id, claimed.attempt, job.state, job.result, job.updated, job.message)
            store.jobs.finish(*args)  # type: ignore[arg-type]
    return render_panels(store, Place("ask"))["runs"]


def test_a_run_shows_its_task_calls_time_cost_and_answer(store: Store) -> None:
    call = ModelCall("j1", "dns", "plan", "openai", "p", "d", 101.0, 1, 1, cost=0.25)
    store.model_usage.begin_call(call, 0.0, lambda own, others: None)
    html = shown(store, run())
    for told in (
        "list the zones",
        "2.5 s, cost 0.2500",
        'href="/rooms/servers/dns?tool=list_zones"',
        "page: 1",
        ", 12 ms",
        'href="/rooms/calls/c1"',
        "<p>two zones</p>",
        'data-post="/jobs/j1/again"',
    ):
        assert told in html


def test_a_run_that_ended_says_how_it_is_done_at_the_terminal(store: Store) -> None:
    hostile = {**STEP, "arguments": {"name": "'; rm -rf ~ #\u202e"}}
    html = shown(store, run(), run("j2", {**CALLED, "steps": [hostile]}))
    assert html.count("Show me how") == 2
    assert "toolwright call dns.list_zones &#39;{&#34;page&#34;: 1}&#39;" in html
    texts = [each.partition("</pre>")[0] for each in html.split("<pre>")[1:]]
    (command,) = (unescape(each) for each in texts if "toolwright" in each and "rm -rf" in each)
    words = shlex.split(command)
    assert words[:3] == ["toolwright", "call", "dns.list_zones"]
    assert json.loads(words[3]) == hostile["arguments"]
    assert "\u202e" not in html


def test_a_run_that_waits_for_a_person_has_the_button_that_lets_it_go_on(store: Store) -> None:
    store.jobs.create(Job("j3", "do", {"task": "list lifts"}, created=1.0, updated=1.0))
    claimed = store.jobs.claim("j3", "w", 1.0)
    assert claimed is not None
    need = HostNeed("127.0.0.1:80")
    store.drafts.park_job("j3", claimed.attempt, {}, 2.0, "waits for a host", need)
    html = render_panels(store, Place("ask"))["runs"]
    assert "127.0.0.1:80" in html
    assert 'data-post="/jobs/j3/allow"' in html
    assert "Show me how" not in html


def test_a_run_that_has_not_ended_cannot_be_done_again(store: Store) -> None:
    html = shown(store, run(state="queued", result=None))
    assert "queued" in html
    assert "again" not in html


def test_strangers_text_is_escaped_wherever_it_stands(store: Store) -> None:
    step = {**STEP, **dict.fromkeys(("task", "tool", "call", "state"), MARKUP)}
    result = {
        **CALLED,
        "steps": [{**step, "arguments": {MARKUP: MARKUP}}],
        "result": {"content": [{"type": "text", "text": MARKUP}]},
    }
    hostile = run("j1", result)
    html = shown(store, replace(hostile, request={"task": MARKUP}), run("j2", message=MARKUP))
    assert "<img" not in html
    assert "\u202e" not in html
    assert html.count("&lt;img") >= 6


@pytest.mark.parametrize("steps", [7, "x", [7, None, {}], [{"tool": 3, "milliseconds": "x"}], {}])
def test_a_run_whose_steps_are_of_another_form_is_shown_all_the_same(
    store: Store, steps: Any
) -> None:
    assert "two zones" in shown(store, run(result={**CALLED, "steps": steps}))


def test_long_answers_and_many_runs_are_cut(store: Store) -> None:
    long = {**CALLED, "result": {"content": [{"type": "text", "text": "x" * 100_000}]}}
    html = shown(store, *(run(f"j{n}", {**long, "steps": [STEP] * 500}) for n in range(15)))
    assert html.count('class="run"') == MAX_RUNS
    assert len(html) < 150_000
    assert "runs" in render_panels(store, Place("ask"))


def test_a_run_is_done_again_as_a_new_one_without_what_only_its_terminal_could_allow(
    plane: Plane, store: Store
) -> None:
    start = read_start_time(os.getpid())
    store.processes.register(Process("w", os.getpid(), start, "serve", 0.0, time.time()))
    shown(store, run())
    answer = plane.ask("POST", "/jobs/j1/again", json={})
    assert answer.status_code == 202
    (job,) = store.jobs.find("queued")
    assert job.id == answer.json()["job"] != "j1"
    assert answer.json()["told"] == f"begun again as {job.id}"
    assert dict(job.request) == {
        "task": "list the zones",
        "session": "s",
        "arguments": {},
        "earlier": {"dns.list_zones": {"page": 1}},
    }


def test_a_run_of_one_call_is_done_again_with_the_tool_that_it_chose(
    plane: Plane, store: Store
) -> None:
    start = read_start_time(os.getpid())
    store.processes.register(Process("w", os.getpid(), start, "serve", 0.0, time.time()))
    store.servers.publish(entry("dns", 1, tool("list_zones")), REPORTS, now=1.0)
    shown(store, run(), run("j2", {**CALLED, "steps": [STEP, STEP]}))
    for identity in ("j1", "j2"):
        assert plane.ask("POST", f"/jobs/{identity}/again", json={}).status_code == 202
    one, several = sorted(store.jobs.find("queued"), key=lambda job: job.created)
    assert one.request["tool"] == "dns.list_zones"
    assert "tool" not in several.request


def test_only_a_task_run_can_be_done_again(plane: Plane, store: Store) -> None:
    forge = Job("j9", "forge", {"task": "x"}, created=1.0, updated=1.0)
    store.jobs.create(forge)
    assert plane.ask("POST", "/jobs/j9/again", json={}).status_code == 400
    assert plane.ask("POST", "/jobs/nothing/again", json={}).status_code == 404
    assert len(store.jobs.find("queued")) == 1


SHOWN: dict[str, dict[str, Any]] = {
    "confirm": {"tool": "dns.get_zone", "access": "read", "arguments": {"id": MARKUP}, "why": []},
    "choose": {"candidates": [{"tool": "dns.get_zone", "description": MARKUP}]},
    "plan": {"steps": [{"id": "s1", "task": MARKUP}]},
    "arguments": {
        "known": {"page": MARKUP},
        "missing": {"body.count": {}},
        "inputSchema": {
            "type": "object",
            "properties": {
                "body": {"type": "object", "properties": {"count": {"type": "integer"}}}
            },
        },
    },
}


def ask(store: Store, kind: str) -> Job:
    """A run that waits for an answer."""
    question = {
        "id": f"s1.{kind}.1",
        "kind": kind,
        "text": f"What is meant by {MARKUP}?",
        "shown": SHOWN[kind],
        "schema": {"properties": {}},
    }
    store.jobs.create(replace(run(), state="queued", result=None))
    claimed = store.jobs.claim("j1", "w", 100.0)
    assert claimed is not None
    need = AnswerNeed(question["id"], question["text"], {})
    kept = {"state": "asking", "question": question}
    store.drafts.park_job("j1", claimed.attempt, kept, 101.0, "asking", need, "ask")
    return store.jobs.get("j1")


@pytest.mark.parametrize("kind", SHOWN)
def test_what_a_run_asks_is_a_form_that_names_the_question(store: Store, kind: str) -> None:
    ask(store, kind)
    html = render_panels(store, Place("ask"))["runs"]
    assert 'id="ask-j1"' in html
    assert 'data-post="/jobs/j1/answer"' in html
    assert f'name="question" value="s1.{kind}.1"' in html
    assert "<img" not in html


def test_a_run_that_ended_with_a_waiting_write_links_to_the_approvals(store: Store) -> None:
    wire = {"method": "POST", "url": "https://api.example/zones"}
    pending = {"state": "pending", "approval": "a1", "why": "a write", "request": wire}
    html = shown(store, run("j1", pending), run("j2"))
    assert html.count('href="/rooms/approvals"') == 1
    assert "waits for your decision" in html
    assert "Tell the user" not in html


def render_asked(job: Job) -> str:
    shown = show_question(job)
    module = ENVIRONMENT.get_template("questions.html").make_module({"sign": None, "plain": None})
    return str(module.question(shown))  # type: ignore[attr-defined]


def test_the_answers_of_the_run_before_stand_in_the_fields_and_can_be_changed() -> None:
    schema = {
        "properties": {
            "lift_id": {"type": "integer"},
            "reason": {"type": "string"},
            "mode": {"type": "string", "enum": ["slow", "stop"]},
            "more": {"type": "array"},
        }
    }
    earlier = {"lift_id": 3, "reason": 'wind"><b>', "mode": "stop", "more": ["a"], "gone": 1}
    missing = build_missing("s1", 0, "lifts.close", schema, {}, list(schema["properties"]), "")
    question = suggest_values(missing, earlier)
    assert question.text.endswith("The run before had: lift_id, reason, mode, more.")
    encoded = encode_question(question, "j1")
    answer = encoded["answer_with"]["answer"]["arguments"]
    assert answer == {name: value for name, value in earlier.items() if name != "gone"}
    asked = Job(
        "j1", "do", {}, 1.0, 1.0, "waiting", result=encoded, needs=build_need(question, "j1")
    )
    html = render_asked(asked)
    for told in (
        'data-field="lift_id" maxlength="20000" inputmode="decimal" value="3"',
        'value="wind&#34;&gt;&lt;b&gt;"',
        '<option value="&#34;stop&#34;" selected>stop</option>',
        ">[&#34;a&#34;]</textarea>",
    ):
        assert told in html
    assert suggest_values(missing, {"reason": "x" * 10_000}) is missing
    assert suggest_values(missing, {"other": 1}) is missing


def test_a_replay_is_told_in_words_with_what_differs() -> None:
    one = {"verdict": "same", "difference": None, "reason": ""}
    assert render_replay("c1", {"verdict": "same", "replays": [one]}) == (
        "The replay gave the same answer."
    )
    found = {"where": "/lifts/0", "expected": "open", "got": "x" * 5_000}
    other = {**one, "verdict": "different", "difference": found}
    told = render_replay("c1", {"verdict": "different", "replays": [one, other]})
    assert told.startswith("The replay gave another answer: at /lifts/0 it was open and is xxx")
    assert len(told) < 500
    lost = {**one, "verdict": "not replayed", "reason": "it was not recorded"}
    told = render_replay("c1", {"verdict": "not replayed", "replays": [lost]})
    assert told.startswith("It could not be replayed: it was not recorded.")
    for odd in ({}, {"verdict": "different", "replays": [3]}, {"verdict": "different"}):
        assert "c1" in render_replay("c1", odd)


def test_a_call_without_arguments_is_not_said_to_take_none(store: Store) -> None:
    shown = {"tool": "lifts.list_bookings", "access": "read", "arguments": {}, "why": []}
    question = {"kind": "confirm", "shown": shown, "schema": {"properties": {}}}
    need = AnswerNeed("q", "?", {"properties": {}})
    asked = Job("j1", "do", {}, 1.0, 1.0, "waiting", result={"question": question}, needs=need)
    assert "It is called without arguments." in render_asked(asked)


def test_a_question_of_a_run_that_was_cancelled_is_not_open_any_more(store: Store) -> None:
    ask(store, "choose")
    store.jobs.cancel("j1", "page", 102.0)
    html = render_panels(store, Place("ask"))["runs"]
    assert CANCELLED in html
    for gone in ("What is meant", "<form", "/jobs/j1/answer", "<fieldset"):
        assert gone not in html
    assert "What is meant" not in render_panels(store, Place("jobs"))["jobs"].split("<ol")[0]


def test_no_step_of_a_run_that_was_cancelled_waits(store: Store) -> None:
    step = {"id": "s1", "task": "list", "tool": "dns.list_zones", "state": "waiting"}
    store.jobs.create(Job("j3", "do", {"task": "list zones"}, created=1.0, updated=1.0))
    claimed = store.jobs.claim("j3", "w", 1.0)
    assert claimed is not None
    result = {"steps": [step]}
    store.drafts.park_job("j3", claimed.attempt, result, 2.0, "waits", HostNeed("127.0.0.1:80"))
    assert ">waiting<" in render_panels(store, Place("ask"))["runs"]
    store.jobs.cancel("j3", "page", 3.0)
    html = render_panels(store, Place("ask"))["runs"]
    assert NOT_DONE in html
    assert ">waiting<" not in html


def test_the_run_of_what_was_left_is_told_apart_from_the_one_before(store: Store) -> None:
    first = run("j1")
    rest = replace(first, id="j2", request={**first.request, "continues": "j1"})
    assert shown(store, first, rest).count(THE_REST) == 1


def test_a_plan_names_earlier_steps_by_their_numbers(store: Store) -> None:
    ask_question(store, PLAN)
    assert "after step 1" in render_panels(store, Place("ask"))["runs"]


def test_a_run_that_ended_with_a_question_says_that_nobody_answered(store: Store) -> None:
    question = {"id": "q", "kind": "choose", "text": "Which one?", "shown": {}, "schema": {}}
    html = shown(store, run("j1", {"state": "asking", "question": question, "answer_with": {}}))
    assert UNANSWERED in html
    assert "call `do`" not in html


def test_a_run_that_was_cancelled_offers_nothing_to_allow(store: Store) -> None:
    store.jobs.create(Job("j3", "do", {"task": "list lifts"}, created=1.0, updated=1.0))
    claimed = store.jobs.claim("j3", "w", 1.0)
    assert claimed is not None
    store.drafts.park_job("j3", claimed.attempt, {}, 2.0, "waits", HostNeed("127.0.0.1:80"))
    store.jobs.cancel("j3", "page", 3.0)
    assert "/jobs/j3/allow" not in render_panels(store, Place("ask"))["runs"]


def test_a_task_that_no_tool_fits_has_buttons_instead_of_commands(store: Store) -> None:
    services = ["Hetzner (h:443, 9 operations): toolwright forge 'x y' --source directory:h.cloud"]
    suggested = {"state": "suggested", "candidates": [], "services": services}
    html = shown(store, run("j1", suggested))
    assert "toolwright" not in html
    assert 'data-post="/servers"' in html
    assert 'data-source="directory:h.cloud"' in html
    assert 'href="/rooms/servers"' in html


def test_a_refused_task_says_what_to_press(store: Store) -> None:
    reason = "Toolwright is frozen; a person can lift it with `toolwright unfreeze`"
    html = shown(store, run("j1", {"state": "refused", "tool": "dns.list_zones", "reason": reason}))
    assert ("“Unfreeze” at the top" in html, "toolwright" in html) == (True, False)


def test_what_an_api_answers_is_shown_as_it_is(store: Store) -> None:
    text = {"type": "text", "text": "type `toolwright unfreeze`"}
    html = shown(store, run("j1", {**CALLED, "steps": [], "result": {"content": [text]}}))
    assert "type `toolwright unfreeze`" in html


def test_a_question_about_the_api_offers_the_services_that_may_be_meant(store: Store) -> None:
    line = "Hetzner (h:443, 9 operations): toolwright forge 'x' --source directory:h.cloud"
    ask_question(store, build_source("s1", 0, "water the plants", (line,)))
    html = render_panels(store, Place("ask"))["runs"]
    assert '<button class="small" name="source" value="directory:h.cloud" formnovalidate>' in html
    assert "toolwright forge" not in html


@pytest.mark.parametrize(("allowed", "told"), [(True, MAY_BE_SENT), (False, "comes to Approvals")])
def test_a_yes_to_a_write_says_whether_it_may_be_sent_at_once(
    store: Store, allowed: bool, told: str
) -> None:
    fill_store(store, 9)
    if not allowed:
        store.rules.revoke("r1", "ann", time.time())
    ask_question(store, CONFIRMATION)
    html = render_panels(store, Place("ask"))["runs"]
    assert (told in html, MAY_BE_SENT in html) == (True, allowed)
    tool = render_panels(store, Place("servers", "dns", {"tool": "create_zone"}))["try"]
    word = SEND_OR_ASK if allowed else "Prepare the request"
    assert f">{word}</button>" in tool
