"""Drafts of a forge job: all kept, each once, and taken only by a job that waits for one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from registry.errors import DraftRefused, JobLost, RowNotFound
from registry.jobs.drafts import CONTENT, awaits_draft
from registry.store import Store
from sandbox.bundle.report import Proof, StageReport
from tests.registry.samples import job

STATIC = StageReport("static", "failed", 1.0)
CONTENT_1 = {"code": "x = 1", "tools": [], "why": "first"}


@pytest.fixture
def parked(store: Store) -> Store:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    store.drafts.park_job("j1", 1, {"brief": "write it"}, 3.0, "waits for code")
    return store


def test_a_parked_job_belongs_to_nobody_and_outlives_its_process(parked: Store) -> None:
    waiting = parked.jobs.get("j1")
    assert awaits_draft(waiting)
    assert (waiting.result, waiting.message) == ({"brief": "write it"}, "waits for code")
    assert parked.jobs.requeue_orphans(("p1",), 4.0) == ()
    assert awaits_draft(parked.jobs.get("j1"))


def test_only_who_holds_a_job_can_park_it(store: Store) -> None:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    with pytest.raises(JobLost):
        store.drafts.park_job("j1", 2, {}, 3.0, "")


def test_a_draft_queues_its_job_again_and_is_kept_with_what_came_of_it(parked: Store) -> None:
    row = parked.drafts.hand_in("j1", "d1", CONTENT_1, 4.0)
    assert (row.number, row.content, row.verdict) == (1, CONTENT_1, "")
    assert parked.jobs.get("j1").state == "queued"
    assert parked.jobs.get("j1").result == {"brief": "write it"}
    claimed = parked.jobs.claim("j1", "p2", 5.0)
    assert claimed is not None
    parked.drafts.store_verdict("j1", 2, 1, "failed", [STATIC], [{"where": "t"}], 6.0)
    (kept,) = parked.drafts.find("j1")
    judged = replace(row, verdict="failed", reports=(STATIC,), diagnosis=({"where": "t"},))
    assert kept == judged == parked.drafts.get("j1", 1)
    assert [a.kind for a in parked.audit.find() if a.kind.startswith("draft")] == [
        "draft.judged",
        "draft",
    ]


def test_the_same_draft_is_refused_and_another_is_the_next(parked: Store) -> None:
    parked.drafts.hand_in("j1", "d1", CONTENT_1, 4.0)
    parked.jobs.claim("j1", "p2", 5.0)
    parked.drafts.park_job("j1", 2, {}, 6.0, "")
    with pytest.raises(DraftRefused, match="the same draft"):
        parked.drafts.hand_in("j1", "d1", CONTENT_1, 7.0)
    assert awaits_draft(parked.jobs.get("j1"))
    assert parked.drafts.hand_in("j1", "d2", CONTENT_1, 8.0).number == 2


@pytest.mark.parametrize("state", ["queued", "running", "waiting", "done", "cancelled"])
def test_a_job_that_waits_for_no_draft_takes_none(store: Store, state: str) -> None:
    store.jobs.create(job())
    if state != "queued":
        store.jobs.claim("j1", "p1", 2.0)
    if state == "waiting":
        store.jobs.update_progress("j1", 1, 3.0, state="waiting", message="a host")
    if state == "done":
        store.jobs.finish("j1", 1, "done", {}, 3.0)
    if state == "cancelled":
        store.jobs.cancel("j1", "ann", 3.0)
    with pytest.raises(DraftRefused, match=state):
        store.drafts.hand_in("j1", "d1", CONTENT_1, 4.0)
    assert store.drafts.find("j1") == ()


def test_an_endless_draft_is_refused(parked: Store) -> None:
    with pytest.raises(DraftRefused, match="longer"):
        parked.drafts.hand_in("j1", "d1", {"code": "x" * CONTENT}, 4.0)


def test_a_parked_job_can_be_cancelled(parked: Store) -> None:
    assert parked.jobs.cancel("j1", "ann", 4.0) is not None
    assert parked.jobs.get("j1").state == "cancelled"


def test_who_lost_the_job_cannot_judge_its_draft(parked: Store) -> None:
    parked.drafts.hand_in("j1", "d1", CONTENT_1, 4.0)
    parked.jobs.claim("j1", "p2", 5.0)
    with pytest.raises(JobLost):
        parked.drafts.store_verdict("j1", 1, 1, "passed", [], [], 6.0)
    assert parked.drafts.get("j1", 1).verdict == ""


def test_an_unknown_job_or_draft_is_unknown(parked: Store) -> None:
    with pytest.raises(RowNotFound):
        parked.drafts.hand_in("nope", "d1", CONTENT_1, 4.0)
    with pytest.raises(RowNotFound):
        parked.drafts.get("j1", 1)


def test_reports_that_are_too_long_to_be_kept_make_no_draft_admissible(parked: Store) -> None:
    parked.drafts.hand_in("j1", "d1", CONTENT_1, 4.0)
    parked.jobs.claim("j1", "p2", 5.0)
    long = replace(STATIC, verdict="passed", note="x" * CONTENT)
    parked.drafts.store_verdict("j1", 2, 1, "failed", [long], [], 6.0)
    (kept,) = parked.drafts.find("j1")
    assert not Proof(kept.digest, kept.reports).admissible
