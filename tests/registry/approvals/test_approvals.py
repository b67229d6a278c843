from __future__ import annotations

from pathlib import Path
from threading import Barrier, Thread

import pytest

from registry.approvals.approvals import MAX_PENDING
from registry.errors import DuplicateRow, RowNotFound, TooManyWaiting
from registry.store import Store
from sandbox.errors import Frozen
from tests.registry.processes import race
from tests.registry.samples import approval, approve, entry, forgery


@pytest.fixture
def asked(dns: Store) -> Store:
    dns.approvals.add_pending(approval())
    return dns


def test_a_requested_approval_comes_back_as_it_was(asked: Store) -> None:
    assert asked.approvals.get("a1") == approval()
    assert asked.approvals.find("pending") == (approval(),)
    assert asked.approvals.find("approved") == ()


def test_an_approval_is_requested_once(asked: Store) -> None:
    with pytest.raises(DuplicateRow):
        asked.approvals.add_pending(approval(arguments={}))
    assert asked.approvals.get("a1") == approval()


def test_only_so_many_wait_until_one_is_decided(asked: Store) -> None:
    for number in range(2, MAX_PENDING + 1):
        asked.approvals.add_pending(approval(f"a{number}"))
    with pytest.raises(TooManyWaiting, match="toolwright approvals"):
        asked.approvals.add_pending(approval("beyond"))
    assert asked.approvals.decide("a1", False, by="ann", now=110.0, reason="no") is not None
    asked.approvals.add_pending(approval("next"))


@pytest.mark.parametrize(("yes", "state"), [(True, "approved"), (False, "rejected")])
def test_the_first_decision_wins(asked: Store, yes: bool, state: str) -> None:
    decided = asked.approvals.decide("a1", yes, by="ann", now=110.0, reason="fine")
    assert decided is not None
    assert (decided.state, decided.decided_by, decided.decided_at) == (state, "ann", 110.0)
    assert asked.approvals.decide("a1", not yes, by="bob", now=111.0) is None
    assert asked.approvals.get("a1") == decided


def test_nothing_is_decided_at_or_after_expiry(asked: Store) -> None:
    assert asked.approvals.decide("a1", True, by="ann", now=200.0) is None
    assert asked.approvals.get("a1").state == "pending"


def test_what_waited_too_long_expires(asked: Store) -> None:
    asked.approvals.add_pending(approval("a2"))
    approve(asked, "a2")
    asked.approvals.add_pending(approval("a3", expires=300.0))
    assert asked.approvals.expire_overdue(199.9) == ()
    assert asked.approvals.expire_overdue(200.0) == ("a1", "a2")
    assert asked.approvals.claim("a2", "p1", 150.0, forgery) is None
    assert asked.approvals.get("a3").state == "pending"


def test_only_an_approved_and_live_call_is_claimed(asked: Store) -> None:
    assert asked.approvals.claim("a1", "p1", 110.0, forgery) is None
    approve(asked, "a1")
    assert asked.approvals.claim("a1", "p1", 200.0, forgery) is None
    claimed = asked.approvals.claim("a1", "p1", 199.0, forgery)
    assert claimed is not None
    assert claimed.claimed_by == "p1"
    assert asked.approvals.claim("a1", "p2", 199.0, forgery) is None


def test_a_rejected_call_is_never_claimed(asked: Store) -> None:
    asked.approvals.decide("a1", False, by="ann", now=110.0)
    assert asked.approvals.claim("a1", "p1", 111.0, forgery) is None


def test_nothing_is_claimed_while_frozen(asked: Store) -> None:
    approve(asked, "a1")
    asked.processes.freeze(111.0, by="ann")
    with pytest.raises(Frozen):
        asked.approvals.claim("a1", "p1", 112.0, forgery)
    assert asked.approvals.get("a1").state == "approved"


def test_only_the_claimer_settles_and_once(asked: Store) -> None:
    approve(asked, "a1")
    asked.approvals.claim("a1", "p1", 111.0, forgery)
    assert asked.approvals.store_outcome("a1", "p2", "done", {}, 112.0) is None
    settled = asked.approvals.store_outcome("a1", "p1", "done", {"status": 201}, 112.0)
    assert settled is not None
    assert (settled.state, settled.outcome) == ("done", {"status": 201})
    assert asked.approvals.store_outcome("a1", "p1", "failed", {}, 113.0) is None


def test_every_step_of_an_approval_is_in_the_audit(asked: Store) -> None:
    approve(asked, "a1")
    asked.approvals.decide("a1", False, by="bob", now=110.0)
    asked.approvals.claim("a1", "p1", 111.0, forgery)
    asked.approvals.store_outcome("a1", "p1", "failed", {}, 112.0)
    kinds = [row.kind for row in asked.audit.find(since=0) if row.subject == "a1"]
    assert kinds == [f"approval.{state}" for state in ("pending", "approved", "claimed", "failed")]


def test_an_unknown_approval_is_an_error(store: Store) -> None:
    with pytest.raises(RowNotFound):
        store.approvals.get("nope")
    with pytest.raises(RowNotFound):
        store.approvals.decide("nope", True, by="ann", now=1.0)
    with pytest.raises(RowNotFound):
        store.approvals.claim("nope", "p1", 1.0, forgery)


def test_of_racing_processes_exactly_one_decides_and_one_claims(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    names = [f"a{number}" for number in range(10)]
    with Store.open(path) as store:
        store.servers.publish(entry(), now=1.0)
        for name in names:
            store.approvals.add_pending(approval(name))

    def grab(number: int) -> list[tuple[bool, bool]]:
        with Store.open(path, f"p{number}") as own:
            return [
                (
                    approve(own, name, f"p{number}") is not None,
                    own.approvals.claim(name, f"p{number}", 111.0, forgery) is not None,
                )
                for name in names
            ]

    won = race(grab, 4)
    for position in range(len(names)):
        assert sum(answers[position][0] for answers in won) == 1
        assert sum(answers[position][1] for answers in won) == 1
    with Store.open(path) as store:
        assert store.audit.verify_chains() is None


def test_of_racing_threads_exactly_one_claims(asked: Store) -> None:
    approve(asked, "a1")
    barrier, won = Barrier(8), []

    def grab(name: str) -> None:
        barrier.wait()
        if asked.approvals.claim("a1", name, 111.0, forgery):
            won.append(name)

    threads = [Thread(target=grab, args=(f"p{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [asked.approvals.get("a1").claimed_by] == won
