"""What a task run asks is answered on the page: once, as its question takes it, and as shown."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from orchestrator.control.page import render_panels
from orchestrator.control.rooms.place import Place
from orchestrator.processes.liveness import read_start_time
from orchestrator.tasks.model import Question
from registry.models import Process
from registry.needs import AnswerNeed
from registry.store import Store
from tests.orchestrator.control.filled import (
    CHOICE,
    CONFIRMATION,
    MISSING,
    PLAN,
    SOURCE,
    ask_question,
)
from tests.orchestrator.plane import Plane
from tests.orchestrator.plane import log_in as log_in_without_browser


@pytest.fixture(autouse=True)
def worker(store: Store) -> None:
    """Somebody who runs queued jobs is alive, so that no process is started."""
    start = read_start_time(os.getpid())
    store.processes.register(Process("w", os.getpid(), start, "serve", 0.0, time.time()))


@pytest.mark.parametrize(
    ("question", "typed", "answer"),
    [
        (CONFIRMATION, {"confirm": "yes"}, {"confirm": True}),
        (CONFIRMATION, {"confirm": "no"}, {"confirm": False}),
        (CHOICE, {"tool": "dns.get_zone"}, {"tool": "dns.get_zone"}),
        (CHOICE, {"tool": "none"}, {"tool": "none"}),
        (PLAN, {"accept": "yes"}, {"accept": True}),
        (SOURCE, {"source": " https://a.test/ "}, {"source": "https://a.test/"}),
        (
            MISSING,
            {"fields": {"zone": "example.org", "ttl": "60"}},
            {"arguments": {"zone": "example.org", "ttl": 60}},
        ),
    ],
)
def test_what_is_typed_is_the_answer_that_the_question_takes(
    plane: Plane, store: Store, question: Question, typed: dict[str, Any], answer: dict[str, Any]
) -> None:
    job = ask_question(store, question)
    assert isinstance(job.needs, AnswerNeed)
    body = {"question": job.needs.question, **typed}
    told = plane.ask("POST", "/jobs/j1/answer", json=body)
    assert (told.status_code, told.json()["told"]) == (200, "Answered. The task goes on.")
    queued = store.jobs.get("j1")
    assert queued.state == "queued"
    (kept,) = queued.request["answers"].values()
    assert kept == {"question": job.needs.question, **answer}
    assert plane.ask("POST", "/jobs/j1/answer", json=body).status_code == 400


@pytest.mark.parametrize(
    ("question", "typed"),
    [
        (CONFIRMATION, {}),
        (CONFIRMATION, {"confirm": "maybe"}),
        (CHOICE, {"tool": "dns.delete_everything"}),
        (CHOICE, {}),
        (SOURCE, {"source": " "}),
        (SOURCE, {"source": "x" * 3000}),
        (MISSING, {"fields": {"ttl": "60"}}),
        (MISSING, {"fields": {"zone": "a", "ttl": "soon"}}),
        (MISSING, {"fields": {"zone": "a", "other": "b"}}),
        (MISSING, {"fields": "zone"}),
        (CONFIRMATION, {"question": "another", "confirm": "yes"}),
    ],
)
def test_what_is_no_answer_leaves_the_question(
    plane: Plane, store: Store, question: Question, typed: dict[str, Any]
) -> None:
    job = ask_question(store, question)
    assert isinstance(job.needs, AnswerNeed)
    body = {"question": job.needs.question, **typed}
    answer = plane.ask("POST", "/jobs/j1/answer", json=body)
    assert (answer.status_code, bool(answer.json()["error"])) == (400, True)
    assert store.jobs.get("j1").state == "waiting"


@pytest.mark.parametrize("question", [CONFIRMATION, CHOICE, PLAN, SOURCE, MISSING])
def test_a_question_stands_as_a_form_in_its_thread_and_among_what_waits(
    store: Store, question: Question
) -> None:
    job = ask_question(store, question)
    for place, part in (("ask", "runs"), ("home", "waiting"), ("approvals", "waiting")):
        html = render_panels(store, Place(place))[part]
        assert html.count('data-post="/jobs/j1/answer"') == 1
        assert isinstance(job.needs, AnswerNeed)
        assert f'value="{job.needs.question}"' in html


def test_a_job_is_cancelled_and_only_while_it_has_not_ended(plane: Plane, store: Store) -> None:
    ask_question(store, CHOICE)
    assert plane.ask("POST", "/jobs/j1/cancel").json()["told"] == "It is cancelled."
    assert store.jobs.get("j1").state == "cancelled"
    assert plane.ask("POST", "/jobs/j1/cancel").json()["told"] == "It had ended before."
    assert "/cancel" not in render_panels(store, Place("jobs"))["jobs"]
    assert plane.ask("POST", "/jobs/nothing/cancel").status_code == 404


def test_an_answer_needs_the_form_that_was_shown(plane: Plane, store: Store) -> None:
    job = ask_question(store, CONFIRMATION)
    assert isinstance(job.needs, AnswerNeed)
    browser = log_in_without_browser(plane)
    body = {"question": job.needs.question, "confirm": "yes"}
    refused = plane.ask("POST", "/jobs/j1/answer", headers=browser.headers, json=body)
    assert (refused.status_code, store.jobs.get("j1").state) == (403, "waiting")
    assert browser.press("/jobs/j1/answer", json=body).status_code == 200
