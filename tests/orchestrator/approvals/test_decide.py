"""Only who knows the PIN decides, and only once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from orchestrator.clearance import Clearance
from orchestrator.enrolling import another_key, another_pin, choose_pin
from orchestrator.errors import OrchestratorError
from orchestrator.people import Decision, decide
from orchestrator.pin import authority, check_pin
from orchestrator.push import add_sealed, open_sealed
from orchestrator.settings import Settings
from registry.errors import Unknown
from registry.notary import Notary
from registry.pin import ATTEMPTS, LOCK_SECONDS, set_pin
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


def test_a_decision_is_signed_and_counts_for_a_process_that_knows_only_the_public_half(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    serving = Clearance(store, authority(settings))
    assert serving.held() == ""
    decide(settings, store, approve(waiting), time.time())
    assert store.claim(waiting.id, "p1", time.time(), serving.forgery) is not None


def test_where_the_key_was_replaced_behind_its_back_a_process_takes_no_decision(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    serving = Clearance(store, authority(settings))
    assert serving.held() == ""
    settings.pin.unlink()
    set_pin(settings.pin, "evil mule", cost=2**4)
    assert decide(settings, store, approve(waiting, "evil mule"), time.time()).state == "approved"
    assert "another" in serving.held() or "known before" in serving.held()
    assert store.approval(waiting.id).state == "approved"
    assert store.claim(waiting.id, "p1", time.time(), serving.forgery) is None


def test_a_new_process_and_the_pin_itself_are_refused_once_the_heads_name_the_key(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    settings.pin.unlink()
    choose_pin(settings, store, PIN)
    settings.pin.unlink()
    with pytest.raises(OrchestratorError, match="backup"):
        choose_pin(settings, store, "evil mule")
    set_pin(settings.pin, "evil mule", cost=2**4)
    decided = decide(settings, store, approve(waiting, "evil mule"), time.time())
    assert (decided.state, decided.pin_wrong) == ("pending", True)
    assert Clearance(store, authority(settings)).held()


def test_a_changed_pin_keeps_the_key_and_a_new_key_ends_what_the_old_one_signed(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    settings.pin.unlink()
    first = choose_pin(settings, store, PIN)
    serving = Clearance(store, authority(settings))
    add_sealed(settings.push, "phone", "json://127.0.0.1/", first)
    another_pin(settings, store, first, "another pin")
    assert serving.key() == first.public
    assert decide(settings, store, approve(waiting, PIN), time.time()).pin_wrong
    decide(settings, store, approve(waiting, "another pin"), time.time())
    second = another_key(settings, store, first, "another pin")
    assert serving.key() == second.public
    assert open_sealed(settings.push, second)[0].name == "phone"
    assert store.claim(waiting.id, "p1", time.time(), serving.forgery) is None
    assert Notary(settings.heads).verify(store) is None
