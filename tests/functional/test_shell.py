"""A client whose model has a shell, as the user that Toolwright runs as, cannot approve its own
write: it reads and writes every file and row, runs every command, and does not know the PIN.

What such a shell can do all the same is in docs/security.md.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from orchestrator.approvals.signing_key import build_authority, check_pin
from registry.approvals.decisions import sign_decision
from registry.errors import KeyChanged
from registry.models import Approval
from registry.secrets.pin import ATTEMPTS, set_pin, verify_pin
from registry.secrets.signing import Signer, compute_fingerprint
from sandbox.sanitize import clean_json
from tests.functional.home import PIN, ROOT, Home, until
from tests.functional.letters import Letters, letters_api, letters_home
from tests.functional.peer import Peer

OWN_PIN = "the model's own"
NO_PIN_LEFT = "too many wrong PINs"


@pytest.fixture(scope="module")
def letters() -> Iterator[Letters]:
    with letters_api() as api:
        yield api


@pytest.fixture(scope="module")
def home(
    any_engine: str, letters: Letters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Home]:
    with letters_home(tmp_path_factory.mktemp("shell"), any_engine, letters) as home:
        yield home


@pytest.fixture(scope="module")
def client(home: Home) -> Iterator[Peer]:
    with Peer(home, "serve") as peer:
        yield peer


def asked(client: Peer, home: Home, letter: str) -> Approval:
    """The approval that a letter waits for."""
    arguments = {"body": {"text": letter}}
    pending = client.value("call_write", tool="letters.send_letter", arguments=arguments)
    assert pending["state"] == "pending"
    with home.store() as store:
        return store.approvals.get(pending["approval"])


def sql(home: Home, statement: str, *values: object) -> None:
    connection = sqlite3.connect(home.path / "toolwright.db", isolation_level=None, timeout=60)
    connection.execute(statement, values)
    connection.close()


def state(home: Home, approval: Approval) -> str:
    with home.store() as store:
        return store.approvals.get(approval.id).state


def seen_to_be_forged(home: Home, approval: Approval) -> bool:
    until(lambda: state(home, approval) == "rejected", f"{approval.id} is seen to be forged")
    with home.store() as store:
        kinds = [row.kind for row in store.audit.find_rows_about(approval.id)]
    return "approval.forged" in kinds


APPROVED = "UPDATE approvals SET state='approved', decided_by='terminal', decided_at=?, decision=?"


def test_a_person_with_the_pin_can(client: Peer, home: Home, letters: Letters) -> None:
    approval = asked(client, home, "benign")
    home.person("approve", approval.id)
    assert (state(home, approval), letters.sent[-1]) == ("done", "benign")


def test_a_client_is_shown_nothing_invisible_and_the_api_gets_what_was_approved(
    client: Peer, home: Home, letters: Letters
) -> None:
    letter = "plain \U000e0041\u202e\x1b[31m\u200b letter"
    approval = asked(client, home, letter)
    home.person("approve", approval.id)
    assert letters.sent[-1] == letter
    for shown in (
        client.call("status", approval=approval.id),
        client.call("status"),
        client.call("find", task=letter),
    ):
        assert clean_json(shown) == shown
    assert "plain" in json.dumps(client.call("status", approval=approval.id))


def test_a_row_written_by_hand(client: Peer, home: Home, letters: Letters) -> None:
    approval = asked(client, home, "by row")
    sql(home, f"{APPROVED} WHERE id=?", time.time(), "", approval.id)
    assert seen_to_be_forged(home, approval)
    assert "by row" not in letters.sent
    told = home.read("audit", "search", "approval.forged")
    assert approval.id in {row["subject"] for row in told}


def test_a_signature_of_its_own(client: Peer, home: Home, letters: Letters) -> None:
    approval = asked(client, home, "own key")
    now = time.time()
    signed = sign_decision(approval, True, "terminal", now, Signer.generate())
    sql(home, f"{APPROVED} WHERE id=?", now, signed, approval.id)
    assert seen_to_be_forged(home, approval)
    assert "own key" not in letters.sent


def test_the_signature_of_another_approval_or_of_a_changed_one(
    client: Peer, home: Home, letters: Letters
) -> None:
    good = asked(client, home, "good")
    home.person("approve", good.id)
    with home.store() as store:
        decided = store.approvals.get(good.id)
    copied = asked(client, home, "copied")
    sql(home, f"{APPROVED} WHERE id=?", decided.decided_at, decided.decision, copied.id)
    assert seen_to_be_forged(home, copied)
    # The same approval once more: its signature fits, and its call has run.
    sql(home, "UPDATE approvals SET state='approved', claimed_by='' WHERE id=?", good.id)
    assert seen_to_be_forged(home, good)
    assert letters.sent.count("good") == 1
    assert "copied" not in letters.sent


def test_an_approval_that_has_expired(client: Peer, home: Home, letters: Letters) -> None:
    approval = asked(client, home, "too late")
    expired = replace(approval, expires=time.time() - 1)
    signer = verify_pin(home.settings.pin, PIN, time.time()).signer
    assert signer is not None
    signed = sign_decision(expired, True, "terminal", expired.created, signer)
    sql(home, f"{APPROVED} WHERE id=?", expired.created, signed, approval.id)
    assert seen_to_be_forged(home, approval)
    assert "too late" not in letters.sent


def test_the_command_without_the_pin_and_with_wrong_ones(
    client: Peer, home: Home, letters: Letters
) -> None:
    approval = asked(client, home, "guessed")
    assert home.run("approve", approval.id).returncode != 0
    record = home.settings.pin.read_bytes()
    for number in range(ATTEMPTS - 1):
        assert check_pin(home.settings, f"{number:08}", time.time())
    guess = home.path / "guess"
    guess.write_text("11111111")
    told = []
    for _ in range(2):
        done = home.run("approve", approval.id, "--pin-file", str(guess))
        told.append((done.returncode, NO_PIN_LEFT in done.stdout + done.stderr))
    assert told == [(1, False), (1, True)]
    assert home.approve(approval.id).status_code == 403
    home.settings.pin.write_bytes(record)
    assert (state(home, approval), "guessed" in letters.sent) == ("pending", False)


def test_the_control_planes_token(client: Peer, home: Home, letters: Letters) -> None:
    approval = asked(client, home, "token")
    assert home.control().token
    for pin in ("", "approve", OWN_PIN):
        answer = home.approve(approval.id, pin)
        assert answer.status_code == 403
    assert home.post("/decide?token=made-up").status_code in (403, 404)
    assert (state(home, approval), "token" in letters.sent) == ("pending", False)


def test_a_page_request_once_more(client: Peer, home: Home, letters: Letters) -> None:
    approval = asked(client, home, "replayed")
    body = {"decision": "approve", "pin": PIN}
    assert home.decide(approval.id, **body).status_code == 200
    until(lambda: state(home, approval) == "done", "the letter is sent")
    assert home.decide(approval.id, **body).status_code == 409
    assert letters.sent.count("replayed") == 1


def test_the_file_that_holds_the_key(home: Home) -> None:
    signer = verify_pin(home.settings.pin, PIN, time.time()).signer
    assert signer is not None
    for path in home.path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert signer.export_secret() not in content, path
            assert signer.export_secret().hex().encode() not in content, path
            assert PIN.encode() not in content, path


@contextmanager
def other_key(home: Home) -> Iterator[None]:
    """Another PIN and key in the place of the person's, for a while."""
    kept = home.settings.pin.with_suffix(".kept")
    shutil.move(home.settings.pin, kept)
    set_pin(home.settings.pin, OWN_PIN, cost=2**4)
    (home.path / "own").write_text(OWN_PIN)
    try:
        yield
    finally:
        shutil.move(kept, home.settings.pin)


def test_a_pin_of_its_own(client: Peer, home: Home, letters: Letters) -> None:
    approval = asked(client, home, "swapped")
    known = build_authority(home.settings).load_key()
    with other_key(home):
        done = home.run("approve", approval.id, "--pin-file", str(home.path / "own"))
        assert (done.returncode, compute_fingerprint(known) in done.stdout + done.stderr) == (
            1,
            True,
        )
        own = verify_pin(home.settings.pin, OWN_PIN, time.time()).signer
        assert own is not None
        signed = sign_decision(approval, True, "terminal", time.time(), own)
        sql(home, f"{APPROVED} WHERE id=?", json.loads(signed)["body"]["decided_at"], signed,
            approval.id)  # fmt: skip
        # The process that serves holds to the key it knows; a new one to the signed heads.
        with Peer(home, "serve", "--no-control") as second:
            for peer in (client, second):
                assert "known before" in peer.value("status")["approvals_held"]
        with pytest.raises(KeyChanged):
            build_authority(home.settings).load_key()
        checks = {check["name"]: check for check in json.loads(home.run("doctor", "--json").stdout)}
        assert checks["PIN"]["verdict"] == "failed"
        assert "swapped" not in letters.sent
    assert seen_to_be_forged(home, approval)
    assert client.value("status")["approvals_held"] == ""
    assert "swapped" not in letters.sent


def test_a_setup_of_its_own(client: Peer, home: Home, letters: Letters) -> None:
    kept = home.settings.pin.with_suffix(".kept")
    shutil.move(home.settings.pin, kept)
    try:
        own = home.path / "own"
        own.write_text(OWN_PIN)
        done = home.run("setup", "--pin-file", str(own))
        assert (done.returncode, "backup" in done.stdout + done.stderr) == (1, True)
        assert not home.settings.pin.exists()
    finally:
        shutil.move(kept, home.settings.pin)


def test_a_record_of_its_own(client: Peer, home: Home, letters: Letters) -> None:
    """Trust is kept in rows that anyone can write; what exempts a write is signed as well."""
    sql(
        home,
        "UPDATE trust SET total=500, successful=500, counted=500, ordinal=500, window=?, "
        "ladder_successes=500, version_successes=500",
        "1" * 50,
    )
    approval = asked(client, home, "made up")
    assert (state(home, approval), "made up" in letters.sent) == ("pending", False)


def test_a_rule_of_its_own(client: Peer, home: Home, letters: Letters) -> None:
    now = time.time()
    body: dict[str, object] = {
        "kind": "rule",
        "id": "r1",
        "server": "letters",
        "tool": "send_letter",
        "version": None,
        "digest": "",
        "where": [],
        "created": now - 1,
        "expires": now + 3600,
        "max_uses": None,
        "by": "terminal",
        "approval": "",
        "author": "compiler",
        "request": {"method": "POST", "url": f"{letters.url}/letters", "document": ""},
        "operation": "",
    }
    sql(
        home,
        "INSERT INTO rules VALUES ('r1', 'letters', 'send_letter', ?, ?, ?, 0, NULL, '')",
        json.dumps(body),
        Signer.generate().sign(body),
        now,
    )
    approval = asked(client, home, "own rule")
    assert (state(home, approval), "own rule" in letters.sent) == ("pending", False)
    assert home.read("rules", "list", "--all")[-1]["state"] == "not signed"


def test_a_classification_of_its_own(client: Peer, home: Home, letters: Letters) -> None:
    assert home.run("classify", "letters.send_letter", "read").returncode != 0
    body = {
        "kind": "override",
        "server": "letters",
        "operation": "sendLetter",
        "level": "read",
        "requests": [["POST", f"{letters.url}/letters"]],
        "changed": 1.0,
        "by": "terminal",
    }
    sql(
        home,
        "INSERT INTO overrides VALUES ('letters', 'sendLetter', 'read', ?, ?, 1.0, 'terminal')",
        json.dumps(body),
        Signer.generate().sign(body),
    )
    refused = client.call(
        "call_read", tool="letters.send_letter", arguments={"body": {"text": "a read"}}
    )
    assert refused["isError"]
    assert "a read" not in letters.sent


def test_a_rule_of_the_persons_own_is_used_shown_and_revoked(
    client: Peer, home: Home, letters: Letters
) -> None:
    """The benign twin of all these rules: what a person allows beforehand needs nobody."""
    approval = asked(client, home, "weekly news 1")
    always = ("--always", "--where", "body.text=weekly news *", "--max", "2")
    home.person("approve", approval.id, *always)
    (rule,) = home.read("rules")
    sent = client.call(
        "call_write", tool="letters.send_letter", arguments={"body": {"text": "weekly news 2"}}
    )
    assert sent["_meta"]["toolwright"]["rule"] == rule["rule"]
    assert letters.sent[-1] == "weekly news 2"
    other = asked(client, home, "other news")
    assert state(home, other) == "pending"
    assert "rule.used" in {row["kind"] for row in home.read("audit", "search", rule["rule"])}
    assert home.run("rules", "revoke", rule["rule"]).returncode == 0
    assert state(home, asked(client, home, "weekly news 3")) == "pending"


def test_after_all_that_the_audit_is_whole_and_the_rows_are_told(client: Peer, home: Home) -> None:
    done = home.run("audit", "verify", "--json")
    verified = json.loads(done.stdout)
    assert (done.returncode != 0, verified["whole"], verified["broken"]) == (True, True, None)
    assert verified["rows"] > 10
    assert sorted(told.partition(":")[0] for told in verified["differences"]) == [
        "the classification of letters sendLetter as read", "the rule r1",
    ]  # fmt: skip


def test_the_memory_of_what_holds_a_key_is_closed_to_others() -> None:
    code = (
        "import ctypes; from orchestrator.control.process import disable_dumping; "
        "assert disable_dumping(); print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "0"
