from __future__ import annotations

from pathlib import Path
from threading import Barrier, Thread

import pytest

from registry.errors import Duplicate, Unknown
from registry.store import Store
from sandbox.errors import Frozen
from tests.registry.processes import race
from tests.registry.samples import approval, approve, entry, forgery


@pytest.fixture
def asked(dns: Store) -> Store:
    dns.request_approval(approval())
    return dns


def test_a_requested_approval_comes_back_as_it_was(asked: Store) -> None:
    assert asked.approval("a1") == approval()
    assert asked.approvals("pending") == (approval(),)
    assert asked.approvals("approved") == ()


def test_an_approval_is_requested_once(asked: Store) -> None:
    with pytest.raises(Duplicate):
        asked.request_approval(approval(arguments={}))
    assert asked.approval("a1") == approval()


@pytest.mark.parametrize(("yes", "state"), [(True, "approved"), (False, "rejected")])
def test_the_first_decision_wins(asked: Store, yes: bool, state: str) -> None:
    decided = asked.decide("a1", yes, by="ann", now=110.0, reason="fine")
    assert decided is not None
    assert (decided.state, decided.decided_by, decided.decided_at) == (state, "ann", 110.0)
    assert asked.decide("a1", not yes, by="bob", now=111.0) is None
    assert asked.approval("a1") == decided


def test_nothing_is_decided_at_or_after_expiry(asked: Store) -> None:
    assert asked.decide("a1", True, by="ann", now=200.0) is None
    assert asked.approval("a1").state == "pending"


def test_what_waited_too_long_expires(asked: Store) -> None:
    asked.request_approval(approval("a2"))
    approve(asked, "a2")
    asked.request_approval(approval("a3", expires=300.0))
    assert asked.expire(199.9) == ()
    assert asked.expire(200.0) == ("a1", "a2")
    assert asked.claim("a2", "p1", 150.0, forgery) is None
    assert asked.approval("a3").state == "pending"


def test_only_an_approved_and_live_call_is_claimed(asked: Store) -> None:
    assert asked.claim("a1", "p1", 110.0, forgery) is None
    approve(asked, "a1")
    assert asked.claim("a1", "p1", 200.0, forgery) is None
    claimed = asked.claim("a1", "p1", 199.0, forgery)
    assert claimed is not None
    assert claimed.claimed_by == "p1"
    assert asked.claim("a1", "p2", 199.0, forgery) is None


def test_a_rejected_call_is_never_claimed(asked: Store) -> None:
    asked.decide("a1", False, by="ann", now=110.0)
    assert asked.claim("a1", "p1", 111.0, forgery) is None


def test_nothing_is_claimed_while_frozen(asked: Store) -> None:
    approve(asked, "a1")
    asked.freeze(111.0, by="ann")
    with pytest.raises(Frozen):
        asked.claim("a1", "p1", 112.0, forgery)
    assert asked.approval("a1").state == "approved"


def test_only_the_claimer_settles_and_once(asked: Store) -> None:
    approve(asked, "a1")
    asked.claim("a1", "p1", 111.0, forgery)
    assert asked.settle("a1", "p2", "done", {}, 112.0) is None
    settled = asked.settle("a1", "p1", "done", {"status": 201}, 112.0)
    assert settled is not None
    assert (settled.state, settled.outcome) == ("done", {"status": 201})
    assert asked.settle("a1", "p1", "failed", {}, 113.0) is None


def test_every_step_of_an_approval_is_in_the_audit(asked: Store) -> None:
    approve(asked, "a1")
    asked.decide("a1", False, by="bob", now=110.0)
    asked.claim("a1", "p1", 111.0, forgery)
    asked.settle("a1", "p1", "failed", {}, 112.0)
    kinds = [row.kind for row in asked.audit(since=0) if row.subject == "a1"]
    assert kinds == [f"approval.{state}" for state in ("pending", "approved", "claimed", "failed")]


def test_an_unknown_approval_is_an_error(store: Store) -> None:
    with pytest.raises(Unknown):
        store.approval("nope")
    with pytest.raises(Unknown):
        store.decide("nope", True, by="ann", now=1.0)
    with pytest.raises(Unknown):
        store.claim("nope", "p1", 1.0, forgery)


def test_of_racing_processes_exactly_one_decides_and_one_claims(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    names = [f"a{number}" for number in range(10)]
    with Store.open(path) as store:
        store.publish(entry(), now=1.0)
        for name in names:
            store.request_approval(approval(name))

    def grab(number: int) -> list[tuple[bool, bool]]:
        with Store.open(path, f"p{number}") as own:
            return [
                (
                    approve(own, name, f"p{number}") is not None,
                    own.claim(name, f"p{number}", 111.0, forgery) is not None,
                )
                for name in names
            ]

    won = race(grab, 4)
    for position in range(len(names)):
        assert sum(answers[position][0] for answers in won) == 1
        assert sum(answers[position][1] for answers in won) == 1
    with Store.open(path) as store:
        assert store.verify_audit() is None


def test_of_racing_threads_exactly_one_claims(asked: Store) -> None:
    approve(asked, "a1")
    barrier, won = Barrier(8), []

    def grab(name: str) -> None:
        barrier.wait()
        if asked.claim("a1", name, 111.0, forgery):
            won.append(name)

    threads = [Thread(target=grab, args=(f"p{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [asked.approval("a1").claimed_by] == won
