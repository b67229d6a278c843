"""A task run that ended with a write for a person: what is told of it once that was decided."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.approvals.sending import render_unsent_line
from orchestrator.approvals.settling import (
    describe_author_wait,
    name_state,
    name_step,
    present_to_person,
    settle_run,
)
from orchestrator.control.page import render_panels
from orchestrator.control.rooms.place import Place
from orchestrator.gateway.exchange_json import pending_json
from orchestrator.views.jobs import encode_job
from orchestrator.views.task_results import render_task_result
from registry.models import Approval, Freeze, Job, JobEvent
from registry.store import Store
from tests.registry.samples import approval

NOW = 150.0
ASKED = replace(approval(), created=100.0, expires=200.0)
STEP = {"id": "s1", "task": "close", "tool": "dns.create_zone", "state": "pending", "call": ""}
RESULT = {**pending_json(ASKED, "a write"), "steps": [STEP, {**STEP, "id": "s2", "state": "done"}]}
RUN = Job("j1", "do", {"task": "close"}, created=1.0, updated=2.0, state="done", result=RESULT)
UNFROZEN = Freeze(0, False, 0.0, "", "")
CLOSED = {"content": [{"type": "text", "text": "lift 3 is closed"}]}


class OneApproval:
    """A store that has one approval, and where nothing was ever frozen."""

    def __init__(self, **changes: Any) -> None:
        self.approval = replace(ASKED, **changes)
        self.approvals = self.processes = self

    def get_freeze(self) -> Freeze:
        return UNFROZEN

    def get(self, id: str) -> Approval:
        assert id == self.approval.id
        return self.approval


def settle(**changes: Any) -> Job:
    return settle_run(RUN, OneApproval(**changes), NOW)  # type: ignore[arg-type]


def tell(job: Job) -> str:
    content = render_task_result(job.result, to_person=True)["content"]
    return " ".join(block["text"] for block in content)


@pytest.mark.parametrize(
    ("changes", "name", "told", "step"),
    [
        ({}, "waits for you", "waits for your decision", "pending"),
        (
            {"state": "approved", "decided_at": NOW - 1},
            "is being sent",
            "it is being sent",
            "sending",
        ),
        (
            {"state": "approved", "decided_at": NOW - 40},
            "not sent",
            "`toolwright work --approval a1` sends it",
            "approved",
        ),
        ({"state": "sending"}, "is being sent", "it is being sent", "sending"),
        (
            {"state": "done", "outcome": CLOSED, "invocation": "c7"},
            "done",
            "lift 3 is closed",
            "done",
        ),
        (
            {"state": "rejected"},
            "rejected",
            "a person rejected it, and nothing was sent",
            "refused",
        ),
        (
            {"state": "rejected", "decision_reason": "too early"},
            "rejected",
            "nothing was sent: too early",
            "refused",
        ),
        ({"state": "expired"}, "expired", "nobody decided on it in time", "refused"),
        ({"expires": NOW}, "expired", "nobody decided on it in time", "refused"),
        ({"state": "unknown"}, "unknown", "ask the API whether it arrived", "unknown"),
        (
            {"state": "failed", "outcome": {"error": "version 2 by now"}},
            "failed",
            "nothing was sent: version 2 by now",
            "failed",
        ),
        (
            {"state": "failed", "outcome": {**CLOSED, "isError": True}, "invocation": "c7"},
            "failed",
            "lift 3 is closed",
            "failed",
        ),
    ],
)
def test_a_run_tells_what_became_of_its_write(
    changes: dict[str, Any], name: str, told: str, step: str
) -> None:
    settled = settle(**changes)
    assert name_state(settled) == name
    assert told in tell(settled)
    assert [each["state"] for each in settled.result["steps"]] == [step, "done"]
    waits = name == "waits for you"
    assert ("Nothing was sent (" in tell(settled)) == waits
    shown = encode_job(settled)
    assert ("request" in str(shown["result"])) == (
        name in ("waits for you", "is being sent", "not sent")
    )


def test_its_step_leads_to_the_call_that_was_made() -> None:
    settled = settle(state="done", outcome=CLOSED, invocation="c7")
    assert settled.result["steps"][0]["call"] == "c7"
    assert name_step("pending") == "waits for you"


def test_other_jobs_are_as_they_are(store: Store) -> None:
    for job in (
        replace(RUN, kind="forge"),
        replace(RUN, state="failed"),
        replace(RUN, result={"state": "called"}),
        replace(RUN, result=None),
        RUN,  # whose approval there is not
    ):
        assert settle_run(job, store, NOW) is job


def test_a_thread_shows_that_a_write_waits_and_then_its_end(
    store: Store, waiting: Approval
) -> None:
    store.jobs.create(replace(RUN, state="queued", result=None))
    claimed = store.jobs.claim("j1", "w", 1.0)
    assert claimed is not None
    result = {**RESULT, **pending_json(waiting, "a write")}
    store.jobs.finish("j1", claimed.attempt, "done", result, 2.0)
    html = render_panels(store, Place("ask"))["runs"]
    assert '<span class="badge waiting">waits for you</span>' in html
    assert '<span class="badge done">done</span>' in html  # the other step's
    assert html.count(">waits for you<") == 2
    assert "decide it" in html
    store.approvals.decide(waiting.id, False, by="ann", now=time.time())
    html = render_panels(store, Place("ask"))["runs"]
    assert '<span class="badge rejected">rejected</span>' in html
    assert "waits for you" not in html
    assert "decide it" not in html


def test_a_write_just_approved_is_being_sent_and_one_that_nobody_took_has_its_command() -> None:
    approved = replace(ASKED, state="approved", decided_by="page", decided_at=NOW)
    assert render_unsent_line(approved, UNFROZEN, NOW + 1) == "is being sent"
    late = render_unsent_line(approved, UNFROZEN, NOW + 31)
    assert late == "approved by page and not sent: `toolwright work --approval a1` sends it"
    frozen = Freeze(1, True, NOW - 9, "page", "")
    assert "frozen" in render_unsent_line(approved, frozen, NOW + 1)
    lifted = replace(frozen, frozen=False, since=NOW + 1)
    assert render_unsent_line(approved, lifted, NOW + 2) == late


def test_a_task_that_was_asked_while_frozen_says_what_it_waits_for(store: Store) -> None:
    queued = Job("j2", "do", {"task": "close"}, created=1.0, updated=1.0)
    store.jobs.create(queued)
    assert present_to_person(queued, store).message == ""
    store.processes.freeze(time.time(), "page", "")
    assert (
        "waits: everything is frozen; unfreeze to go on"
        in render_panels(store, Place("ask"))["runs"]
    )


@pytest.mark.parametrize(
    "message",
    [
        "waits for the server's code: read the brief, then `submit`",
        "no model is configured (OPENAI_MODEL) and the client's cannot be asked: read the brief, "
        "then `submit`",
    ],
)
def test_a_task_that_waits_for_code_says_to_a_person_who_can_write_it_and_how_it_is_ended(
    store: Store, message: str
) -> None:
    event = JobEvent(1.0, "draft", message)
    parked = Job("j3", "do", {"task": "add"}, 1.0, 1.0, "waiting", "draft", message=message)
    told = present_to_person(replace(parked, log=(event,)), store)
    assert "submit" not in f"{told.message} {told.log}"
    for word in ("write", "OPENAI_MODEL", "MCP", "--resume", "`toolwright jobs j3 --cancel`"):
        assert word in told.message
    assert name_state(told) == "waiting"
    assert len(describe_author_wait(replace(parked, id="0" * 16))) < 300


def test_a_write_whose_answer_was_too_large_to_be_kept_is_told_as_done() -> None:
    lost = {"truncated": True, "length": 1_400_000, "sha256": "0", "head": '{"content":[{"ty'}
    job = settle(state="done", outcome=lost, invocation="c7")
    assert job.result["state"] == "called"
    assert "It was sent, and the API answered. The answer (1,400,000 bytes" in tell(job)
