"""What a person decides is what they were shown and what is done: rows edited between looking and
deciding, and approvals made new after their write was begun.
"""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from orchestrator.approvals.decide import Decision, decide_signed, decide_with_pin
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, open_key
from orchestrator.approvals.text import hash_approval
from orchestrator.cli.main import toolwright
from orchestrator.settings import Settings
from registry.approvals.decisions import sign_decision
from registry.audit.heads import HeadSigner
from registry.errors import ApprovalNotHeld
from registry.models import Approval
from registry.secrets.signing import Signer
from registry.store import Store
from sandbox.wire.exchange import CredentialUse, WriteStep
from tests.orchestrator.conftest import PIN, pin_record, settings, store
from tests.orchestrator.plane import Plane, plane
from tests.registry.samples import REPORTS, approval, entry, invocation

__all__ = ["pin_record", "plane", "settings", "store"]

STEP = WriteStep("dns", 1, "d" * 64, "create_zone", (CredentialUse("key", "dns.key", "0123"),))


@pytest.fixture
def waiting(store: Store) -> Approval:
    """A write that waits, whole: with a step, who asked, why, and what it would change."""
    now = time.time()
    store.servers.publish(entry(), REPORTS, now=now)
    store.servers.publish(replace(entry(), name="mail"), REPORTS, now=now)
    asked = replace(approval(), created=now, expires=now + 3600, steps=(STEP,), uses=(STEP,))
    said: dict[str, Any] = {
        "task": "add a zone",
        "reason": "the user asked",
        "session": "s1",
        "present": "{}",
    }
    store.approvals.add_pending(replace(asked, **said))
    return store.approvals.get(asked.id)


def sql(store: Store, statement: str, *values: object) -> None:
    """What somebody with a shell does to the database."""
    connection = sqlite3.connect(store.path, isolation_level=None, timeout=60)
    connection.execute(statement, values)
    connection.close()


def signer(settings: Settings) -> Signer:
    opened = open_key(settings, PIN, time.time()).signer
    assert opened is not None
    return opened


STEPS = json.dumps([{**vars(STEP), "server": "mail", "credentials": []}])
OTHER_ACCOUNT = json.dumps([{**vars(STEP), "credentials": [vars(CredentialUse("key", "b", "c"))]}])
EDITS = {
    "server": ("entry", "mail"),
    "version": ("version", 2),
    "tool": ("tool", "delete_zone"),
    "arguments": ("arguments", '{"name":"other.org"}'),
    "request": ("wire", '{"method":"DELETE","url":"https://a.b/","headers":[],"body_base64":""}'),
    "digest of the request": ("wire_digest", "0" * 64),
    "asked": ("created", 1.0),
    "expiry": ("expires", 9e9),
    "task": ("task", "something else"),
    "session": ("session", "s2"),
    "reason": ("reason", "no reason"),
    "what it would change": ("present", '{"name": "harmless"}'),
    "tools it goes through": ("steps", STEPS),
    "account": ("steps", OTHER_ACCOUNT),
    "tools it calls": ("uses", "[]"),
}


def edit(store: Store, approval: Approval, name: str) -> None:
    column, value = EDITS[name]
    sql(store, f"UPDATE approvals SET {column} = ? WHERE id = ?", value, approval.id)


@pytest.mark.parametrize("name", EDITS)
def test_a_request_edited_after_somebody_looked_is_not_approved(
    name: str, settings: Settings, store: Store, waiting: Approval
) -> None:
    looked = Decision(waiting.id, True, PIN, "test", digest=hash_approval(waiting))
    edit(store, waiting, name)
    decided = decide_with_pin(settings, store, looked, time.time())
    assert "look at it again" in decided.refused
    # Nor where who decides does not say what they saw, or signs what they saw.
    blind = replace(looked, digest="")
    assert decide_with_pin(settings, store, blind, time.time()).refused
    signed = decide_signed(store.approvals, waiting, looked, signer(settings), time.time())
    assert "look at it again" in signed.refused
    assert store.approvals.get(waiting.id).state == "pending"


@pytest.mark.parametrize("name", EDITS)
def test_a_request_edited_after_it_was_approved_is_not_carried_out(
    name: str, settings: Settings, store: Store, waiting: Approval
) -> None:
    looked = Decision(waiting.id, True, PIN, "test", digest=hash_approval(waiting))
    assert not decide_with_pin(settings, store, looked, time.time()).refused
    edit(store, waiting, name)
    forgery = SignedPolicy(store, build_authority(settings)).check_forgery
    assert store.approvals.claim(waiting.id, "p1", time.time(), forgery) is None
    assert store.approvals.get(waiting.id).state == "rejected"


def test_a_request_that_nobody_edited_is_approved_and_carried_out(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    looked = Decision(waiting.id, True, PIN, "test", digest=hash_approval(waiting))
    assert decide_with_pin(settings, store, looked, time.time()).state == "approved"
    forgery = SignedPolicy(store, build_authority(settings)).check_forgery
    assert store.approvals.claim(waiting.id, "p1", time.time(), forgery) is not None


@pytest.mark.parametrize("name", ["server", "expiry", "account"])
def test_the_page_decides_only_what_it_showed(
    name: str, plane: Plane, store: Store, waiting: Approval
) -> None:
    (shown,) = plane.ask("GET", "/approvals").json()
    edit(store, waiting, name)
    body = {"decision": "approve", "pin": PIN, "digest": shown["digest"]}
    refused = plane.ask("POST", f"/approvals/{waiting.id}", json=body)
    assert (refused.status_code, "look at it again" in refused.text) == (409, True)
    assert store.approvals.get(waiting.id).state == "pending"


def test_the_page_decides_what_it_showed(plane: Plane, store: Store, waiting: Approval) -> None:
    (shown,) = plane.ask("GET", "/approvals").json()
    for said in ("dns.key", "POST https://api.example/zones", "version 1", "the user asked"):
        assert said in shown["text"]
    body = {"decision": "approve", "pin": PIN, "digest": shown["digest"]}
    assert plane.ask("POST", f"/approvals/{waiting.id}", json=body).status_code == 200


def run(settings: Settings, *words: str) -> Result:
    given = {"TOOLWRIGHT_HOME": str(settings.home)}
    return CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)


@pytest.fixture
def pin_file(tmp_path: Path) -> str:
    (tmp_path / "pin").write_text(PIN)
    return str(tmp_path / "pin")


def test_the_terminal_decides_only_what_a_script_looked_at(
    settings: Settings, store: Store, waiting: Approval, pin_file: str
) -> None:
    (shown,) = json.loads(run(settings, "approvals", "--json").stdout)
    edit(store, waiting, "expiry")
    words = ("approve", waiting.id, "--pin-file", pin_file, "--digest", shown["digest"])
    assert run(settings, *words).exit_code == 1
    assert store.approvals.get(waiting.id).state == "pending"


def test_the_terminal_decides_what_a_script_looked_at(
    settings: Settings, store: Store, waiting: Approval, pin_file: str
) -> None:
    (shown,) = json.loads(run(settings, "approvals", "--json").stdout)
    # So that what is decided is not sent as well.
    store.processes.freeze(time.time(), "test", "")
    words = ("approve", waiting.id, "--pin-file", pin_file, "--digest", shown["digest"])
    told = run(settings, *words)
    assert (told.exit_code, shown["text"] in told.stdout) == (0, True)
    assert store.approvals.get(waiting.id).state == "approved"


def test_a_signature_is_of_one_approval_and_one_expiry(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    now, key = time.time(), signer(settings)
    store.approvals.add_pending(replace(waiting, id="a2"))
    forgery = SignedPolicy(store, build_authority(settings)).check_forgery
    for approved in (waiting, replace(waiting, id="a2", expires=now + 10**6)):
        signed = sign_decision(approved, True, "terminal", now, key)
        sql(
            store,
            "UPDATE approvals SET state = 'approved', decided_by = 'terminal', decided_at = ?, "
            "decision = ? WHERE id = 'a2'",
            now,
            signed,
        )
        assert store.approvals.claim("a2", "p1", now, forgery) is None
        assert store.approvals.get("a2").state == "rejected"


# What a shell does after `serve` was killed while it sent an approved write.
REOPENED = {
    "call cut loose": ("UPDATE invocations SET approval = NULL",),
    "call deleted": ("DELETE FROM invocations WHERE id = 'w1'",),
    "claim set back": ("UPDATE approvals SET state = 'claimed', invocation = '', serial = 0",),
    "approval set back": ("UPDATE approvals SET state = 'approved', claimed_by = ''",),
    "all set back": (
        "UPDATE approvals SET state = 'approved', claimed_by = '', invocation = '', serial = 0",
        "DELETE FROM invocations WHERE id = 'w1'",
    ),
    "call cut loose and claim set back": (
        "UPDATE invocations SET approval = NULL",
        "UPDATE approvals SET state = 'claimed'",
    ),
}


@pytest.fixture
def begun(store: Store, settings: Settings, waiting: Approval) -> Approval:
    """An approval whose write a process had begun to send when it was killed."""
    now = time.time()
    decide_with_pin(settings, store, Decision(waiting.id, True, PIN, "test"), now)
    forgery = SignedPolicy(store, build_authority(settings)).check_forgery
    assert store.approvals.claim(waiting.id, "p1", now, forgery) is not None
    call = invocation("w1", tool="create_zone", access="write", approval=waiting.id, process="p1")
    store.calls.store_intent(call, now)
    return store.approvals.get(waiting.id)


@pytest.mark.parametrize("name", REOPENED)
def test_a_write_that_was_begun_is_never_made_new(
    name: str, settings: Settings, store: Store, begun: Approval
) -> None:
    for statement in REOPENED[name]:
        sql(store, statement)
    assert HeadSigner(settings.heads).verify_audit(store.audit) is not None
    now = time.time()
    store.calls.settle_unknown(["p1"], now)
    forgery = SignedPolicy(store, build_authority(settings)).check_forgery
    assert store.approvals.claim(begun.id, "p2", now, forgery) is None
    assert store.approvals.get(begun.id).state in ("unknown", "rejected")
    again = invocation("w2", tool="create_zone", access="write", approval=begun.id, process="p1")
    with pytest.raises(ApprovalNotHeld):
        store.calls.store_intent(again, now)


def test_a_write_that_was_begun_is_not_asked_anew(
    settings: Settings, store: Store, begun: Approval
) -> None:
    sql(store, "UPDATE approvals SET state = 'pending', decision = '', decided_at = NULL")
    sql(store, "DELETE FROM invocations WHERE id = 'w1'")
    decided = decide_with_pin(settings, store, Decision(begun.id, True, PIN, "test"), time.time())
    assert (decided.state, bool(decided.refused)) == ("rejected", True)
    assert "may have been sent" in store.approvals.get(begun.id).decision_reason


def test_a_write_that_was_begun_ends_unknown_and_the_audit_is_whole(
    settings: Settings, store: Store, begun: Approval
) -> None:
    assert (begun.state, begun.invocation, begun.serial) == ("sending", "w1", 1)
    assert HeadSigner(settings.heads).verify_audit(store.audit) is None
    store.calls.settle_unknown(["p1"], time.time())
    assert store.approvals.get(begun.id).state == "unknown"
    assert HeadSigner(settings.heads).verify_audit(store.audit) is None


def test_a_claim_whose_write_was_not_begun_is_carried_out_by_the_next(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    now = time.time()
    decide_with_pin(settings, store, Decision(waiting.id, True, PIN, "test"), now)
    forgery = SignedPolicy(store, build_authority(settings)).check_forgery
    assert store.approvals.claim(waiting.id, "p1", now, forgery) is not None
    store.calls.settle_unknown(["p1"], now)
    assert store.approvals.claim(waiting.id, "p2", now, forgery) is not None
    call = invocation("w1", tool="create_zone", access="write", approval=waiting.id, process="p2")
    store.calls.store_intent(call, now)
    assert store.approvals.store_outcome(waiting.id, "p2", "done", {}, now) is not None
    assert HeadSigner(settings.heads).verify_audit(store.audit) is None
