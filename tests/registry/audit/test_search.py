"""The audit searched, told whole, and its older part in archives that are checked as well."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from registry.audit.heads import HeadSigner
from registry.audit.search import MIN_AGE, AuditQuery
from registry.errors import RegistryError
from registry.store import Store
from tests.registry.samples import approval, approve, forgery, invocation

WEEK = MIN_AGE
NOW = 10 * WEEK


@pytest.fixture
def busy(dns: Store) -> Store:
    """Calls at 100, 200, …, 900, of two chains, and one approved write at 1000."""
    for number in range(1, 9):
        changes = {"task": f"Task {number}", "arguments": {"zone": f"z{number}.example"}}
        dns.calls.record(
            invocation(f"c{number}", started=100.0 * number, **changes), 100.0 * number
        )
    with Store.open(dns.path, "other") as second:
        second.calls.record(invocation("c9", result={"text": "Ünï 100%_"}), 900.0)
        second.audit.add_note("secret.set", "dns.key", {"by": "me"}, 950.0)
    dns.approvals.add_pending(approval(task="add a zone", created=1000.0, expires=2000.0))
    approve(dns, "a1", now=1001.0)
    assert dns.approvals.claim("a1", "p1", 1002.0, forgery)
    write = invocation("w1", tool="create_zone", access="write", approval="a1", process="p1")
    dns.calls.store_intent(write, 1003.0)
    dns.calls.record(write, 1004.0)
    dns.approvals.store_outcome("a1", "p1", "done", {}, 1005.0)
    return dns


def subjects(store: Store, **wanted: Any) -> list[str]:
    return [found.row.subject for found in store.audit.search(AuditQuery(**wanted))]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"text": "z3.example"}, ["c3"]),
        ({"text": "Z3.EXAMPLE"}, ["c3"]),
        ({"text": "100%_"}, ["c9"]),
        ({"text": "100__"}, []),
        ({"text": "secret.set"}, ["dns.key"]),
        ({"task": "task 4"}, ["c4"]),
        ({"task": "add a zone"}, ["a1"] * 5),
        ({"tool": "dns.create_zone"}, ["a1", "w1", "a1", "w1", "a1", "a1", "a1"]),
        ({"tool": "dns.nothing"}, []),
        ({"since": 200.0, "until": 400.0}, ["c3", "c2"]),
        ({"text": "c7", "until": 100.0}, []),
        ({"text": "nowhere at all"}, []),
    ],
)
def test_rows_are_found_newest_first(busy: Store, wanted: dict[str, Any], found: list[str]) -> None:
    assert subjects(busy, **wanted) == found


def test_what_is_found_says_what_it_is_about(busy: Store) -> None:
    (found,) = busy.audit.search(AuditQuery(task="Task 4"))
    assert (found.server, found.tool, found.task) == ("dns", "list_zones", "Task 4")


def test_everything_about_an_id_is_told_in_order(busy: Store) -> None:
    kinds = [row.kind for row in busy.audit.find_rows_about("a1")]
    pending = ["approval.pending", "approval.approved", "approval.claimed"]
    assert kinds == [*pending, "intent", "approval.sending", "approval.done"]
    assert busy.audit.find_rows_about("a") == ()


def moved(store: Store, directory: Path, before: float = 500.0) -> int:
    batch = store.audit.archive_rows(directory, before, NOW)
    return batch.rows if batch else 0


def test_what_was_archived_is_out_of_the_database_and_still_checked(
    busy: Store, tmp_path: Path
) -> None:
    notary = HeadSigner(tmp_path / "audit")
    notary.sign_heads(busy.audit, 1100.0)
    _, before = notary.verify_and_count(busy.audit)
    assert moved(busy, tmp_path / "audit") == 5
    assert {call.id for call in busy.calls.find()} == {"c5", "c6", "c7", "c8", "c9", "w1"}
    broken, rows = notary.verify_and_count(busy.audit)
    assert (broken, rows) == (None, before + 2)
    busy.calls.record(invocation("c10"), NOW)
    notary.sign_heads(busy.audit, NOW)
    assert notary.verify_audit(busy.audit) is None
    assert moved(busy, tmp_path / "audit") == 0


def test_archives_follow_each_other(busy: Store, tmp_path: Path) -> None:
    notary = HeadSigner(tmp_path / "audit")
    notary.sign_heads(busy.audit, 1100.0)
    for before in (300.0, 500.0, 5000.0):
        assert moved(busy, tmp_path / "audit", before)
        notary.sign_heads(busy.audit, NOW)
    broken, rows = notary.verify_and_count(busy.audit)
    assert broken is None
    told = list(busy.audit.read_all_rows(tmp_path / "audit"))
    assert len(told) == rows
    assert [row["subject"] for row in told if row["kind"] == "invocation"][:4] == [
        "c1", "c2", "c3", "c4",
    ]  # fmt: skip
    calls = {row["call"]["id"]: row["call"] for row in told if "call" in row}
    assert calls["c3"]["arguments"] == {"zone": "z3.example"}
    assert calls["c8"]["task"] == "Task 8"


def test_the_newest_row_of_each_chain_and_used_approvals_stay(busy: Store, tmp_path: Path) -> None:
    moved(busy, tmp_path / "audit", WEEK)
    heads = {(head.chain, head.sequence) for head in busy.audit.get_heads()}
    assert heads == {("main", 18), ("other", 2)}
    assert "w1" in {call.id for call in busy.calls.find()}
    busy.audit.add_note("later", "x", {}, NOW)
    assert HeadSigner(tmp_path / "audit").verify_audit(busy.audit) is None


def test_the_last_week_is_not_archived(busy: Store, tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="seven days"):
        busy.audit.archive_rows(tmp_path, NOW - WEEK + 1, NOW)
    assert list(tmp_path.glob("archive-*")) == []


def test_the_audit_is_append_only_again_afterwards(busy: Store, tmp_path: Path) -> None:
    moved(busy, tmp_path / "audit")
    connection = sqlite3.connect(busy.path, isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute("DELETE FROM audit")
    connection.close()


def edited(content: bytes) -> bytes:
    lines = gzip.decompress(content).replace(b"z3.example", b"z4.example")
    return gzip.compress(lines, mtime=0)


def shortened(content: bytes) -> bytes:
    lines = gzip.decompress(content).splitlines(keepends=True)
    return gzip.compress(b"".join(lines[:-1]), mtime=0)


@pytest.mark.parametrize("change", [edited, shortened, lambda content: content[:-9], None])
def test_a_changed_or_missing_archive_is_found(
    busy: Store, tmp_path: Path, change: Callable[[bytes], bytes] | None
) -> None:
    notary = HeadSigner(tmp_path / "audit")
    moved(busy, tmp_path / "audit")
    (path,) = (tmp_path / "audit").glob("archive-*")
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(path.read_bytes()))
    broken = notary.verify_audit(busy.audit)
    assert broken is not None
    assert (broken.chain, path.name in broken.reason) == ("archives", True)


def test_an_archive_that_was_made_up_is_found_by_the_signed_heads(
    busy: Store, tmp_path: Path
) -> None:
    """Whoever writes another archive and its digest into the database cannot sign its rows."""
    notary = HeadSigner(tmp_path / "audit")
    notary.sign_heads(busy.audit, 1100.0)
    moved(busy, tmp_path / "audit")
    notary.sign_heads(busy.audit, NOW)
    (path,) = (tmp_path / "audit").glob("archive-*")
    path.write_bytes(edited(path.read_bytes()))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    connection = sqlite3.connect(busy.path, isolation_level=None)
    connection.execute("DROP TRIGGER audit_is_not_edited")
    row = connection.execute("SELECT id, payload FROM audit WHERE kind = 'audit.archived'")
    identity, payload = row.fetchone()
    changed = json.dumps({**json.loads(payload), "sha256": digest})
    connection.execute("UPDATE audit SET payload = ? WHERE id = ?", (changed, identity))
    connection.close()
    assert notary.verify_audit(busy.audit) is not None


def test_rows_taken_away_without_an_archive_are_missing(busy: Store, tmp_path: Path) -> None:
    connection = sqlite3.connect(busy.path, isolation_level=None)
    connection.execute("DROP TRIGGER audit_is_not_deleted")
    connection.execute("DELETE FROM audit WHERE chain = 'main' AND sequence < 4")
    connection.close()
    broken = HeadSigner(tmp_path / "audit").verify_audit(busy.audit)
    assert broken is not None
    assert (broken.chain, broken.sequence, broken.reason) == ("main", 1, "the row is missing")


def test_an_approval_used_before_its_rows_were_archived_is_not_claimed_again(
    busy: Store, tmp_path: Path
) -> None:
    moved(busy, tmp_path / "audit", 3 * WEEK)
    connection = sqlite3.connect(busy.path, isolation_level=None)
    connection.execute("UPDATE approvals SET state = 'approved', claimed_by = ''")
    connection.close()
    assert busy.approvals.claim("a1", "p2", NOW, forgery) is None
