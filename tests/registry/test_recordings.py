"""What a call took in is kept beside it, whole, up to a limit, and known where it was changed."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, select

from registry import schema
from registry.errors import NotRecorded
from registry.recordings import ROW_BYTES, Kept, drop, enter
from registry.records import Job
from registry.store import Store
from sandbox import recording as recordings
from sandbox.exchange import Exchange, WireRequest, WireResponse
from sandbox.recording import Inputs, Recording
from tests.registry.samples import approval, entry, invocation

GET = WireRequest("GET", "https://api.example/zones", (("accept", "*/*"),))
BODY = bytes(range(256)) * 1000
TAKEN_IN = Recording(
    "wasm",
    "wasm:1",
    {"name": "a", "big": 2**70, "odd": "\ud800"},
    Inputs(7, "ab" * 32),
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
        dns.intend(call, now=100.0)
    dns.record(call, now=101.0)
    kept = dns.recording("c1")
    assert (kept.recording, kept.intact) == (TAKEN_IN, True)
    assert dns.verify_audit() is None
    assert dns.invocation("c1").recording is None


def test_a_call_that_is_recorded_again_keeps_its_first_recording(dns: Store) -> None:
    dns.record(invocation("c1", recording=TAKEN_IN), now=101.0)
    dns.record(invocation("c1", recording=Recording("docker", "")), now=102.0)
    assert dns.recording("c1").recording == TAKEN_IN


def test_what_is_too_large_is_marked_and_costs_nothing_else(dns: Store) -> None:
    huge = Exchange(GET, WireResponse(200, body=bytes(recordings.MAX_BYTES + 1)))
    dns.record(invocation("c1", recording=Recording("docker", "", {}, None, (huge,))), now=101.0)
    with pytest.raises(NotRecorded, match="too large"):
        dns.recording("c1")
    assert dns.standing("dns").total == 1
    assert dns.verify_audit() is None


@pytest.mark.parametrize("id", ["c1", "c2"])
def test_a_call_without_a_recording_says_so(dns: Store, id: str) -> None:
    dns.record(invocation("c1"), now=101.0)
    with pytest.raises(NotRecorded, match="no recording of the call"):
        dns.recording(id)


def test_an_edited_recording_is_known(dns: Store) -> None:
    dns.record(invocation("c1", recording=TAKEN_IN), now=101.0)
    other = recordings.pack(Recording("docker", ""))
    assert other is not None
    edited(dns, f"UPDATE recordings SET content = ? {WHERE}", other)
    assert dns.recording("c1") == Kept(Recording("docker", ""), intact=False)


@pytest.mark.parametrize("content", [b"", b"x", zlib.compress(b"[]")])
def test_a_damaged_recording_is_not_believed(dns: Store, content: bytes) -> None:
    dns.record(invocation("c1", recording=TAKEN_IN), now=101.0)
    edited(dns, f"UPDATE recordings SET content = ? {WHERE}", content)
    with pytest.raises(NotRecorded, match="damaged"):
        dns.recording("c1")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Store]:
    """A store that keeps 10 kB of recordings."""
    with Store.open(tmp_path / "small.db", "main", 10_000) as opened:
        opened.publish(entry(), now=10.0)
        yield opened


def kept(store: Store) -> list[int]:
    """The numbers of the calls whose recordings are still there."""
    connection = sqlite3.connect(store.path)
    rows = connection.execute("SELECT invocation FROM recordings ORDER BY 1").fetchall()
    connection.close()
    return sorted(int(id.removeprefix("c")) for (id,) in rows)


def test_past_the_limit_the_oldest_are_dropped_and_the_calls_stay(small: Store) -> None:
    for number in range(200):
        small.record(invocation(f"c{number}", recording=Recording("docker", "")), now=101.0)
    left = kept(small)
    assert left == list(range(left[0], 200))
    assert 10_000 / (ROW_BYTES + 200) < len(left) <= 10_000 / ROW_BYTES + 1
    assert len(small.invocations(limit=1000)) == 200
    assert small.verify_audit() is None
    with pytest.raises(NotRecorded, match="not kept any more"):
        small.recording("c0")


@given(st.lists(st.integers(0, 20_000), max_size=30), st.integers(1, 30_000))
def test_what_is_kept_is_the_newest_and_never_much_more_than_the_limit(
    sizes: list[int], limit: int
) -> None:
    with create_engine("sqlite://").begin() as connection:
        schema.recordings.create(connection)
        for number, size in enumerate(sizes):
            enter(connection, {f"{number:03}": bytes(size)})
            drop(connection, limit)
        rows = connection.execute(select(schema.recordings.c.invocation)).scalars()
        left = sorted(map(int, rows))
    taken = [size + ROW_BYTES for size in sizes]
    assert left == list(range(len(sizes) - len(left), len(sizes)))
    # The oldest may lie across the limit.
    assert sum(taken[number] for number in left[1:]) <= limit
    if left and left[0]:
        assert sum(taken[left[0] - 1 :]) > limit


def test_a_limit_of_nothing_keeps_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "registry.db", "main", 0) as store:
        store.publish(entry(), now=10.0)
        store.record(invocation("c1", recording=TAKEN_IN), now=101.0)
        assert kept(store) == []


@pytest.fixture
def known(dns: Store) -> Store:
    """A store with two jobs and some calls, of which the last ran on an approval."""
    for id in ("aa11", "ab22"):
        dns.create_job(Job(id, "do", {}, 1.0, 1.0))
    dns.request_approval(approval("p1"))
    for id in ("aa11-2", "aa11-1", "ac33", "ac3344", "a%44"):
        dns.record(invocation(id), now=101.0)
    dns.record(invocation("ad55", approval="p1"), now=101.0)
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
    assert sorted(f"{named.kind} {named.id}" for named in known.named(prefix)) == found


def test_a_run_s_calls_are_its_own_and_the_one_it_asked_approval_for(known: Store) -> None:
    assert known.calls_of("aa11", "") == ("aa11-2", "aa11-1")
    assert known.calls_of("aa11", "p1") == ("aa11-2", "aa11-1", "ad55")
    assert known.calls_of("ab22", "") == ()
