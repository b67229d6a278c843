"""Drafts of a forge job: all kept, each once, and taken only by a job that waits for one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from registry.drafts import CONTENT, awaits_draft
from registry.errors import DraftRefused, JobLost, Unknown
from registry.store import Store
from tests.registry.samples import job

CONTENT_1 = {"code": "x = 1", "tools": [], "why": "first"}


@pytest.fixture
def parked(store: Store) -> Store:
    store.create_job(job())
    store.claim_job("j1", "p1", 2.0)
    store.park_job("j1", 1, {"brief": "write it"}, 3.0, "waits for code")
    return store


def test_a_parked_job_belongs_to_nobody_and_outlives_its_process(parked: Store) -> None:
    waiting = parked.job("j1")
    assert awaits_draft(waiting)
    assert (waiting.result, waiting.message) == ({"brief": "write it"}, "waits for code")
    assert parked.requeue_orphans(("p1",), 4.0) == ()
    assert awaits_draft(parked.job("j1"))


def test_only_who_holds_a_job_can_park_it(store: Store) -> None:
    store.create_job(job())
    store.claim_job("j1", "p1", 2.0)
    with pytest.raises(JobLost):
        store.park_job("j1", 2, {}, 3.0, "")


def test_a_draft_queues_its_job_again_and_is_kept_with_what_came_of_it(parked: Store) -> None:
    row = parked.hand_in("j1", "d1", CONTENT_1, 4.0)
    assert (row.number, row.content, row.verdict) == (1, CONTENT_1, "")
    assert parked.job("j1").state == "queued"
    assert parked.job("j1").result == {"brief": "write it"}
    claimed = parked.claim_job("j1", "p2", 5.0)
    assert claimed is not None
    parked.judge_draft("j1", 2, 1, "failed", [{"stage": "static"}], [{"where": "t"}], 6.0)
    (kept,) = parked.drafts("j1")
    judged = replace(
        row, verdict="failed", reports=({"stage": "static"},), diagnosis=({"where": "t"},)
    )
    assert kept == judged == parked.draft("j1", 1)
    assert [a.kind for a in parked.audit() if a.kind.startswith("draft")] == [
        "draft.judged",
        "draft",
    ]


def test_the_same_draft_is_refused_and_another_is_the_next(parked: Store) -> None:
    parked.hand_in("j1", "d1", CONTENT_1, 4.0)
    parked.claim_job("j1", "p2", 5.0)
    parked.park_job("j1", 2, {}, 6.0, "")
    with pytest.raises(DraftRefused, match="the same draft"):
        parked.hand_in("j1", "d1", CONTENT_1, 7.0)
    assert awaits_draft(parked.job("j1"))
    assert parked.hand_in("j1", "d2", CONTENT_1, 8.0).number == 2


@pytest.mark.parametrize("state", ["queued", "running", "waiting", "done", "cancelled"])
def test_a_job_that_waits_for_no_draft_takes_none(store: Store, state: str) -> None:
    store.create_job(job())
    if state != "queued":
        store.claim_job("j1", "p1", 2.0)
    if state == "waiting":
        store.update_job("j1", 1, 3.0, state="waiting", message="a host")
    if state == "done":
        store.finish_job("j1", 1, "done", {}, 3.0)
    if state == "cancelled":
        store.cancel_job("j1", "ann", 3.0)
    with pytest.raises(DraftRefused, match=state):
        store.hand_in("j1", "d1", CONTENT_1, 4.0)
    assert store.drafts("j1") == ()


def test_an_endless_draft_is_refused(parked: Store) -> None:
    with pytest.raises(DraftRefused, match="longer"):
        parked.hand_in("j1", "d1", {"code": "x" * CONTENT}, 4.0)


def test_a_parked_job_can_be_cancelled(parked: Store) -> None:
    assert parked.cancel_job("j1", "ann", 4.0) is not None
    assert parked.job("j1").state == "cancelled"


def test_who_lost_the_job_cannot_judge_its_draft(parked: Store) -> None:
    parked.hand_in("j1", "d1", CONTENT_1, 4.0)
    parked.claim_job("j1", "p2", 5.0)
    with pytest.raises(JobLost):
        parked.judge_draft("j1", 1, 1, "passed", [], [], 6.0)
    assert parked.draft("j1", 1).verdict == ""


def test_an_unknown_job_or_draft_is_unknown(parked: Store) -> None:
    with pytest.raises(Unknown):
        parked.hand_in("nope", "d1", CONTENT_1, 4.0)
    with pytest.raises(Unknown):
        parked.draft("j1", 1)
