"""Only who knows the PIN decides, and only once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from orchestrator.people import Decision, check_pin, decide
from orchestrator.settings import Settings
from registry.errors import Unknown
from registry.pin import ATTEMPTS, LOCK_SECONDS
from registry.records import Approval
from registry.store import Store
from tests.orchestrator.conftest import PIN


def approve(waiting: Approval, pin: str = PIN) -> Decision:
    return Decision(waiting.id, True, pin, by="test")


def test_the_pin_approves_and_its_owner_is_kept(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    decided = decide(settings, store, approve(waiting), time.time())
    assert (decided.state, decided.refused) == ("approved", "")
    assert store.approval(waiting.id).decided_by == "test"


def test_a_second_decision_is_refused_and_changes_nothing(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    reject = replace(approve(waiting), approve=False)
    assert decide(settings, store, reject, time.time()).state == "rejected"
    again = decide(settings, store, approve(waiting), time.time())
    assert (again.state, again.pin_wrong) == ("rejected", False)
    assert "rejected" in again.refused
    assert store.approval(waiting.id).state == "rejected"


@pytest.mark.parametrize("pin", ["", "correct", PIN.upper(), PIN + " ", "\0"])
def test_another_pin_changes_nothing(
    settings: Settings, store: Store, waiting: Approval, pin: str
) -> None:
    decided = decide(settings, store, approve(waiting, pin), time.time())
    assert (decided.state, decided.pin_wrong) == ("pending", True)
    assert store.approval(waiting.id) == waiting


def test_after_five_wrong_pins_even_the_right_one_has_to_wait(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    now = time.time()
    for _ in range(ATTEMPTS):
        assert check_pin(settings, "wrong", now)
    locked = decide(settings, store, approve(waiting), now + 1)
    assert (locked.pin_wrong, "try again in" in locked.refused) == (True, True)
    assert store.approval(waiting.id).state == "pending"
    later = decide(settings, store, approve(waiting), now + LOCK_SECONDS + 1)
    assert later.state == "approved"


def test_where_no_pin_was_chosen_nothing_can_be_decided(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    settings.pin.unlink()
    decided = decide(settings, store, approve(waiting, ""), time.time())
    assert decided.refused
    assert store.approval(waiting.id).state == "pending"


def test_what_has_expired_cannot_be_approved(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    decided = decide(settings, store, approve(waiting), waiting.expires + 1)
    assert decided.refused
    assert store.approval(waiting.id).state != "approved"


def test_an_approval_that_never_was_is_told_before_the_pin_counts(
    settings: Settings, store: Store
) -> None:
    with pytest.raises(Unknown):
        decide(settings, store, Decision("none", True, "wrong", by="test"), time.time())
