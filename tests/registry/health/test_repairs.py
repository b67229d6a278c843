"""Repairs are few, one at a time and never while frozen; a new version is judged by its calls."""

from __future__ import annotations

import pytest

from registry.health import DAY, REPAIRS_A_DAY, Watched
from registry.records import Job
from registry.store import Store
from registry.trial import CALLS, Tally, Trial, judged
from tests.registry.samples import invocation


def repair(id: str, at: float, server: str = "dns") -> Job:
    return Job(id, "repair", {"server": server, "cause": "drift"}, created=at, updated=at)


def ended(store: Store, id: str, at: float) -> None:
    job = store.claim_job(id, "main", at)
    assert job is not None
    store.finish_job(id, job.attempt, "failed", None, at)


def test_a_server_has_one_repair_at_a_time(dns: Store) -> None:
    assert dns.open_repair(repair("r1", 100.0), 100.0) is not None
    assert dns.open_repair(repair("r2", 101.0), 101.0) is None
    assert dns.open_repair(repair("r3", 101.0, "other"), 101.0) is not None


def test_a_server_has_so_many_repairs_a_day(dns: Store) -> None:
    for number in range(REPAIRS_A_DAY):
        assert dns.open_repair(repair(f"r{number}", 100.0 + number), 100.0 + number)
        ended(dns, f"r{number}", 100.0 + number)
    assert dns.open_repair(repair("more", 200.0), 200.0) is None
    assert len(dns.repairs("dns", 200.0)) == REPAIRS_A_DAY
    later = 101.0 + DAY
    assert dns.open_repair(repair("tomorrow", later), later) is not None


def test_nothing_is_repaired_while_frozen(dns: Store) -> None:
    dns.freeze(90.0, "ann")
    assert dns.open_repair(repair("r1", 100.0), 100.0) is None


def test_a_cancelled_repair_counts_and_leaves_room_for_the_next(dns: Store) -> None:
    dns.open_repair(repair("r1", 100.0), 100.0)
    dns.cancel_job("r1", "ann", 101.0)
    assert dns.open_repair(repair("r2", 102.0), 102.0) is not None


def test_the_opening_of_a_repair_is_audited(dns: Store) -> None:
    dns.open_repair(repair("r1", 100.0), 100.0)
    assert [row.kind for row in dns.audit()][:2] == ["repair.opened", "job.queued"]


@pytest.mark.parametrize(
    ("old", "new", "judgement"),
    [
        (Tally(50, 0), Tally(0, 1), "going on"),
        (Tally(50, 0), Tally(0, 2), "worse"),
        (Tally(50, 0), Tally(18, 2), "kept"),
        (Tally(45, 5), Tally(8, 2), "going on"),
        (Tally(0, 9), Tally(0, 9), "going on"),
        (Tally(0, 0), Tally(5, 5), "worse"),
        (Tally(50, 0), Tally(CALLS, 0), "kept"),
    ],
)
def test_a_version_on_trial_is_judged_by_its_predecessor(
    old: Tally, new: Tally, judgement: str
) -> None:
    assert judged(Trial("dns", 2, 1, 100.0, old=old, new=new)) == judgement


def test_a_trial_counts_its_own_version_until_it_ends(dns: Store) -> None:
    dns.begin_trial(Trial("dns", 2, 1, 100.0, old=Tally(50, 0)))
    assert dns.count_trial("dns", 1, False, 101.0) is None
    first = dns.count_trial("dns", 2, False, 102.0)
    assert first is not None
    assert first[1] == "going on"
    second = dns.count_trial("dns", 2, False, 103.0)
    assert second is not None
    assert second[1] == "worse"
    assert dns.count_trial("dns", 2, False, 104.0) is None
    trial = dns.trial("dns")
    assert trial is not None
    assert (trial.ended, trial.outcome, trial.new) == (103.0, "worse", Tally(0, 2))


def test_undocumented_answers_are_counted_by_tool(dns: Store) -> None:
    for id, kind in (("c1", "schema"), ("c2", "malformed"), ("c3", "http"), ("c4", None)):
        dns.record(invocation(id, kind), 100.0)
    assert dns.drifting("dns", 1) == {"list_zones": 2}
    assert dns.drifting("dns", 2) == {}


def test_a_source_is_looked_at_once_in_a_while_by_whoever_comes_first(dns: Store) -> None:
    url = "https://api.example/openapi.json"
    assert dns.claim_watch(url, 1000.0, DAY) == Watched(url, 1000.0)
    assert dns.claim_watch(url, 2000.0, DAY) is None
    seen = Watched(url, 1000.0, etag='"7"', digest="d" * 64)
    dns.keep_watch(seen, 1000.0, "dns", changed=True)
    assert dns.watched(url) == seen
    assert next(row.kind for row in dns.audit()) == "drift.document"
    claimed = dns.claim_watch(url, 1001.0 + DAY, DAY)
    assert claimed is not None
    assert claimed.etag == '"7"'
