from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.views.jobs import encode_job
from registry.errors import DuplicateRow, JobLost, RowNotFound, TooManyWaiting
from registry.jobs.jobs import ANSWER_SECONDS, MAX_EVENTS, MAX_UNENDED
from registry.models import JobEvent
from registry.needs import AnswerNeed
from registry.store import Store
from tests.registry.processes import race
from tests.registry.samples import job


def test_a_job_goes_from_queued_to_done(store: Store) -> None:
    store.jobs.create(job())
    assert store.jobs.find("queued") == (job(),)
    claimed = store.jobs.claim("j1", "p1", 2.0)
    assert claimed is not None
    assert (claimed.state, claimed.attempt, claimed.owner) == ("running", 1, "p1")
    store.jobs.update_progress("j1", 1, 3.0, stage="mock", progress=0.5, message="2 of 4")
    done = store.jobs.finish("j1", 1, "done", {"entry": "dns"}, 4.0, "registered")
    assert store.jobs.get("j1") == done
    assert (done.state, done.progress, done.result) == ("done", 1.0, {"entry": "dns"})
    assert [(event.stage, event.message) for event in done.log] == [
        ("mock", "2 of 4"),
        ("mock", "registered"),
    ]


def test_only_so_many_are_under_way_until_one_ends(store: Store) -> None:
    for number in range(MAX_UNENDED):
        store.jobs.create(job(f"j{number}"))
    with pytest.raises(TooManyWaiting, match="toolwright jobs"):
        store.jobs.create(job("beyond"))
    store.jobs.cancel("j1", "ann", 2.0)
    store.jobs.create(job("next"))


def test_a_question_that_nobody_answered_for_an_hour_makes_room(store: Store) -> None:
    need = AnswerNeed("s1.confirm.1", "Is it meant?", {})
    for number in range(MAX_UNENDED):
        asks = {"kind": "do", "state": "waiting", "needs": need} if number in (3, 4) else {}
        store.jobs.create(replace(job(f"j{number}"), updated=10.0 - number, **asks))
    with pytest.raises(TooManyWaiting):
        store.jobs.create(replace(job("soon"), created=ANSWER_SECONDS))
    store.jobs.create(replace(job("later"), created=ANSWER_SECONDS + 60))
    assert (store.jobs.get("j4").state, store.jobs.get("j3").state) == ("cancelled", "waiting")
    row = next(row for row in store.audit.find(5) if row.kind == "job.cancelled")
    assert row.subject == "j4"


def test_a_job_waits_and_goes_on(store: Store) -> None:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    assert (
        store.jobs.update_progress("j1", 1, 3.0, state="waiting", message="key?").state == "waiting"
    )
    assert store.jobs.update_progress("j1", 1, 4.0, progress=0.2).state == "running"
    assert store.jobs.get("j1").message == "key?"


@pytest.mark.parametrize(("said", "kept"), [(-1.0, 0.0), (7.0, 1.0), (0.25, 0.25)])
def test_progress_stays_between_zero_and_one(store: Store, said: float, kept: float) -> None:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    assert store.jobs.update_progress("j1", 1, 3.0, progress=said).progress == kept


def test_the_log_keeps_the_newest_events(store: Store) -> None:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    for number in range(MAX_EVENTS + 5):
        store.jobs.update_progress("j1", 1, 3.0, message=str(number))
    log = store.jobs.get("j1").log
    assert (len(log), log[0].message, log[-1].message) == (MAX_EVENTS, "5", str(MAX_EVENTS + 4))


def test_what_is_shown_of_a_jobs_events_is_the_latest_and_bounded_in_bytes() -> None:
    log = tuple(JobEvent(float(n), "route", f"{n} " + "é" * 5_000) for n in range(MAX_EVENTS))
    shown = encode_job(replace(job(), log=log, message="é" * 50_000))
    assert shown["events"][-1][0] == MAX_EVENTS - 1
    assert 5 <= len(shown["events"]) < 50
    assert len(json.dumps(shown, ensure_ascii=False).encode()) < 8_000


def test_short_events_of_a_job_are_shown_whole() -> None:
    log = tuple(JobEvent(float(n), "route", f"step {n}") for n in range(MAX_EVENTS))
    shown = encode_job(replace(job(), log=log))["events"]
    assert shown == [[each.time, each.stage, each.message] for each in log[-50:]]


def test_a_claimed_job_is_not_claimed_again(store: Store) -> None:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    assert store.jobs.claim("j1", "p2", 2.0) is None
    assert store.jobs.get("j1").owner == "p1"


def test_a_job_that_its_process_takes_at_once_is_nobody_elses(store: Store) -> None:
    held = store.jobs.create(job(), "terminal")
    assert (held.state, held.owner, held.attempt) == ("running", "terminal", 1)
    assert not store.jobs.has_unclaimed()
    assert store.jobs.claim(held.id, "serve", 2) is None


def test_the_attempt_of_a_dead_process_can_write_no_more(store: Store) -> None:
    store.jobs.create(job())
    store.jobs.create(job("j2"))
    store.jobs.claim("j1", "p1", 2.0)
    store.jobs.claim("j2", "p2", 2.0)
    assert store.jobs.requeue_orphans(["p1"], 3.0) == ("j1",)
    with pytest.raises(JobLost):
        store.jobs.update_progress("j1", 1, 4.0, progress=0.9)
    again = store.jobs.claim("j1", "p3", 5.0)
    assert again is not None
    assert again.attempt == 2
    with pytest.raises(JobLost):
        store.jobs.finish("j1", 1, "done", {}, 6.0)
    assert store.jobs.get("j1") == again
    assert store.jobs.get("j2").state == "running"


def test_a_cancelled_job_stops_its_attempt(store: Store) -> None:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    assert store.jobs.cancel("j1", "me", 3.0) is not None
    with pytest.raises(JobLost):
        store.jobs.update_progress("j1", 1, 4.0, progress=0.9)
    assert store.jobs.cancel("j1", "me", 5.0) is None
    assert store.jobs.get("j1").state == "cancelled"


def test_a_finished_job_stays_finished(store: Store) -> None:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    store.jobs.finish("j1", 1, "failed", None, 3.0, "no such host")
    with pytest.raises(JobLost):
        store.jobs.finish("j1", 1, "done", {}, 4.0)
    assert store.jobs.cancel("j1", "me", 5.0) is None
    assert store.jobs.requeue_orphans(["p1"], 6.0) == ()


def test_ids_are_unique_and_unknown_ones_are_errors(store: Store) -> None:
    store.jobs.create(job())
    with pytest.raises(DuplicateRow):
        store.jobs.create(job())
    for ask in (store.jobs.get, lambda id: store.jobs.claim(id, "p1", 1.0)):
        with pytest.raises(RowNotFound):
            ask("nope")


def test_of_racing_processes_exactly_one_claims_each_job(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    names = [f"j{number}" for number in range(10)]
    with Store.open(path) as store:
        for name in names:
            store.jobs.create(job(name))

    def grab(number: int) -> list[bool]:
        with Store.open(path, f"p{number}") as own:
            return [own.jobs.claim(name, f"p{number}", 2.0) is not None for name in names]

    assert [sum(won) for won in zip(*race(grab, 4), strict=True)] == [1] * len(names)
