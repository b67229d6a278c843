"""Repairs are few, one at a time and never while frozen; a new version is judged by its calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from registry.health.canary import CALLS, CanaryTrial, OutcomeCounts, judge_trial
from registry.health.repairs import (
    DAY,
    KEPT_TRYING,
    REPAIR_PAUSE,
    REPAIRS_A_DAY,
    RepairAttempts,
    WatchedDescription,
    is_past_repair,
)
from registry.models import Job
from registry.store import Store
from tests.registry.samples import REPORTS, entry, invocation


def repair(id: str, at: float, server: str = "dns") -> Job:
    return Job(id, "repair", {"server": server, "cause": "drift"}, created=at, updated=at)


def ended(store: Store, id: str, at: float) -> None:
    job = store.jobs.claim(id, "main", at)
    assert job is not None
    store.jobs.finish(id, job.attempt, "failed", None, at)


def test_a_server_has_one_repair_at_a_time(dns: Store) -> None:
    assert dns.repairs.queue_repair(repair("r1", 100.0), 100.0) is not None
    assert dns.repairs.queue_repair(repair("r2", 101.0), 101.0) is None
    assert dns.repairs.queue_repair(repair("r3", 101.0, "other"), 101.0) is not None


def test_a_server_has_so_many_repairs_a_day(dns: Store) -> None:
    for number in range(REPAIRS_A_DAY):
        other = repair(f"r{number}", 100.0 + number)
        other = replace(other, request={**other.request, "kind": f"cause {number}"})
        assert dns.repairs.queue_repair(other, 100.0 + number)
        ended(dns, f"r{number}", 100.0 + number)
    assert dns.repairs.queue_repair(repair("more", 200.0), 200.0) is None
    assert len(dns.repairs.find("dns", 200.0)) == REPAIRS_A_DAY
    later = 101.0 + DAY
    assert dns.repairs.queue_repair(repair("tomorrow", later), later) is not None


def test_a_repair_that_failed_is_tried_again_after_a_pause_only(dns: Store) -> None:
    dns.repairs.queue_repair(repair("r1", 100.0), 100.0)
    ended(dns, "r1", 100.0)
    soon, later = 99.0 + REPAIR_PAUSE, 101.0 + REPAIR_PAUSE
    assert dns.repairs.queue_repair(repair("r2", soon), soon) is None
    assert dns.repairs.find_due(soon) is None
    assert dns.repairs.queue_repair(repair("r3", later), later) is not None


def test_what_is_due_again_is_a_repair_of_a_server_that_answers_nothing(dns: Store) -> None:
    later = 101.0 + REPAIR_PAUSE
    first = Job("r1", "repair", {"server": "dns", "version": 1}, 100.0, 100.0)
    dns.repairs.queue_repair(first, 100.0)
    ended(dns, "r1", 100.0)
    due = dns.repairs.find_due(later)
    assert due is not None
    assert due.id == "r1"
    dns.calls.record(invocation("c1", started=later), now=later)
    assert dns.repairs.find_due(later) is None


def test_a_failed_repair_is_told_until_its_server_has_another_version(dns: Store) -> None:
    first = Job("r1", "repair", {"server": "dns", "version": 1}, 100.0, 100.0)
    dns.repairs.queue_repair(first, 100.0)
    assert dns.repairs.find_failed(101.0) == ()
    ended(dns, "r1", 100.0)
    assert [job.id for job in dns.repairs.find_failed(101.0)] == ["r1"]
    assert dns.repairs.find_failed(101.0 + KEPT_TRYING) == ()
    dns.servers.publish(entry("dns", 2), REPORTS, now=102.0)
    assert dns.repairs.find_failed(103.0) == ()


def test_a_check_is_no_repair(dns: Store) -> None:
    check = Job("c1", "repair", {"server": "dns", "check": True}, 100.0, 100.0)
    assert dns.repairs.queue_repair(check, 100.0) is not None
    assert dns.repairs.find("dns", 101.0) == ()
    assert dns.repairs.queue_repair(repair("r1", 101.0), 101.0) is not None


@pytest.mark.parametrize(
    ("began", "answered", "past"),
    [
        ((0.0, DAY / 2, DAY), False, True),
        ((0.0, DAY / 2, DAY), True, False),
        ((0.0, DAY), False, False),
        ((1.0, 2.0, 3.0), False, False),
        ((), False, False),
    ],
)
def test_the_ladder_ends_after_three_repairs_over_a_day_and_no_answer(
    began: tuple[float, ...], answered: bool, past: bool
) -> None:
    assert is_past_repair(RepairAttempts(began, answered), DAY) is past


def test_nothing_is_repaired_while_frozen(dns: Store) -> None:
    dns.processes.freeze(90.0, "ann")
    assert dns.repairs.queue_repair(repair("r1", 100.0), 100.0) is None


def test_a_cancelled_repair_counts_and_leaves_room_for_the_next(dns: Store) -> None:
    dns.repairs.queue_repair(repair("r1", 100.0), 100.0)
    dns.jobs.cancel("r1", "ann", 101.0)
    assert dns.repairs.queue_repair(repair("r2", 102.0), 102.0) is not None


def test_the_opening_of_a_repair_is_audited(dns: Store) -> None:
    dns.repairs.queue_repair(repair("r1", 100.0), 100.0)
    assert [row.kind for row in dns.audit.find()][:2] == ["repair.opened", "job.queued"]


@pytest.mark.parametrize(
    ("old", "new", "judgement"),
    [
        (OutcomeCounts(50, 0), OutcomeCounts(0, 1), "going on"),
        (OutcomeCounts(50, 0), OutcomeCounts(0, 2), "worse"),
        (OutcomeCounts(50, 0), OutcomeCounts(18, 2), "kept"),
        (OutcomeCounts(45, 5), OutcomeCounts(8, 2), "going on"),
        (OutcomeCounts(0, 9), OutcomeCounts(0, 9), "going on"),
        (OutcomeCounts(0, 0), OutcomeCounts(5, 5), "worse"),
        (OutcomeCounts(50, 0), OutcomeCounts(CALLS, 0), "kept"),
    ],
)
def test_a_version_on_trial_is_judged_by_its_predecessor(
    old: OutcomeCounts, new: OutcomeCounts, judgement: str
) -> None:
    assert judge_trial(CanaryTrial("dns", 2, 1, 100.0, old=old, new=new)) == judgement


def test_a_trial_counts_its_own_version_until_it_ends(dns: Store) -> None:
    dns.canaries.begin_trial(CanaryTrial("dns", 2, 1, 100.0, old=OutcomeCounts(50, 0)))
    assert dns.canaries.count_outcome("dns", 1, False, 101.0) is None
    first = dns.canaries.count_outcome("dns", 2, False, 102.0)
    assert first is not None
    assert first[1] == "going on"
    second = dns.canaries.count_outcome("dns", 2, False, 103.0)
    assert second is not None
    assert second[1] == "worse"
    assert dns.canaries.count_outcome("dns", 2, False, 104.0) is None
    trial = dns.canaries.get("dns")
    assert trial is not None
    assert (trial.ended, trial.outcome, trial.new) == (103.0, "worse", OutcomeCounts(0, 2))


def test_undocumented_answers_are_counted_by_tool(dns: Store) -> None:
    for id, kind in (("c1", "schema"), ("c2", "malformed"), ("c3", "http"), ("c4", None)):
        dns.calls.record(invocation(id, kind), 100.0)
    assert dns.repairs.count_drift("dns", 1) == {"list_zones": 2}
    assert dns.repairs.count_drift("dns", 2) == {}


def test_a_source_is_looked_at_once_in_a_while_by_whoever_comes_first(dns: Store) -> None:
    url = "https://api.example/openapi.json"
    assert dns.descriptions.claim_check(url, 1000.0, DAY) == WatchedDescription(url, 1000.0)
    assert dns.descriptions.claim_check(url, 2000.0, DAY) is None
    seen = WatchedDescription(url, 1000.0, etag='"7"', digest="d" * 64)
    dns.descriptions.store_check(seen, 1000.0, "dns", changed=True)
    assert dns.descriptions.get(url) == seen
    assert next(row.kind for row in dns.audit.find()) == "drift.document"
    claimed = dns.descriptions.claim_check(url, 1001.0 + DAY, DAY)
    assert claimed is not None
    assert claimed.etag == '"7"'
