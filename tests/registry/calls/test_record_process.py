"""The process that stores calls while there are many: when there is one, and that it loses none."""

from __future__ import annotations

import asyncio
import itertools
import os
import pickle
import signal
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.gateway.audit_writer import CallWriter
from registry.calls.batch import RESULT, build_invocation_row
from registry.calls.invocations import CallTable, bound_results
from registry.calls.record_process import (
    BUSY_CALLS,
    LARGE_CALLS,
    PER_SECOND,
    CallRate,
    Handover,
    RecordOffload,
    store_frames,
)
from registry.database.engine import Database
from registry.models import Invocation
from registry.store import Store
from tests.registry.samples import entry, invocation

NOW = 20.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "registry.db", "main") as opened:
        opened.servers.publish(entry(), now=10.0)
        yield opened


def build_calls(prefix: str, count: int) -> list[Invocation]:
    return [replace(invocation(f"{prefix}{number}"), serial=number + 1) for number in range(count)]


def run_with_offload(
    path: Path, scenario: Callable[[RecordOffload], Coroutine[Any, Any, None]], rest: float = 60.0
) -> None:
    async def run() -> None:
        offload = RecordOffload(str(path / "registry.db"), "main", 1 << 20, rest)
        try:
            await scenario(offload)
        finally:
            await offload.close()

    asyncio.run(run())


async def start(offload: RecordOffload, store: Store) -> int:
    """Have so many calls stored that a process is started; its id."""
    calls = build_calls("first", BUSY_CALLS)
    assert await offload.store_group(calls, NOW, 1) is None
    store.calls.record_many(calls, NOW)
    while offload.process_id is None:
        await asyncio.sleep(0.01)
    return offload.process_id


def send_frame(pair: socket.socket, frame: bytes) -> None:
    pair.sendall(struct.pack("!I", len(frame)) + frame)


def test_a_few_calls_start_no_process(tmp_path: Path, store: Store) -> None:
    async def scenario(offload: RecordOffload) -> None:
        before = set(psutil.Process().children())
        for number in range(20):
            assert await offload.store_group(build_calls(f"g{number}", 3), NOW, 1) is None
        assert set(psutil.Process().children()) == before
        assert offload.process_id is None

    run_with_offload(tmp_path, scenario)


def test_large_results_start_a_process_at_a_twentieth_of_the_calls(
    tmp_path: Path, store: Store
) -> None:
    large = {"structuredContent": {"text": "x" * 1_000_000}}

    async def scenario(offload: RecordOffload) -> None:
        count = 2 + BUSY_CALLS // LARGE_CALLS
        calls = bound_results(replace(call, result=large) for call in build_calls("c", count))
        assert await offload.store_group(calls[:4], NOW, 1) is None
        assert offload.process_id is None
        assert await offload.store_group(calls[4:], NOW, 1) is None
        while offload.process_id is None:
            await asyncio.sleep(0.01)

    run_with_offload(tmp_path, scenario)


def test_many_calls_are_stored_by_a_process_as_this_one_would(tmp_path: Path, store: Store) -> None:
    async def scenario(offload: RecordOffload) -> None:
        process = await start(offload, store)
        assert process != os.getpid()
        standings = await offload.store_group(build_calls("c", 3), NOW, 7)
        assert standings is not None
        assert standings[-1] == store.standings.get("dns")
        assert [call.id for call in store.calls.find(limit=3)] == ["c2", "c1", "c0"]

    run_with_offload(tmp_path, scenario)
    assert store.audit.verify_chains() is None


def test_what_was_stored_already_is_not_counted_again(tmp_path: Path, store: Store) -> None:
    async def scenario(offload: RecordOffload) -> None:
        await start(offload, store)
        once = await offload.store_group(build_calls("c", 3), NOW, 1)
        assert await offload.store_group(build_calls("c", 3), NOW, 1) == once

    run_with_offload(tmp_path, scenario)


def test_what_a_process_is_handed_while_it_is_ended_for_its_rest_takes_no_later_call_away(
    tmp_path: Path, store: Store
) -> None:
    large = replace(build_calls("large", 1)[0], result={"content": ["x" * 4_000_000]})

    async def scenario(offload: RecordOffload) -> None:
        process = await start(offload, store)
        # It does not read, so that what it is handed is not out before its time is up.
        os.kill(process, signal.SIGSTOP)
        holding = asyncio.create_task(offload.hold_calls([large], NOW, 1))
        while offload.process_id is not None:
            await asyncio.sleep(0.01)
        os.kill(process, signal.SIGCONT)
        assert not await holding
        await start(offload, store)
        calls = build_calls("c", 3)
        if await offload.store_group(calls, NOW, 1) is None:
            # It took longer than this one's rest: then who asked stores them.
            store.calls.record_many(calls, NOW, 1)
        assert {"c0", "c1", "c2"} <= {call.id for call in store.calls.find(limit=4)}

    run_with_offload(tmp_path, scenario, rest=2.0)


def test_the_end_of_that_process_loses_and_doubles_no_call(tmp_path: Path, store: Store) -> None:
    stored: list[str] = []

    async def scenario(offload: RecordOffload) -> None:
        os.kill(await start(offload, store), signal.SIGKILL)
        writer = CallWriter(store, lambda *_: None, lambda call: stored.append(call.id), offload)
        for call in build_calls("c", 5):
            writer.queue_call(replace(call, serial=writer.count_call()))
        await writer.wait_written()
        assert writer.find_backlog() == ""

    run_with_offload(tmp_path, scenario)
    assert stored == ["c0", "c1", "c2", "c3", "c4"]
    assert [call.id for call in store.calls.find(limit=6)][:5] == stored[::-1]
    assert store.audit.verify_chains() is None


def test_what_that_process_cannot_store_is_stored_here(tmp_path: Path, store: Store) -> None:
    async def scenario(offload: RecordOffload) -> None:
        await start(offload, store)
        unknown = replace(invocation("c0"), entry="nobody")
        assert await offload.store_group([unknown], NOW, 1) is None
        unpickled = replace(invocation("c1"), result={"content": threading.Lock()})
        assert await offload.store_group([unpickled], NOW, 1) is None
        assert offload.process_id is not None

    run_with_offload(tmp_path, scenario)


def test_calls_that_are_held_are_stored_with_the_next_group(tmp_path: Path, store: Store) -> None:
    async def scenario(offload: RecordOffload) -> None:
        assert not await offload.hold_calls(build_calls("z", 1), NOW, 1)
        await start(offload, store)
        before = len(store.calls.find(limit=1000))
        calls = build_calls("c", 6)
        assert await offload.hold_calls(calls[:2], NOW, 1)
        assert await offload.hold_calls(calls[2:4], NOW, 1)
        assert offload.held_bytes > 0
        standings = await offload.store_group(calls, NOW, 7)
        assert standings is not None
        assert standings[-1] == store.standings.get("dns")
        assert offload.held_bytes == 0
        assert [call.id for call in store.calls.find(limit=6)] == [
            f"c{n}" for n in range(5, -1, -1)
        ]
        assert len(store.calls.find(limit=1000)) == before + 6

    run_with_offload(tmp_path, scenario)
    assert store.audit.verify_chains() is None


def test_what_a_process_held_that_ended_is_sent_whole_to_the_next(
    tmp_path: Path, store: Store
) -> None:
    async def scenario(offload: RecordOffload) -> None:
        process = psutil.Process(await start(offload, store))
        calls = build_calls("c", 4)
        assert await offload.hold_calls(calls[:2], NOW, 1)
        process.kill()
        assert await offload.store_group(calls, NOW, 1) is None
        await start(offload, store)
        assert await offload.store_group(calls, NOW, 1) is not None
        assert [call.id for call in store.calls.find(limit=4)] == ["c3", "c2", "c1", "c0"]

    run_with_offload(tmp_path, scenario)
    assert store.audit.verify_chains() is None


def test_whoever_waits_for_a_call_that_is_held_does_not_wait_for_those_after_it(
    tmp_path: Path, store: Store
) -> None:
    """While calls go on without an end, each that ended before is stored for whoever waits."""
    stored: list[str] = []

    async def scenario(offload: RecordOffload) -> None:
        await start(offload, store)
        writer = CallWriter(store, lambda *_: None, lambda call: stored.append(call.id), offload)

        async def call_on() -> None:
            for number in itertools.count():
                await asyncio.sleep(0)
                # As a read, it does not begin while too many wait.
                if not writer.find_backlog():
                    call = invocation(f"c{number}")
                    writer.queue_call(replace(call, serial=writer.count_call()))

        calling = asyncio.create_task(call_on())
        for _ in range(3):
            ended = writer.count_call()
            writer.queue_call(replace(invocation(f"waited{ended}"), serial=ended))
            await writer.wait_written()
            assert f"waited{ended}" in stored
            assert not calling.done()
        calling.cancel()
        await writer.close()

    run_with_offload(tmp_path, scenario)
    assert store.audit.verify_chains() is None


@pytest.mark.parametrize("size", [300_000, RESULT + 1, 4_000_000])
def test_a_large_result_is_handed_on_as_its_row_holds_it(
    tmp_path: Path, store: Store, size: int
) -> None:
    """Of one that no row holds, its hash and its head: the rest takes no room meanwhile."""
    large = {"structuredContent": {"text": "x" * size}}

    async def scenario(offload: RecordOffload) -> None:
        await start(offload, store)
        writer = CallWriter(store, lambda *_: None, offload=offload)
        call = replace(invocation("handed"), serial=writer.count_call(), result=large)
        writer.queue_call(call)
        while not offload.held_bytes:
            await asyncio.sleep(0.001)
        assert (offload.held_bytes > size) == (size < RESULT)
        assert offload.held_bytes < RESULT
        await writer.wait_written()

    run_with_offload(tmp_path, scenario)
    store.calls.record(replace(invocation("here"), result=large), NOW, 1)
    handed, here = store.calls.get("handed"), store.calls.get("here")
    assert handed.result == here.result
    assert handed.unstorable == here.unstorable == {}
    assert store.audit.verify_chains() is None


def test_a_large_result_that_is_no_json_is_told_of_as_a_small_one() -> None:
    for value in ({"text": "x" * 300_000, "lock": threading.Lock()}, {"lock": threading.Lock()}):
        (bounded,) = bound_results([replace(invocation("c"), result=value)])
        row = build_invocation_row(bounded)
        assert row["result"].startswith('{"unstorable":')
        assert row["unstorable"] == '{"result":"dict"}'


class Immeasurable(Mapping[str, Any]):
    """Nothing can be found out of it."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no members")

    def __len__(self) -> int:
        raise RuntimeError("no size")


def test_a_result_that_cannot_be_measured_takes_no_other_call_with_it(store: Store) -> None:
    async def scenario() -> None:
        writer = CallWriter(store, lambda *_: None)
        for name, result in (("odd", Immeasurable()), ("next", {"a": 1})):
            serial = writer.count_call()
            writer.queue_call(replace(invocation(name), serial=serial, result=result))
        await writer.wait_written()

    asyncio.run(scenario())
    assert store.calls.get("next").result == {"a": 1}
    assert "unstorable" in store.calls.get("odd").result
    assert store.audit.verify_chains() is None


def test_a_process_that_nobody_needs_any_more_ends(tmp_path: Path, store: Store) -> None:
    async def scenario(offload: RecordOffload) -> None:
        process = psutil.Process(await start(offload, store))
        while offload.process_id is not None:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(process.wait)
        assert await offload.store_group(build_calls("c", 1), NOW, 1) is None

    run_with_offload(tmp_path, scenario, rest=0.05)


def test_what_was_handed_over_outlives_a_sigkill_of_who_answered(
    tmp_path: Path, store: Store
) -> None:
    """Its end of the pair is closed then, and nobody reads the answers."""
    ours, theirs = socket.socketpair()
    with closing(Database(tmp_path / "registry.db")) as database:
        worker = threading.Thread(target=store_frames, args=(CallTable(database, "main"), theirs))
        with theirs, ours:
            worker.start()
            for group, due in (("a", True), ("b", True), ("c", True), ("d", False)):
                handover = Handover(0, tuple(build_calls(group, 2)), NOW, 1, due)
                send_frame(ours, pickle.dumps(handover))
            unknown = replace(invocation("e0"), entry="nobody")
            handover = Handover(2, (unknown, invocation("f0")), NOW, 1, due=False)
            send_frame(ours, pickle.dumps(handover))
            ours.sendall(struct.pack("!I", 10_000) + b"cut off")
            ours.close()
            worker.join()
    found = sorted(call.id for call in store.calls.find())
    assert found == ["a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1", "f0"]
    assert store.audit.verify_chains() is None


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0.0, 5.0)), max_size=50))
def test_calls_are_many_only_above_the_usual_rate(groups: list[tuple[int, float]]) -> None:
    rate, now, total, first = CallRate(), 0.0, 0, None
    for calls, pause in groups:
        now += pause
        total += calls
        first = now if first is None else first
        if rate.count_calls(calls, now):
            assert total >= BUSY_CALLS
    quiet = CallRate()
    assert not any(quiet.count_calls(PER_SECOND, float(second)) for second in range(1, 100))
