from __future__ import annotations

import typing
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry import trust
from registry.trust import (
    Fault,
    Observation,
    TrustRecord,
    compute_level,
    compute_standing,
    record_observations,
)


def record(window: str, successes: int | None = None, **changes: Any) -> TrustRecord:
    good = window.count("1") if successes is None else successes
    return replace(TrustRecord(1), window=window, ladder_successes=good, **changes)


def outcomes(good: int, bad: int) -> str:
    return "0" * bad + "1" * good


def seen(fault: Fault = "", version: int = 1) -> Observation:
    return Observation(version, fault, latency_ms=20.0, at=5.0, reason="bug: x")


@pytest.mark.parametrize(
    ("window", "successes", "level"),
    [
        ("", 0, "probationary"),
        (outcomes(9, 0), 9, "probationary"),
        (outcomes(10, 0), 10, "standard"),
        # 80 % exactly is not more than 80 %; 40 of 50, 41 of 50.
        (outcomes(8, 2), 8, "probationary"),
        (outcomes(40, 10), 40, "probationary"),
        (outcomes(41, 9), 41, "standard"),
        (outcomes(10, 2), 10, "standard"),
        (outcomes(12, 3), 12, "probationary"),
        # 95 %: 47 of 50 is not enough, 48 of 50 is; 19 of 20 is exactly 95 %.
        (outcomes(49, 0), 49, "standard"),
        (outcomes(50, 0), 50, "trusted"),
        (outcomes(48, 2), 49, "standard"),
        (outcomes(48, 2), 50, "trusted"),
        (outcomes(47, 3), 60, "standard"),
        (outcomes(19, 1), 60, "standard"),
        # Degraded needs 5 counted outcomes and less than 70 %: 7 of 10 and 35 of 50 are not less.
        (outcomes(0, 4), 0, "probationary"),
        (outcomes(0, 5), 0, "degraded"),
        (outcomes(3, 2), 3, "degraded"),
        (outcomes(4, 1), 4, "probationary"),
        (outcomes(7, 3), 7, "probationary"),
        (outcomes(35, 15), 35, "probationary"),
        (outcomes(34, 16), 34, "degraded"),
        (outcomes(34, 16), 400, "degraded"),
    ],
)
def test_the_level_changes_exactly_at_its_boundary(window: str, successes: int, level: str) -> None:
    assert compute_level(record(window, successes)) == level


def test_an_experimental_server_never_rises_by_counting() -> None:
    assert compute_level(record(outcomes(50, 0), 500), experimental=True) == "experimental"


def test_an_experimental_server_that_fails_is_degraded() -> None:
    assert compute_level(record(outcomes(0, 5)), experimental=True) == "degraded"


@pytest.mark.parametrize(
    ("kind", "status", "limited"),
    [
        ("http", 429, True),
        ("schema", 429, True),
        ("rate_limited", None, True),
        ("http", 503, False),
        ("http", None, False),
        ("bug", None, False),
        ("", 200, False),
    ],
)
def test_what_says_that_calls_came_too_fast(kind: str, status: int | None, limited: bool) -> None:
    assert trust.is_rate_limit(kind, status) is limited


@pytest.mark.parametrize(
    ("kind", "fault", "counted"),
    [
        ("", "", True),
        ("bug", "server", True),
        ("drift", "server", True),
        ("crashed", "server", True),
        ("wrong", "server", True),
        ("a kind that the container made up", "server", True),
        ("tool", "unclear", True),
        ("exception", "unclear", True),
        ("refusal", "refusal", False),
        ("schema", "api", False),
        ("malformed", "api", False),
        ("rate_limited", "upstream", False),
        ("http", "upstream", False),
        ("upstream", "upstream", False),
        ("timeout", "upstream", False),
        ("unreachable", "upstream", False),
        ("credential", "caller", False),
        ("arguments", "caller", False),
        ("too_large", "caller", False),
        ("refused", "nobody", False),
        ("not_allowed", "nobody", False),
        ("captured", "nobody", False),
        ("frozen", "nobody", False),
    ],
)
def test_only_what_the_server_may_be_to_blame_for_counts(
    kind: str, fault: str, counted: bool
) -> None:
    assert (trust.judge_fault(kind), trust.is_counted(kind)) == (fault, counted)


def test_an_uncounted_failure_is_recorded_and_leaves_the_ladder_alone() -> None:
    before = record(outcomes(10, 0), counted=10, total=10, successful=10)
    after = record_observation(before, seen("refusal"))
    assert (after.total, after.counted, after.window) == (11, 10, before.window)
    assert (after.last_failure, after.last_failure_reason) == (5.0, "bug: x")
    assert compute_standing(after).score == 1.0


def test_the_window_forgets_what_is_older_than_fifty_counted_outcomes() -> None:
    after = record_observation(record("0" + "1" * 49), seen())
    assert after.window == "1" * 50


def test_a_late_call_of_an_earlier_version_enters_the_lifetime_only() -> None:
    before = record(outcomes(5, 0), version=2, version_successes=5)
    after = record_observation(before, seen("server", version=1))
    assert (after.window, after.version_successes, after.ordinal) == (before.window, 5, 0)
    assert (after.total, after.counted) == (1, 1)


@pytest.mark.parametrize(
    ("successes", "window", "exempt"),
    [
        (49, outcomes(50, 0), False),
        (50, outcomes(50, 0), True),
        (50, outcomes(47, 3), False),
    ],
)
def test_a_write_is_exempt_only_when_trusted_and_done_fifty_times_under_this_version(
    successes: int, window: str, exempt: bool
) -> None:
    server = compute_standing(record(window, 100))
    operation = compute_standing(record("1", version_successes=successes))
    assert trust.is_write_exempt(server, operation) is exempt


def test_a_new_version_keeps_the_score_and_the_rung_and_loses_the_exemption() -> None:
    before = record(outcomes(50, 0), total=60, successful=60, counted=60, version_successes=60)
    after = trust.carry_over_record(before, 2, repaired=False)
    assert compute_level(after) == "trusted"
    assert (after.version, after.version_successes, after.successful) == (2, 0, 60)


def test_a_repair_starts_the_ladder_again_and_keeps_the_lifetime_score() -> None:
    before = record(outcomes(34, 16), total=60, successful=40, counted=60)
    after = trust.carry_over_record(before, 2, repaired=True)
    assert compute_level(after) == "probationary"
    assert (after.window, after.ladder_successes, after.ladder_version) == ("", 0, 2)
    assert compute_standing(after).score == pytest.approx(40 / 60)


@pytest.mark.parametrize(
    ("age", "version", "window", "ladder"),
    [
        (0, 1, "1110", 3),
        (3, 1, "0111", 3),
        (4, 1, "1111", 3),
        (None, 1, "1111", 4),
        (0, 0, "1111", 4),
    ],
)
def test_a_result_marked_wrong_becomes_a_failure_where_it_still_stands(
    age: int | None, version: int, window: str, ladder: int
) -> None:
    before = record("1111", successful=4, counted=4, version_successes=4)
    after = trust.overturn_success(before, version, age, at=9.0, reason="wrong")
    assert (after.window, after.ladder_successes) == (window, ladder)
    assert (after.successful, after.counted, after.last_failure) == (3, 4, 9.0)


@pytest.mark.parametrize(
    ("good", "total", "bound"), [(0, 0, 0.0), (0, 10, 0.0), (10, 10, 0.7225), (50, 50, 0.9287)]
)
def test_the_wilson_bound_is_the_published_one(good: int, total: int, bound: float) -> None:
    assert trust.compute_wilson_bound(good, total) == pytest.approx(bound, abs=1e-4)


FAULTS = st.sampled_from(typing.get_args(Fault))
OTHERS = ("caller", "upstream", "nobody")


BLANK = TrustRecord(1)


def record_observation(record: TrustRecord, observed: Observation) -> TrustRecord:
    return record_observations(record, (observed,))[0]


def play(faults: Iterable[Fault], record: TrustRecord = BLANK) -> TrustRecord:
    for fault in faults:
        record = record_observation(record, seen(fault))
    return record


@settings(max_examples=40)
@given(st.lists(st.tuples(FAULTS, st.integers(1, 2)), max_size=120))
def test_no_sequence_of_calls_breaks_the_records_invariants(calls: list[tuple[Fault, int]]) -> None:
    current = TrustRecord(2)
    for fault, version in calls:
        current = record_observation(current, seen(fault, version=version))
    assert 0 <= current.successful <= current.counted <= current.total == len(calls)
    assert max(len(current.window), len(current.recent)) <= trust.WINDOW
    assert current.window.count("1") <= current.ladder_successes <= current.ordinal
    standing = compute_standing(current)
    assert standing.ratio is None or standing.wilson <= standing.ratio
    assert standing.failed + standing.unclear <= standing.window


@settings(max_examples=40)
@given(st.lists(st.tuples(FAULTS, st.integers(1, 2)), max_size=120))
def test_calls_recorded_at_once_come_to_the_same_as_one_after_the_other(
    calls: list[tuple[Fault, int]],
) -> None:
    observed = [seen(fault, version=version) for fault, version in calls]
    single = TrustRecord(2, vouched=3)
    ordinals: list[int | None] = []
    for each in observed:
        single, (ordinal,) = record_observations(single, (each,))
        ordinals.append(ordinal)
    assert record_observations(TrustRecord(2, vouched=3), observed) == (single, tuple(ordinals))
    assert [each for each in ordinals if each] == list(range(1, single.ordinal + 1))


@settings(max_examples=40)
@given(st.lists(FAULTS, max_size=80))
def test_what_callers_and_the_world_do_changes_nothing_but_the_total(faults: list[Fault]) -> None:
    whole = play(faults)
    own = play([fault for fault in faults if fault not in OTHERS])
    same = ("counted", "ordinal", "window", "recent", "ladder_successes", "version_successes")
    assert [getattr(whole, name) for name in same] == [getattr(own, name) for name in same]
    assert compute_level(whole) == compute_level(own)


@settings(max_examples=40)
@given(st.lists(FAULTS, max_size=80))
def test_nothing_but_a_servers_own_fault_degrades_it(faults: list[Fault]) -> None:
    blameless = [fault for fault in faults if fault != "server"]
    current = play(blameless)
    assert compute_level(current) != "degraded"
    assert compute_level(trust.vouch_for_record(current)) != "degraded"
    assert not trust.is_suspected(trust.vouch_for_record(current))


@settings(max_examples=40)
@given(st.lists(FAULTS, max_size=80))
def test_no_refusal_helps_a_server_to_rise(faults: list[Fault]) -> None:
    order = ("degraded", "probationary", "standard", "trusted")
    current = play(faults)
    refused = play(["refusal"] * 30, current)
    assert order.index(compute_level(refused)) <= order.index(compute_level(current))
    assert refused.version_successes == current.version_successes
    assert compute_standing(refused).refusing is not None


@settings(max_examples=40)
@given(st.lists(FAULTS, max_size=80))
def test_own_cases_that_fail_never_improve_a_record(faults: list[Fault]) -> None:
    current = play(faults)
    after = trust.condemn_record(current)
    assert after.window == current.window.replace("?", "0")
    assert compute_standing(after).failed >= compute_standing(current).failed


@pytest.mark.parametrize(
    ("window", "vouched", "suspected"),
    [
        ("????1", 0, True),
        ("???1", 0, False),
        ("111??", 0, True),
        ("1111?", 0, False),
        ("0000", 0, False),
        # Once its cases were found to pass, 25 more calls have to speak against it.
        ("????1", 5, False),
        ("1" * 10 + "?" * 14, 1, False),
        ("1" * 10 + "?" * 16, 1, True),
    ],
)
def test_a_server_is_suspected_once_the_unclear_would_degrade_it(
    window: str, vouched: int, suspected: bool
) -> None:
    current = record(window, ordinal=len(window), vouched=vouched)
    assert trust.is_suspected(current) is suspected


@pytest.mark.parametrize(
    ("recent", "refusing"),
    [("rrrr", None), ("rrrrr", 1.0), ("1111111rrr", None), ("111111rrrr", 0.4), ("1?rd0", 0.6)],
)
def test_a_third_of_refusals_is_shown_and_blocks_the_exemption(
    recent: str, refusing: float | None
) -> None:
    operation = compute_standing(record("1", version_successes=50, recent=recent))
    assert operation.refusing == refusing
    server = compute_standing(record(outcomes(50, 0), 100))
    assert trust.is_write_exempt(server, operation) is (refusing is None)
