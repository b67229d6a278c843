"""Only who knows the PIN decides, and only once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, check_pin
from orchestrator.cli.enroll import choose_pin, replace_pin, replace_signing_key
from orchestrator.control.notify.targets import add_sealed_target, open_sealed_targets
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings
from registry.audit.heads import HeadSigner
from registry.errors import RowNotFound
from registry.models import Approval
from registry.secrets.pin import ATTEMPTS, LOCK_SECONDS, set_pin
from registry.store import Store
from tests.orchestrator.conftest import PIN


def approve(waiting: Approval, pin: str = PIN) -> Decision:
    return Decision(waiting.id, True, pin, by="test")


def test_the_pin_approves_and_its_owner_is_kept(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    decided = decide_with_pin(settings, store, approve(waiting), time.time())
    assert (decided.state, decided.refused) == ("approved", "")
    assert store.approvals.get(waiting.id).decided_by == "test"


def test_a_second_decision_is_refused_and_changes_nothing(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    reject = replace(approve(waiting), approve=False)
    assert decide_with_pin(settings, store, reject, time.time()).state == "rejected"
    again = decide_with_pin(settings, store, approve(waiting), time.time())
    assert (again.state, again.pin_wrong) == ("rejected", False)
    assert "rejected" in again.refused
    assert store.approvals.get(waiting.id).state == "rejected"


@pytest.mark.parametrize("pin", ["", "correct", PIN.upper(), PIN + " ", "\0"])
def test_another_pin_changes_nothing(
    settings: Settings, store: Store, waiting: Approval, pin: str
) -> None:
    decided = decide_with_pin(settings, store, approve(waiting, pin), time.time())
    assert (decided.state, decided.pin_wrong) == ("pending", True)
    assert store.approvals.get(waiting.id) == waiting


def test_after_five_wrong_pins_even_the_right_one_has_to_wait(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    now = time.time()
    for _ in range(ATTEMPTS):
        assert check_pin(settings, "wrong", now)
    locked = decide_with_pin(settings, store, approve(waiting), now + 1)
    assert (locked.pin_wrong, "try again in" in locked.refused) == (True, True)
    assert store.approvals.get(waiting.id).state == "pending"
    later = decide_with_pin(settings, store, approve(waiting), now + LOCK_SECONDS + 1)
    assert later.state == "approved"


def test_where_no_pin_was_chosen_nothing_can_be_decided(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    settings.pin.unlink()
    decided = decide_with_pin(settings, store, approve(waiting, ""), time.time())
    assert decided.refused
    assert store.approvals.get(waiting.id).state == "pending"


def test_what_has_expired_cannot_be_approved(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    decided = decide_with_pin(settings, store, approve(waiting), waiting.expires + 1)
    assert decided.refused
    assert store.approvals.get(waiting.id).state != "approved"


def test_an_approval_that_never_was_is_told_before_the_pin_counts(
    settings: Settings, store: Store
) -> None:
    with pytest.raises(RowNotFound):
        decide_with_pin(settings, store, Decision("none", True, "wrong", by="test"), time.time())


def test_a_decision_is_signed_and_counts_for_a_process_that_knows_only_the_public_half(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    serving = SignedPolicy(store, build_authority(settings))
    assert serving.find_obstacle() == ""
    decide_with_pin(settings, store, approve(waiting), time.time())
    assert store.approvals.claim(waiting.id, "p1", time.time(), serving.check_forgery) is not None


def test_where_the_key_was_replaced_behind_its_back_a_process_takes_no_decision(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    serving = SignedPolicy(store, build_authority(settings))
    assert serving.find_obstacle() == ""
    settings.pin.unlink()
    set_pin(settings.pin, "evil mule", cost=2**4)
    assert (
        decide_with_pin(settings, store, approve(waiting, "evil mule"), time.time()).state
        == "approved"
    )
    assert "another" in serving.find_obstacle() or "known before" in serving.find_obstacle()
    assert store.approvals.get(waiting.id).state == "approved"
    assert store.approvals.claim(waiting.id, "p1", time.time(), serving.check_forgery) is None


def test_a_new_process_and_the_pin_itself_are_refused_once_the_heads_name_the_key(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    settings.pin.unlink()
    choose_pin(settings, store.audit, PIN)
    settings.pin.unlink()
    with pytest.raises(OrchestratorError, match="backup"):
        choose_pin(settings, store.audit, "evil mule")
    set_pin(settings.pin, "evil mule", cost=2**4)
    decided = decide_with_pin(settings, store, approve(waiting, "evil mule"), time.time())
    assert (decided.state, decided.pin_wrong) == ("pending", True)
    assert SignedPolicy(store, build_authority(settings)).find_obstacle()


def test_a_changed_pin_keeps_the_key_and_a_new_key_ends_what_the_old_one_signed(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    settings.pin.unlink()
    first = choose_pin(settings, store.audit, PIN)
    serving = SignedPolicy(store, build_authority(settings))
    add_sealed_target(settings.push, "phone", "json://127.0.0.1/", first)
    replace_pin(settings, store.audit, first, "another pin")
    assert serving.find_key() == first.public
    assert decide_with_pin(settings, store, approve(waiting, PIN), time.time()).pin_wrong
    decide_with_pin(settings, store, approve(waiting, "another pin"), time.time())
    second = replace_signing_key(settings, store, first, "another pin")
    assert serving.find_key() == second.public
    assert open_sealed_targets(settings.push, second)[0].name == "phone"
    assert store.approvals.claim(waiting.id, "p1", time.time(), serving.check_forgery) is None
    assert HeadSigner(settings.heads).verify_audit(store.audit) is None
