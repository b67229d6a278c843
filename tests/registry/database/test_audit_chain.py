from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from registry.audit.heads import HEADS, KEY, HeadSigner
from registry.database.audit_chain import BrokenLink
from registry.errors import SignedHeadsDamaged
from registry.store import Store
from tests.registry.samples import SIGNER, entry, invocation

GUARDS = ("audit_is_not_edited", "audit_is_not_deleted")


def tamper(store: Store, *statements: str) -> None:
    """Edit the database as somebody with access to its file would."""
    connection = sqlite3.connect(store.path, isolation_level=None)
    for guard in GUARDS:
        connection.execute(f"DROP TRIGGER IF EXISTS {guard}")
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.fixture
def busy(dns: Store) -> Store:
    """A store with two chains, of which `main` has 5 rows."""
    dns.calls.record_many([invocation("c1", result={"a": 1}), invocation("c2", "bug")], now=20.0)
    dns.processes.freeze(30.0, by="me")
    dns.processes.unfreeze(31.0, "me", SIGNER.sign)
    with Store.open(dns.path, "other") as second:
        second.calls.record(invocation("c3"), now=40.0)
    return dns


def test_an_untouched_audit_is_whole(busy: Store) -> None:
    assert busy.audit.verify_chains() is None
    assert {(head.chain, head.sequence) for head in busy.audit.get_heads()} == {
        ("main", 5),
        ("other", 1),
    }


def test_an_empty_audit_is_whole(store: Store) -> None:
    assert store.audit.verify_chains() is None
    assert store.audit.get_heads() == ()


@pytest.mark.parametrize("column", ["kind", "subject", "payload", "time", "hash", "previous"])
def test_an_edited_row_is_found(busy: Store, column: str) -> None:
    tamper(busy, f"UPDATE audit SET {column} = '7' WHERE chain = 'main' AND sequence = 3")
    broken = busy.audit.verify_chains()
    assert broken is not None
    assert (broken.chain, broken.sequence) == ("main", 3)


@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("DELETE FROM audit WHERE sequence = 1 AND chain = 'main'", ("main", 1)),
        ("DELETE FROM audit WHERE sequence = 3 AND chain = 'main'", ("main", 3)),
        ("UPDATE audit SET sequence = 9 WHERE sequence = 4 AND chain = 'main'", ("main", 4)),
        ("UPDATE audit SET chain = 'main', sequence = 6 WHERE chain = 'other'", ("main", 6)),
    ],
)
def test_a_removed_or_moved_row_is_found(
    busy: Store, statement: str, broken: tuple[str, int]
) -> None:
    tamper(busy, statement)
    found = busy.audit.verify_chains()
    assert found is not None
    assert (found.chain, found.sequence) == broken


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE invocations SET result = '{}' WHERE id = 'c1'",
        "UPDATE invocations SET failure_kind = NULL WHERE id = 'c2'",
        "DELETE FROM invocations WHERE id = 'c1'",
    ],
)
def test_a_changed_invocation_is_found(busy: Store, statement: str) -> None:
    tamper(busy, statement)
    found = busy.audit.verify_chains()
    assert found is not None
    assert "invocation" in found.reason


def test_marking_a_result_wrong_does_not_break_the_audit(busy: Store) -> None:
    busy.calls.mark_wrong("c1", by="me", now=50.0)
    assert busy.audit.verify_chains() is None


@pytest.mark.parametrize("statement", ["DELETE FROM audit", "UPDATE audit SET kind = 'x'"])
def test_the_database_itself_refuses_edits(busy: Store, statement: str) -> None:
    connection = sqlite3.connect(busy.path, isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


def test_rows_are_paged_from_an_id_in_order(busy: Store) -> None:
    first = busy.audit.find(limit=2, since=0)
    rest = busy.audit.find(since=first[-1].id)
    assert [row.kind for row in (*first, *rest)] == [
        row.kind for row in reversed(busy.audit.find())
    ]
    assert len(rest) == 4


def test_signed_heads_are_whole_and_signed_once(busy: Store, tmp_path: Path) -> None:
    notary = HeadSigner(tmp_path / "audit")
    assert len(notary.sign_heads(busy.audit, 60.0)) == 2
    assert notary.sign_heads(busy.audit, 61.0) == ()
    busy.processes.freeze(62.0, by="me")
    assert [head.sequence for head in notary.sign_heads(busy.audit, 63.0)] == [6]
    assert HeadSigner(tmp_path / "audit").verify_audit(busy.audit) is None
    assert HeadSigner(tmp_path / "audit").sign_heads(busy.audit, 64.0) == ()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM audit WHERE chain = 'main' AND sequence = 5",
        "DELETE FROM audit WHERE chain = 'other'",
        "DELETE FROM audit",
    ],
)
def test_a_chain_that_was_cut_short_or_removed_is_found_by_its_signature(
    busy: Store, tmp_path: Path, statement: str
) -> None:
    notary = HeadSigner(tmp_path / "audit")
    notary.sign_heads(busy.audit, 60.0)
    tamper(busy, statement)
    assert busy.audit.verify_chains() is None
    found = notary.verify_audit(busy.audit)
    assert found is not None
    assert "signed" in found.reason


def test_a_chain_that_was_rewritten_is_found_by_its_signature(busy: Store, tmp_path: Path) -> None:
    notary = HeadSigner(tmp_path / "audit")
    notary.sign_heads(busy.audit, 60.0)
    tamper(busy, "DELETE FROM audit WHERE chain = 'other'", "DELETE FROM invocations")
    with Store.open(busy.path, "other") as second:
        second.processes.freeze(70.0, by="forger")
    found = notary.verify_audit(busy.audit)
    assert found is not None
    assert found == BrokenLink("other", 1, "the row is not the one whose hash was signed")


def edit_first_line(lines: list[str]) -> list[str]:
    return [lines[0].replace('"time":60.0', '"time":61.0'), *lines[1:]]


def drop_first_line(lines: list[str]) -> list[str]:
    return lines[1:]


def write_rubbish(lines: list[str]) -> list[str]:
    return ["[]", *lines[1:]]


@pytest.mark.parametrize("change", [edit_first_line, drop_first_line, write_rubbish])
def test_a_changed_heads_file_is_found(
    busy: Store, tmp_path: Path, change: Callable[[list[str]], list[str]]
) -> None:
    notary = HeadSigner(tmp_path / "audit")
    notary.sign_heads(busy.audit, 60.0)
    busy.processes.freeze(62.0, by="me")
    notary.sign_heads(busy.audit, 63.0)
    path = tmp_path / "audit" / HEADS
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    found = notary.verify_audit(busy.audit)
    assert found is not None
    assert (found.chain, found.sequence) == (HEADS, 1)
    with pytest.raises(SignedHeadsDamaged):
        HeadSigner(tmp_path / "audit").sign_heads(busy.audit, 64.0)


def test_a_line_that_a_crash_cut_short_is_replaced(busy: Store, tmp_path: Path) -> None:
    notary = HeadSigner(tmp_path / "audit")
    notary.sign_heads(busy.audit, 60.0)
    path = tmp_path / "audit" / HEADS
    path.write_text(path.read_text() + '{"heads":{"main":[6,"ab')
    busy.processes.freeze(62.0, by="me")
    HeadSigner(tmp_path / "audit").sign_heads(busy.audit, 63.0)
    assert notary.verify_audit(busy.audit) is None
    assert len(path.read_text().splitlines()) == 2


def test_a_signature_of_another_key_does_not_count(busy: Store, tmp_path: Path) -> None:
    HeadSigner(tmp_path / "audit").sign_heads(busy.audit, 60.0)
    (tmp_path / "audit" / KEY).unlink()
    found = HeadSigner(tmp_path / "audit").verify_audit(busy.audit)
    assert found is not None
    assert "signature" in found.reason


def test_the_key_is_private_and_a_damaged_one_is_not_replaced(busy: Store, tmp_path: Path) -> None:
    HeadSigner(tmp_path / "audit").sign_heads(busy.audit, 60.0)
    key = tmp_path / "audit" / KEY
    assert key.stat().st_mode & 0o777 == 0o600
    key.write_bytes(b"short")
    with pytest.raises(SignedHeadsDamaged):
        HeadSigner(tmp_path / "audit")
    assert key.read_bytes() == b"short"


def test_processes_without_a_name_share_one_chain(tmp_path: Path) -> None:
    for version in (1, 2):
        with Store.open(tmp_path / "registry.db") as store:
            store.servers.publish(entry("dns", version), now=1.0)
    with Store.open(tmp_path / "registry.db") as store:
        assert [(row.chain, row.sequence) for row in store.audit.find(since=0)] == [
            ("local", 1),
            ("local", 2),
        ]
        assert store.audit.verify_chains() is None


def test_what_happened_elsewhere_is_noted_and_bounded(busy: Store) -> None:
    busy.audit.add_note("secret.set", "dns.key", {"by": "me"}, 50.0)
    busy.audit.add_note("refused", "dns", {"task": "\ud800" * 100_000}, 51.0)
    long, short = busy.audit.find(2)
    assert (short.kind, short.subject, short.payload) == ("secret.set", "dns.key", '{"by":"me"}')
    assert len(long.payload) < 20_000
    assert busy.audit.verify_chains() is None
