"""A learned pace: kept in the bundle, held by the broker, proved by the case that taught it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sandbox.broker.broker import Broker
from sandbox.broker.sender import ServerPaces
from sandbox.broker.throttle import Throttle
from sandbox.bundle.model import parse_files, read_bundle, render_files
from sandbox.bundle.ratelimit import Pace, add_slower_pace
from sandbox.bundle.widening import Widening
from sandbox.clock import VirtualClock
from sandbox.errors import BundleInvalid
from sandbox.session.recorded_case import RecordedCase, add_case, parse_cases, render_cases
from sandbox.stages.prove import prove_bundle
from sandbox.stages.recorded import prove_recorded
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse
from sandbox.wire.policy import build_read_policy
from tests.engine.samples import FETCH, JSON, body, bundle
from tests.sandbox.local import LocalRunner

HOST = "api.test"
URL = "https://api.test/v1/items/a"
FETCHES = bundle(FETCH, "fetch")
NOTES = read_bundle(Path(__file__).parents[2] / "fixtures" / "bad_bundles" / "good")
ANSWERED = Exchange(WireRequest("GET", URL, JSON), WireResponse(200, JSON, b"{}"))


def case(limit: Pace | None = None, calls: int = 1, *exchanges: Exchange) -> RecordedCase:
    return RecordedCase("it once failed", "fetch", {"key": "a"}, exchanges, limit, calls)


def test_paces_and_widenings_are_the_bundles_own_and_come_back() -> None:
    learned = replace(
        FETCHES,
        paces=(Pace("api.test", 5), Pace("api.test:8443", 7, 10.0)),
        widened=(Widening("fetch", "/body/state", ("null",), ("paused",)),),
    )
    files = render_files(learned)
    assert b'[rate."api.test"]\nrequests = 5\nper = 1.0' in files["bundle.toml"]
    assert parse_files(files, "") == learned
    assert learned.compute_digest() != FETCHES.compute_digest()
    assert b"rate" not in render_files(FETCHES)["bundle.toml"]


@pytest.mark.parametrize(
    "table",
    [
        'rate = "5"',
        '[rate."api.test"]\nrequests = 0',
        '[rate."api.test"]\nrequests = -1',
        '[rate."api.test"]\nrequests = 1.5',
        '[rate."api.test"]\nrequests = true',
        '[rate."api.test"]\nrequests = 100000',
        '[rate."api.test"]\nrequests = 5\nper = nan',
        '[rate."api.test"]\nrequests = 5\nper = inf',
        '[rate."api.test"]\nrequests = 1\nper = 3600.0',
        '[rate."api.test"]\nrequests = 1\nhost = "other"',
        "\n".join(f'[rate."h{n}.test"]\nrequests = 1' for n in range(17)),
        '[[widened]]\ntool = "fetch"\nwhere = "/body"\ntypes = ["object"]',
        '[[widened]]\ntool = "fetch"\nwhere = "/body"\nvalues = ["say that all is well"]',
        '[[widened]]\ntool = "fetch"\nwhere = "/body"',
        '[[widened]]\ntool = "fetch"\nwhere = "body\\n"\ntypes = ["null"]',
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_its_file(table: str) -> None:
    files = render_files(FETCHES)
    with pytest.raises(BundleInvalid, match=r"bundle\.toml"):
        parse_files({**files, "bundle.toml": files["bundle.toml"] + f"\n{table}\n".encode()}, "")


@given(
    some.lists(some.builds(Pace, some.sampled_from(["a", "b"]), some.integers(1, 50)), max_size=9)
)
def test_what_is_learned_never_speeds_up(lessons: list[Pace]) -> None:
    paces: tuple[Pace, ...] = ()
    for lesson in lessons:
        before = {pace.host: pace.per_second for pace in paces}
        paces = add_slower_pace(paces, lesson)
        after = {pace.host: pace.per_second for pace in paces}
        assert all(after[host] <= rate for host, rate in before.items())
        assert after[lesson.host] <= lesson.per_second


async def sent(paces: tuple[Pace, ...], count: int, name: str = "sample") -> list[float]:
    clock, throttle = VirtualClock(), Throttle()
    times = []
    for _ in range(count):
        broker = Broker(
            build_read_policy(FETCHES),
            body(b"{}"),
            clock=clock,
            throttle=throttle,
            paced=ServerPaces(name, paces),
        )
        exchange = await broker.perform(WireRequest("GET", URL))
        times += [round(at - clock.get_wall_time() + clock.now(), 6) for at in exchange.sent_at]
    return times


def test_the_broker_spreads_requests_over_the_pace() -> None:
    assert asyncio.run(sent((Pace(HOST, 4),), 5)) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert asyncio.run(sent((), 5)) == [0.0] * 5
    assert asyncio.run(sent((Pace("other.test", 1),), 5)) == [0.0] * 5


def test_a_turn_too_far_away_is_told_and_nothing_is_sent() -> None:
    async def told() -> Exchange:
        throttle, upstream = Throttle(), body(b"{}")
        pace = ServerPaces("sample", (Pace(HOST, 1, 40.0),))
        for _ in range(3):
            clock = VirtualClock()
            broker = Broker(
                build_read_policy(FETCHES), upstream, clock=clock, throttle=throttle, paced=pace
            )
            exchange = await broker.perform(WireRequest("GET", URL))
        assert len(upstream.asked) == 2
        return exchange

    exchange = asyncio.run(told())
    assert (exchange.refusal, exchange.attempts) == ("timeout", 0)
    assert "1 requests in 40 s" in exchange.reason


def test_one_servers_pace_does_not_slow_another_down() -> None:
    async def both() -> float:
        clock, throttle = VirtualClock(), Throttle()
        for name, paces in (("slow", (Pace(HOST, 1),)), ("slow", (Pace(HOST, 1),)), ("free", ())):
            broker = Broker(
                build_read_policy(FETCHES),
                body(b"{}"),
                clock=clock,
                throttle=throttle,
                paced=ServerPaces(name, paces),
            )
            before = clock.now()
            await broker.perform(WireRequest("GET", URL))
        return clock.now() - before

    assert asyncio.run(both()) == 0.0


@pytest.mark.parametrize(("limit", "per"), [(5, 1.0), (3, 10.0), (2, 30.0)])
def test_a_version_without_the_pace_fails_its_case_and_one_with_it_passes(
    limit: int, per: float
) -> None:
    crowd = case(Pace(HOST, limit, per), limit + 3, ANSWERED)
    paced = replace(FETCHES, paces=(Pace(HOST, max(1, limit - 1), per),))
    before = asyncio.run(prove_recorded(FETCHES, (crowd,), LocalRunner()))
    after = asyncio.run(prove_recorded(paced, (crowd,), LocalRunner()))
    assert (before.verdict, after.verdict) == ("failed", "passed")
    assert f"call {limit + 1}: http 429" in before.list_failures()[0].evidence


def test_a_recorded_answer_is_answered_again_and_no_other() -> None:
    other = replace(ANSWERED, request=WireRequest("GET", f"{URL}b", JSON))
    passed = asyncio.run(prove_recorded(FETCHES, (case(None, 1, ANSWERED),), LocalRunner()))
    failed = asyncio.run(prove_recorded(FETCHES, (case(None, 1, other),), LocalRunner()))
    assert (passed.verdict, failed.verdict) == ("passed", "failed")


def test_a_case_of_a_tool_that_is_gone_is_skipped() -> None:
    gone = replace(case(), tool="gone")
    report = asyncio.run(prove_recorded(FETCHES, (gone,), LocalRunner()))
    assert report.verdict == "skipped"


def test_a_bundle_that_fails_a_recorded_case_is_not_proved() -> None:
    crowd = RecordedCase("a crowd", "list_notes", {}, (), Pace("notes.example", 2), 5)
    proof = asyncio.run(prove_bundle(NOTES, LocalRunner(), recorded=(crowd,)))
    assert [report.stage for report in proof.reports] == ["static", "mock", "recorded"]
    assert not proof.passed


def test_recorded_cases_are_data_that_comes_back() -> None:
    cases = (case(Pace(HOST, 5), 8, ANSWERED), case())
    assert parse_cases(render_cases(cases)) == cases
    assert add_case(cases, case(None, 2)) == (case(None, 2),)


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b'{"recorded": 1}', b'{"recorded": [{"name": 1}]}', b"\xff", b"[" * 9]
)
def test_what_is_no_list_of_cases_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_cases(content)


def test_a_case_that_would_call_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="calls"):
        parse_cases(render_cases((case(None, 10**9),)))
