"""A row is an approval where a person signed exactly that request, and nothing else is one."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.approvals.authority import Authority
from registry.approvals.decisions import find_decision_problem, sign_decision, sign_delegation
from registry.audit.heads import HeadSigner
from registry.errors import KeyChanged, PinUnusable
from registry.models import Approval
from registry.secrets.pin import replace_key, set_pin, verify_pin
from registry.secrets.signing import Signer, compute_fingerprint
from registry.store import Store
from sandbox.wire.exchange import digest_request
from tests.registry.samples import SIGNER, approval, approve, forgery, invocation

OTHER = Signer.generate()


def decided(signer: Signer = SIGNER, approve: bool = True, **changes: Any) -> Approval:
    """An approval as its row holds it after a decision at 110."""
    shown = approval(**changes)
    signed = sign_decision(shown, approve, "ann", 110.0, signer)
    return replace(shown, decision=signed, decided_by="ann", decided_at=110.0, state="approved")


def test_a_signed_approval_has_no_problem() -> None:
    assert find_decision_problem(decided(), SIGNER.public, 150.0) == ""


WIRE = approval().wire
CHANGES: dict[str, dict[str, Any]] = {
    "id": {"id": "a2"},
    "server": {"entry": "mail"},
    "version": {"version": 2},
    "tool": {"tool": "delete_zone"},
    "arguments": {"arguments": {"name": "example.com", "big": 2**60}},
    "an argument's type": {"arguments": {"name": "example.org", "big": str(2**60)}},
    "method": {"wire": replace(WIRE, method="DELETE")},
    "url": {"wire": replace(WIRE, url=WIRE.url + "/all")},
    "headers": {"wire": replace(WIRE, headers=(("accept", "text/plain"),))},
    "body": {"wire": replace(WIRE, body=b"")},
    "digest": {"wire_digest": "0" * 64},
    "a wire with its digest": {
        "wire": replace(WIRE, body=b""),
        "wire_digest": digest_request(replace(WIRE, body=b"")),
    },
    "expiry": {"expires": 10**9},
    "who": {"decided_by": "bob"},
    "when": {"decided_at": 111.0},
    "no decision": {"decision": ""},
    "no JSON": {"decision": "approve"},
    "a list": {"decision": "[]"},
    "too much": {"decision": "{}" + " " * 100_000},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_of_a_signed_row_is_seen(change: dict[str, Any]) -> None:
    assert find_decision_problem(replace(decided(), **change), SIGNER.public, 150.0)


@pytest.mark.parametrize(("moment", "good"), [(109.0, False), (110.0, True), (200.0, False)])
def test_a_decision_holds_from_its_time_until_expiry(moment: float, good: bool) -> None:
    assert (find_decision_problem(decided(), SIGNER.public, moment) == "") == good


def test_a_signed_rejection_is_no_approval() -> None:
    assert "no approval" in find_decision_problem(decided(approve=False), SIGNER.public, 150.0)


def test_anothers_signature_counts_for_nothing() -> None:
    assert "does not fit" in find_decision_problem(decided(OTHER), SIGNER.public, 150.0)


@given(st.binary(max_size=200), st.sampled_from(["body", "signature", "delegation"]))
def test_rubbish_in_a_signed_decision_is_a_problem_and_never_an_error(
    rubbish: bytes, part: str
) -> None:
    good = decided()
    value = {**json.loads(good.decision), part: rubbish.decode("latin-1")}
    for text in (json.dumps(value), rubbish.decode("latin-1")):
        assert find_decision_problem(replace(good, decision=text), SIGNER.public, 150.0)


@given(st.sampled_from([field.name for field in fields(Approval)]), st.data())
def test_no_field_that_is_carried_out_can_be_changed(name: str, data: st.DataObject) -> None:
    carried_out = {"id", "entry", "version", "tool", "arguments", "wire", "wire_digest", "expires"}
    good = decided()
    text = st.text("abcdef0123456789", min_size=1, max_size=64)
    values: dict[str, st.SearchStrategy[Any]] = {
        "version": st.integers(0, 100),
        "expires": st.floats(151.0, 10**10),
        "arguments": st.dictionaries(text, st.integers() | text, max_size=3),
        "wire": st.builds(lambda body: replace(WIRE, body=body), st.binary(max_size=20)),
    }
    changed = replace(good, **{name: data.draw(values.get(name, text))})
    if name in carried_out and changed != good:
        assert find_decision_problem(changed, SIGNER.public, 150.0)


def linked(signer: Signer, until: float = 500.0, made: float = 100.0) -> Approval:
    """An approval that a link's key signed, with the word of `signer` for that key."""
    own = Signer.generate()
    shown = approval()
    word = sign_delegation(signer, own.public, made, until)
    signed = sign_decision(shown, True, "link", 110.0, own, word)
    return replace(shown, decision=signed, decided_by="link", decided_at=110.0)


def test_a_key_that_the_persons_key_vouches_for_may_decide() -> None:
    assert find_decision_problem(linked(SIGNER), SIGNER.public, 150.0) == ""


@pytest.mark.parametrize(
    "row", [linked(OTHER), linked(SIGNER, until=110.0), linked(SIGNER, made=111.0)]
)
def test_a_key_that_nobody_vouches_for_at_that_time_may_not(row: Approval) -> None:
    assert "may not decide" in find_decision_problem(row, SIGNER.public, 150.0)


def test_what_was_signed_for_another_purpose_is_no_delegation() -> None:
    row = linked(SIGNER)
    value = json.loads(row.decision)
    body = {**value["delegation"]["body"], "kind": "rule"}
    value["delegation"] = {"body": body, "signature": SIGNER.sign(body)}
    assert find_decision_problem(replace(row, decision=json.dumps(value)), SIGNER.public, 150.0)


def sql(store: Store, *statements: str) -> None:
    """What somebody with a shell does to the database."""
    connection = sqlite3.connect(store.path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


APPROVED = "UPDATE approvals SET state = 'approved', decided_by = 'ann', decided_at = 110 WHERE id="


@pytest.fixture
def asked(dns: Store) -> Store:
    dns.approvals.add_pending(approval())
    dns.approvals.add_pending(approval("a2", arguments={"name": "other.org"}))
    return dns


def test_a_row_written_by_hand_is_never_claimed_and_the_audit_says_so(asked: Store) -> None:
    sql(asked, APPROVED + "'a1'")
    assert asked.approvals.claim("a1", "p1", 150.0, forgery) is None
    after = asked.approvals.get("a1")
    assert (after.state, "nobody signed it" in after.decision_reason) == ("rejected", True)
    assert asked.audit.find(limit=1)[0].kind == "approval.forged"
    assert asked.approvals.claim("a1", "p1", 151.0, forgery) is None


def test_the_signature_of_another_approval_is_not_this_ones(asked: Store) -> None:
    approve(asked, "a1")
    sql(
        asked,
        APPROVED + "'a2'",
        "UPDATE approvals SET decision = (SELECT decision FROM approvals "
        "WHERE id = 'a1') WHERE id = 'a2'",
    )
    assert asked.approvals.claim("a2", "p1", 150.0, forgery) is None
    assert asked.approvals.claim("a1", "p1", 150.0, forgery) is not None


@pytest.mark.parametrize(
    "change",
    [
        'arguments = \'{"name":"other.org"}\'',
        "wire = replace(wire, 'POST', 'DELETE')",
        "wire = 'rubbish'",
        "wire = '{}'",
        "version = 7",
        "tool = 'delete_zone'",
        "expires = 1e12",
    ],
)
def test_a_row_changed_after_the_decision_is_not_carried_out(asked: Store, change: str) -> None:
    approve(asked, "a1")
    sql(asked, f"UPDATE approvals SET {change} WHERE id = 'a1'")
    assert asked.approvals.claim("a1", "p1", 150.0, forgery) is None


def test_a_request_changed_between_looking_and_deciding_is_not_carried_out(asked: Store) -> None:
    shown = asked.approvals.get("a1")
    signed = sign_decision(shown, True, "ann", 110.0, SIGNER)
    sql(asked, "UPDATE approvals SET arguments = '{}' WHERE id = 'a1'")
    asked.approvals.decide("a1", True, by="ann", now=110.0, signed=signed)
    assert asked.approvals.claim("a1", "p1", 150.0, forgery) is None


def test_an_approval_that_was_carried_out_is_not_made_new_by_hand(asked: Store) -> None:
    approve(asked, "a1")
    assert asked.approvals.claim("a1", "p1", 120.0, forgery) is not None
    call = invocation("w1", tool="create_zone", access="write", approval="a1", process="p1")
    asked.calls.store_intent(call, 121.0)
    asked.calls.record(call, 122.0)
    asked.approvals.store_outcome("a1", "p1", "done", {}, 123.0)
    sql(
        asked,
        "UPDATE approvals SET state = 'approved', claimed_by = '' WHERE id = 'a1'",
        "UPDATE invocations SET approval = NULL WHERE id = 'w1'",
    )
    assert asked.approvals.claim("a1", "p2", 150.0, forgery) is None
    assert "before" in asked.approvals.get("a1").decision_reason


def test_only_signed_approvals_that_were_done_vouch_for_an_operation(asked: Store) -> None:
    of = ("dns", 1, "create_zone", forgery, 50)
    for number in range(3, 6):
        asked.approvals.add_pending(approval(f"a{number}"))
    for name in ("a1", "a2", "a3"):
        approve(asked, name)
    sql(asked, "UPDATE approvals SET state = 'done' WHERE id IN ('a1', 'a2', 'a4')")
    assert asked.approvals.count_approved_writes(*of) == 2
    assert asked.approvals.count_approved_writes("dns", 2, "create_zone", forgery, 50) == 0
    sql(asked, "UPDATE approvals SET decision = (SELECT decision FROM approvals WHERE id = 'a1')")
    assert asked.approvals.count_approved_writes(*of) == 1


@pytest.fixture
def pin(tmp_path: Path) -> Path:
    set_pin(tmp_path / "pin.json", "correct horse", cost=16)
    return tmp_path / "pin.json"


def opened(pin: Path) -> Signer:
    signer = verify_pin(pin, "correct horse", 1.0).signer
    assert signer is not None
    return signer


def swap(pin: Path) -> None:
    """Put another key and PIN in the place of a person's."""
    pin.unlink()
    set_pin(pin, "evil mule", cost=16)


def test_a_process_keeps_to_the_key_it_knew_first(pin: Path) -> None:
    authority = Authority(pin, str)
    known = authority.load_key()
    content = pin.read_bytes()
    swap(pin)
    with pytest.raises(KeyChanged, match=compute_fingerprint(known)):
        authority.load_key()
    pin.write_bytes(content)
    assert authority.load_key() == known


def test_a_new_process_refuses_a_key_that_the_audit_heads_do_not_name(
    pin: Path, dns: Store, tmp_path: Path
) -> None:
    notary = HeadSigner(tmp_path / "audit")
    notary.sign_heads(dns.audit, 1.0, compute_fingerprint(Authority(pin, str).load_key()))
    swap(pin)
    with pytest.raises(KeyChanged):
        Authority(pin, HeadSigner(tmp_path / "audit").find_pinned_fingerprint).load_key()


def test_a_key_that_the_old_one_named_is_taken_over(pin: Path, dns: Store, tmp_path: Path) -> None:
    running = Authority(pin, str)
    notary = HeadSigner(tmp_path / "audit")
    notary.sign_heads(dns.audit, 1.0, compute_fingerprint(running.load_key()))
    second = replace_key(pin, opened(pin), "correct horse")
    third = replace_key(pin, second, "correct horse")
    assert running.load_key() == third.public
    assert Authority(pin, notary.find_pinned_fingerprint).load_key() == third.public


def test_where_there_is_no_key_nothing_counts(tmp_path: Path) -> None:
    with pytest.raises(PinUnusable):
        Authority(tmp_path / "pin.json", str).load_key()


def test_a_home_whose_pin_has_no_key_yet_says_how_to_make_one(tmp_path: Path) -> None:
    pin = tmp_path / "pin.json"
    pin.write_text(json.dumps({"salt": "00", "hash": "00"}))
    with pytest.raises(PinUnusable, match="--key"):
        Authority(pin, str).load_key()


def test_the_heads_name_the_key_once_and_again_when_it_is_another(
    dns: Store, tmp_path: Path
) -> None:
    notary = HeadSigner(tmp_path / "audit")
    for moment, key in enumerate(["", "one", "one", "", "two"]):
        notary.sign_heads(dns.audit, float(moment), key)
    lines = (tmp_path / "audit" / "heads.jsonl").read_text().splitlines()
    named = [json.loads(line).get("decisions") for line in lines]
    assert named == [None, "one", "two"]
    assert HeadSigner(tmp_path / "audit").find_pinned_fingerprint() == "two"
    assert notary.verify_audit(dns.audit) is None
