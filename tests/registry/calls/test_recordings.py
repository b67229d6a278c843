"""What a call took in is kept beside it, whole, up to a limit, and known where it was changed."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, select

from registry.calls.recordings import (
    ROW_BYTES,
    StoredRecording,
    drop_oldest,
    find_last_end,
    insert_recordings,
)
from registry.database import tables
from registry.database.canonical import to_canonical_json
from registry.errors import RecordingMissing
from registry.models import Job
from registry.store import Store
from sandbox.session import recording as recordings
from sandbox.session.recording import CallInputs, CallRecording
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse
from tests.registry.samples import approval, entry, invocation

GET = WireRequest("GET", "https://api.example/zones", (("accept", "*/*"),))
BODY = bytes(range(256)) * 1000
TAKEN_IN = CallRecording(
    "wasm",
    "wasm:1",
    {"name": "a", "big": 2**70, "odd": "\ud800"},
    CallInputs(7, "ab" * 32),
    (Exchange(GET, WireResponse(200, (("a", "b"),), BODY)), Exchange(GET, None, "refused", "no")),
)
WHERE = "WHERE invocation = 'c1'"


def edited(store: Store, statement: str, *values: bytes) -> None:
    connection = sqlite3.connect(store.path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("access", ["read", "write"])
def test_what_a_call_took_in_is_kept_whole(dns: Store, access: str) -> None:
    call = invocation("c1", access=access, recording=TAKEN_IN)
    if access == "write":
        dns.calls.store_intent(call, now=100.0)
    dns.calls.record(call, now=101.0)
    kept = dns.calls.get_recording("c1")
    assert (kept.recording, kept.intact) == (TAKEN_IN, True)
    assert dns.audit.verify_chains() is None
    assert dns.calls.get("c1").recording is None


def test_a_call_that_is_recorded_again_keeps_its_first_recording(dns: Store) -> None:
    dns.calls.record(invocation("c1", recording=TAKEN_IN), now=101.0)
    dns.calls.record(invocation("c1", recording=CallRecording("docker", "")), now=102.0)
    assert dns.calls.get_recording("c1").recording == TAKEN_IN


def test_what_is_too_large_is_marked_and_costs_nothing_else(dns: Store) -> None:
    huge = Exchange(GET, WireResponse(200, body=bytes(recordings.MAX_BYTES + 1)))
    dns.calls.record(
        invocation("c1", recording=CallRecording("docker", "", {}, None, (huge,))), now=101.0
    )
    with pytest.raises(RecordingMissing, match="too large"):
        dns.calls.get_recording("c1")
    assert dns.standings.get("dns").total == 1
    assert dns.audit.verify_chains() is None


@pytest.mark.parametrize("id", ["c1", "c2"])
def test_a_call_without_a_recording_says_so(dns: Store, id: str) -> None:
    dns.calls.record(invocation("c1"), now=101.0)
    with pytest.raises(RecordingMissing, match="no recording of the call"):
        dns.calls.get_recording(id)


def test_an_edited_recording_is_known(dns: Store) -> None:
    dns.calls.record(invocation("c1", recording=TAKEN_IN), now=101.0)
    other = recordings.pack_recording(CallRecording("docker", ""))
    assert other is not None
    edited(dns, f"UPDATE recordings SET content = ? {WHERE}", other)
    assert dns.calls.get_recording("c1") == StoredRecording(
        CallRecording("docker", ""), intact=False
    )


@pytest.mark.parametrize("content", [b"", b"x", zlib.compress(b"[]")])
def test_a_damaged_recording_is_not_believed(dns: Store, content: bytes) -> None:
    dns.calls.record(invocation("c1", recording=TAKEN_IN), now=101.0)
    edited(dns, f"UPDATE recordings SET content = ? {WHERE}", content)
    with pytest.raises(RecordingMissing, match="damaged"):
        dns.calls.get_recording("c1")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Store]:
    """A store that keeps 10 kB of recordings."""
    with Store.open(tmp_path / "small.db", "main", 10_000) as opened:
        opened.servers.publish(entry(), now=10.0)
        yield opened


def kept(store: Store) -> list[int]:
    """The numbers of the calls whose recordings are still there."""
    connection = sqlite3.connect(store.path)
    rows = connection.execute("SELECT invocation FROM recordings ORDER BY 1").fetchall()
    connection.close()
    return sorted(int(id.removeprefix("c")) for (id,) in rows)


def test_past_the_limit_the_oldest_are_dropped_and_the_calls_stay(small: Store) -> None:
    for number in range(200):
        small.calls.record(
            invocation(f"c{number}", recording=CallRecording("docker", "")), now=101.0
        )
    left = kept(small)
    assert left == list(range(left[0], 200))
    assert 10_000 / (ROW_BYTES + 200) < len(left) <= 10_000 / ROW_BYTES + 1
    assert len(small.calls.find(limit=1000)) == 200
    assert small.audit.verify_chains() is None
    with pytest.raises(RecordingMissing, match="not kept any more"):
        small.calls.get_recording("c0")


@given(st.lists(st.integers(0, 20_000), max_size=30), st.integers(1, 30_000))
def test_what_is_kept_is_the_newest_and_never_much_more_than_the_limit(
    sizes: list[int], limit: int
) -> None:
    with create_engine("sqlite://").begin() as connection:
        tables.recordings.create(connection)
        tables.audit.create(connection)
        for number, size in enumerate(sizes):
            begin = find_last_end(connection)
            insert_recordings(connection, {f"{number:03}": bytes(size)}, begin)
            drop_oldest(connection, limit)
        rows = connection.execute(select(tables.recordings.c.invocation)).scalars()
        left = sorted(map(int, rows))
    taken = [size + ROW_BYTES for size in sizes]
    assert left == list(range(len(sizes) - len(left), len(sizes)))
    # The oldest may lie across the limit.
    assert sum(taken[number] for number in left[1:]) <= limit
    if left and left[0]:
        assert sum(taken[left[0] - 1 :]) > limit


@pytest.mark.parametrize(
    ("statement", "call", "reason"),
    [
        ("UPDATE recordings SET content = x'00' WHERE invocation = 'c1'", "c1", "edited"),
        ("UPDATE recordings SET content = NULL WHERE invocation = 'c1'", "c1", "edited"),
        ("DELETE FROM recordings WHERE invocation = 'c0'", "c0", "missing"),
        ("DELETE FROM recordings WHERE invocation = 'c2'", "c2", "missing"),
        ("DELETE FROM recordings", "c0", "missing"),
        ("UPDATE recordings SET invocation = 'bare' WHERE invocation = 'c1'", "c1", "missing"),
        (
            "INSERT INTO recordings SELECT 9999, 'bare', content FROM recordings LIMIT 1",
            "bare",
            "put in",
        ),
    ],
)
def test_a_recording_that_was_edited_removed_or_put_in_is_located(
    dns: Store, statement: str, call: str, reason: str
) -> None:
    for number in range(3):
        taken_in = CallRecording("docker", "", {"n": number})
        dns.calls.record(invocation(f"c{number}", recording=taken_in), now=101.0)
    dns.calls.record(invocation("bare"), now=101.0)
    assert dns.audit.verify_chains() is None
    edited(dns, statement)
    broken = dns.audit.verify_chains()
    assert broken is not None
    assert reason in broken.reason
    assert broken.reason.endswith(f": {call}")
    (row,) = (
        r for r in dns.audit.find() if (r.chain, r.sequence) == (broken.chain, broken.sequence)
    )
    assert row.subject == call


def test_recordings_that_were_swapped_are_found(dns: Store) -> None:
    for number in range(2):
        taken_in = CallRecording("docker", "", {"n": number})
        dns.calls.record(invocation(f"c{number}", recording=taken_in), now=101.0)
    edited(
        dns,
        "UPDATE recordings SET content = (SELECT content FROM recordings AS other "
        "WHERE other.invocation != recordings.invocation)",
    )
    broken = dns.audit.verify_chains()
    assert broken is not None
    assert "edited" in broken.reason


def test_a_recording_younger_than_those_that_were_dropped_is_missed(small: Store) -> None:
    for number in range(200):
        small.calls.record(
            invocation(f"c{number}", recording=CallRecording("docker", "")), now=101.0
        )
    assert small.audit.verify_chains() is None
    oldest = kept(small)[0]
    edited(small, f"DELETE FROM recordings WHERE invocation = 'c{oldest}'")
    broken = small.audit.verify_chains()
    assert broken is not None
    assert broken.reason.endswith(f"missing: c{oldest}")


def test_an_archive_takes_the_recordings_along_and_they_are_checked_there(
    dns: Store, tmp_path: Path
) -> None:
    for number in range(3):
        dns.calls.record(invocation(f"c{number}", recording=TAKEN_IN), now=101.0)
    dns.audit.add_note("later", "x", {}, 102.0)
    week = 8 * 86400.0
    assert dns.audit.archive_rows(tmp_path / "audit", 200.0, week) is not None
    assert kept(dns) == []
    assert dns.audit.verify_chains((), tmp_path / "audit") is None
    dns.calls.record(invocation("c9", recording=TAKEN_IN), now=week)
    edited(dns, "DELETE FROM recordings")
    broken = dns.audit.verify_chains((), tmp_path / "audit")
    assert broken is not None
    assert broken.reason.endswith("missing: c9")


@pytest.mark.parametrize("field", [None, "AAAA"])
def test_an_archive_whose_recording_is_another_is_found_even_where_its_digest_fits(
    dns: Store, tmp_path: Path, field: str | None
) -> None:
    dns.calls.record(invocation("c0", recording=TAKEN_IN), now=101.0)
    dns.audit.add_note("later", "x", {}, 102.0)
    directory = tmp_path / "audit"
    dns.audit.archive_rows(directory, 200.0, 8 * 86400.0)
    (path,) = directory.glob("archive-*")
    lines = gzip.decompress(path.read_bytes()).splitlines()
    values = [json.loads(line) for line in lines]
    for value in values:
        if value.get("recording"):
            value["recording"] = field
    path.write_bytes(gzip.compress(b"\n".join(json.dumps(v).encode() for v in values)))
    row = next(r for r in dns.audit.find() if r.kind == "audit.archived")
    payload = json.loads(row.payload)
    payload["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    connection = sqlite3.connect(dns.path)
    connection.execute("DROP TRIGGER audit_is_not_edited")
    connection.execute(
        "UPDATE audit SET payload = ? WHERE id = ?", (to_canonical_json(payload), row.id)
    )
    connection.commit()
    connection.close()
    broken = dns.audit.verify_chains((), directory)
    assert broken is not None
    assert broken.reason.startswith("the recording of the call")


def test_a_limit_of_nothing_keeps_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "registry.db", "main", 0) as store:
        store.servers.publish(entry(), now=10.0)
        store.calls.record(invocation("c1", recording=TAKEN_IN), now=101.0)
        assert kept(store) == []


@pytest.fixture
def known(dns: Store) -> Store:
    """A store with two jobs and some calls, of which the last ran on an approval."""
    for id in ("aa11", "ab22"):
        dns.jobs.create(Job(id, "do", {}, 1.0, 1.0))
    dns.approvals.add_pending(approval("p1"))
    for id in ("aa11-2", "aa11-1", "ac33", "ac3344", "a%44"):
        dns.calls.record(invocation(id), now=101.0)
    dns.calls.record(invocation("ad55", approval="p1"), now=101.0)
    return dns


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("aa", ["job aa11"]),
        ("aa11", ["job aa11"]),
        ("aa11-", ["call aa11-1", "call aa11-2"]),
        ("aa11-1", ["call aa11-1"]),
        ("ac33", ["call ac33"]),
        ("ac", ["call ac33", "call ac3344"]),
        ("a%", ["call a%44"]),
        ("a_", []),
        ("zz", []),
    ],
)
def test_an_id_may_be_cut_where_it_is_still_the_only_one(
    known: Store, prefix: str, found: list[str]
) -> None:
    assert (
        sorted(f"{named.kind} {named.id}" for named in known.calls.find_by_prefix(prefix)) == found
    )


def test_a_run_s_calls_are_its_own_and_the_one_it_asked_approval_for(known: Store) -> None:
    assert known.calls.find_run_ids("aa11", "") == ("aa11-2", "aa11-1")
    assert known.calls.find_run_ids("aa11", "p1") == ("aa11-2", "aa11-1", "ad55")
    assert known.calls.find_run_ids("ab22", "") == ()
