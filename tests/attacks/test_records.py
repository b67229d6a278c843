"""What a server, an API or a client can put into the record of a call, and into its neighbours'."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.gateway.audit_writer import CallWriter
from orchestrator.gateway.record import settle_call
from registry.audit.heads import HeadSigner
from registry.models import CallFailure, Invocation
from registry.store import Store
from sandbox.session.interface import Outcome
from tests.attacks.answering import answering, result_line
from tests.registry.samples import entry, invocation

HUGE = 10**40


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


HOSTILE: dict[str, dict[str, Any]] = {
    "status": {"failure": CallFailure("http", "no", HUGE)},
    "negative status": {"failure": CallFailure("http", "no", -HUGE)},
    "status of digits without end": {"failure": CallFailure("http", "no", 10**400)},
    "status that is a text": {"failure": CallFailure("http", "no", "404")},  # type: ignore[arg-type]
    "kind with NUL": {"failure": CallFailure("a\0b", "no\0")},
    "kind of halves of pairs": {"failure": CallFailure("\ud800", "\udfff")},
    "message that is a list": {"failure": CallFailure("bug", ["no"])},  # type: ignore[arg-type]
    "kind that is a number": {"failure": CallFailure(HUGE, "no")},  # type: ignore[arg-type]
    "result of long numbers": {"result": {"a": HUGE, "b": [-HUGE]}},
    "result that is no number": {"result": {"a": math.nan, "b": [math.inf]}},
    "result of halves of pairs": {"result": {"\ud800": "\udfff\0"}},
    "result of bytes": {"result": {"a": b"\xff"}},
    "result without end": {"result": "x" * 3_000_000},
    "result of long numbers without end": {"result": [HUGE] * 100_000},
    "deep result": {"result": deep(5000)},
    "deep arguments": {"arguments": {"a": deep(5000)}},
    "exchange with a status without end": {"exchanges": ({"response": {"status": HUGE}},)},
    "exchange that is no number": {"exchanges": ({"elapsed_ms": math.nan},)},
    "time that is no number": {"latency_ms": math.nan},
    "time without end": {"latency_ms": math.inf},
    "time of digits without end": {"latency_ms": 10**400},
    "words": {"task": "\0\ud800" * 30_000, "reason": "\0", "session": "\ud800"},
    "words that are a list": {"task": ["a"], "session": HUGE},
    "recording that cannot be packed": {"recording": object()},
}


def write_group(store: Store, calls: list[Invocation]) -> None:
    """What a process does with calls that end at the same moment, and then itself."""

    async def run() -> None:
        writer = CallWriter(store, lambda name, standing: None)
        for call in calls:
            writer.queue_call(replace(call, serial=writer.count_call()))
        await writer.close()
        await writer.write_count()

    asyncio.run(run())


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "registry.db", "main") as opened:
        opened.servers.publish(entry(), now=10.0)
        yield opened


@pytest.mark.parametrize("what", HOSTILE)
def test_no_value_costs_a_row_or_a_neighbour_s(store: Store, tmp_path: Path, what: str) -> None:
    calls = [invocation("before"), invocation("hostile", **HOSTILE[what]), invocation("after")]
    write_group(store, calls)
    assert [call.id for call in store.calls.find()] == ["after", "hostile", "before"]
    assert store.calls.get("before") == calls[0]
    assert store.calls.get("after") == calls[2]
    assert HeadSigner(tmp_path / "heads").verify_audit(store.audit) is None
    assert store.standings.get("dns").total == 3


def test_what_could_not_be_stored_is_said_in_the_row(store: Store) -> None:
    write_group(store, [invocation("c1", failure=CallFailure("http", "no", HUGE))])
    kept = store.calls.get("c1")
    assert kept.failure == CallFailure("http", "no", None)
    assert kept.unstorable == {"failure_status": f"an integer of {HUGE.bit_length()} bits"}


def test_what_can_be_stored_is_kept_as_it_is(store: Store) -> None:
    values: dict[str, Any] = {
        "arguments": {"n": 2**80, "text": "\x00\u200b\u00e9"},
        "result": {"big": [10**30], "text": "a\ufe0f"},
        "failure": CallFailure("http", "not found", 404),
        "latency_ms": 0.25,
    }
    call = invocation("c1", **values)
    write_group(store, [call])
    assert store.calls.get("c1") == call
    assert store.calls.get("c1").unstorable == {}


def test_a_call_that_has_no_row_at_all_freezes_and_is_told(store: Store, tmp_path: Path) -> None:
    write_group(store, [invocation("c1"), invocation("c2", entry="nobody"), invocation("c3")])
    assert [call.id for call in store.calls.find()] == ["c3", "c1"]
    frozen = store.processes.get_freeze()
    assert frozen.frozen
    assert "c2" in frozen.reason
    broken = HeadSigner(tmp_path / "heads").verify_audit(store.audit)
    assert broken is not None
    assert "its number 2" in broken.reason


def test_every_call_of_a_process_is_counted_and_none_is_missed(
    store: Store, tmp_path: Path
) -> None:
    write_group(store, [invocation(f"c{number}") for number in range(50)])
    assert HeadSigner(tmp_path / "heads").verify_audit(store.audit) is None
    assert not store.processes.get_freeze().frozen


def test_a_call_that_ends_after_its_process_has_counted_is_not_missed(
    store: Store, tmp_path: Path
) -> None:
    async def run() -> None:
        writer = CallWriter(store, lambda name, standing: None)
        late = replace(invocation("late"), serial=writer.count_call())
        writer.queue_call(replace(invocation("c2"), serial=writer.count_call()))
        await writer.write_count()
        writer.queue_call(late)
        await writer.close()

    asyncio.run(run())
    assert {call.id for call in store.calls.find()} == {"late", "c2"}
    assert HeadSigner(tmp_path / "heads").verify_audit(store.audit) is None


def test_a_call_whose_row_never_came_is_told_by_the_next_one(store: Store, tmp_path: Path) -> None:
    store.calls.record(invocation("c1", serial=1), 100.0, complete=1)
    store.calls.record(invocation("c3", serial=3), 100.0, complete=3)
    broken = HeadSigner(tmp_path / "heads").verify_audit(store.audit)
    assert broken is not None
    assert "its number 2" in broken.reason


def failing(meta: str) -> Outcome:
    """The outcome of a call that a server says failed, with that JSON as its error's details."""
    said = f'{{"isError":true,"content":[],"_meta":{{"toolwright/error":{meta}}}}}'

    async def run() -> Outcome:
        async with answering(lambda id, _: [result_line(id, said.encode())]) as session:
            return await session.call("say", {})

    return asyncio.run(run())


@pytest.mark.parametrize(
    "meta",
    [
        f'{{"kind":"http","status":{HUGE}}}',
        '{"kind":"http","status":-1}',
        '{"kind":"http","status":true}',
        f'{{"kind":"rate_limited","retry_after":{"9" * 400}}}',
        f'{{"kind":"rate_limited","retry_after":-{"9" * 400}}}',
        '{"kind":"rate_limited","retry_after":1e308}',
        '{"kind":{"a":[]},"where":["b"],"status":"404","retry_after":"1"}',
        '["no object"]',
    ],
)
def test_no_answer_ends_a_call_without_an_outcome_or_a_row(store: Store, meta: str) -> None:
    outcome = failing(meta)
    assert outcome.failure is not None
    assert outcome.failure.retry_after is None
    assert outcome.failure.status is None
    write_group(store, [settle_call(invocation("c1"), outcome, None)])
    assert store.calls.get("c1").unstorable == {}


def test_an_honest_failure_keeps_its_status_and_its_wait(store: Store) -> None:
    outcome = failing('{"kind":"http","status":503,"retry_after":1.5,"where":"/a"}')
    assert outcome.failure is not None
    assert (outcome.failure.status, outcome.failure.retry_after) == (503, 1.5)
    assert outcome.failure.where == "/a"
