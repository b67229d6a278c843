from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.broker.retries import (
    BACKOFF_CAP,
    add_retry_hint,
    compute_backoff,
    parse_http_date,
    read_advised_wait,
)
from sandbox.broker.throttle import Rate, Throttle
from sandbox.broker.throttle_stores import MAX_PAUSE
from sandbox.clock import VirtualClock
from sandbox.errors import RateLimited
from sandbox.wire.exchange import Caps, Release, WireRequest
from tests.sandbox.scripted import API, Told, answer, broker, get, performed, rule

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC).timestamp()
ORIGIN = rule().origin


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        ("Sat, 21 Nov 2026 12:01:00 GMT", 60.0),
        ("Saturday, 21-Nov-26 12:01:00 GMT", 60.0),
        ("Sat Nov 21 12:01:00 2026", 60.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("Sat Nov  7 12:01:00 2026", 0.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("999999999999", None),
        ("Sat, 21 Nov 2026 12:00:60 GMT", 59.0),
        ("Sat, 21 Nov 2026 13:01:00 +0100", 60.0),
        ("Sat, 21 Nov 2026 12:60:00 GMT", None),
        ("Sat, 99 Nov 2026 12:01:00 GMT", None),
        ("Sat, 21 Nov 2026 12:01:00 CET", None),
        ("١٢", None),
    ],
)
def test_retry_after_is_read_as_seconds_and_in_all_three_forms_of_a_date(
    written: str, seconds: float | None
) -> None:
    assert read_advised_wait(answer(429, retry_after=written), NOW) == seconds


def test_a_date_is_counted_from_the_answers_own_date_where_there_is_one() -> None:
    dated = answer(
        503, retry_after="Wed, 21 Oct 2015 07:28:30 GMT", date="Wed, 21 Oct 2015 07:28:00 GMT"
    )
    assert read_advised_wait(dated, NOW) == 30.0


def test_a_two_digit_year_far_ahead_is_one_of_the_last_century() -> None:
    assert parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", NOW) == 784111777.0
    assert parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", NOW) == 784111777.0
    assert parse_http_date("Sun Nov  6 08:49:37 1994", NOW) == 784111777.0
    ahead = parse_http_date("Friday, 06-Nov-76 08:49:37 GMT", NOW)
    assert ahead == parse_http_date("Fri, 06 Nov 2076 08:49:37 GMT", NOW)


@given(st.text(max_size=80) | st.text("Sat, Nov:-0123456789GMT+.", max_size=40))
def test_any_text_is_a_date_or_none(text: str) -> None:
    assert isinstance(parse_http_date(text, NOW), float | None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"ratelimit_reset": "30"}, 30.0),
        ({"x_ratelimit_reset": str(int(NOW) + 45)}, 45.0),
        ({"x_ratelimit_reset": str(int(NOW * 1000) + 5000)}, 5.0),
        ({"x_rate_limit_reset": "0.5"}, 0.5),
        ({"ratelimit": "limit=100, remaining=0, reset=50"}, 50.0),
        ({"ratelimit": '"default";r=0;t=7'}, 7.0),
        ({"retry_after": "3", "ratelimit_reset": "30"}, 3.0),
        ({"retry_after": "x", "ratelimit_reset": "30"}, 30.0),
        ({"x_ratelimit_reset": "tomorrow"}, None),
        ({"x_ratelimit_reset": "9" * 14}, None),
    ],
)
def test_the_reset_of_a_rate_limit_stands_in_for_an_absent_retry_after(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert read_advised_wait(answer(429, **headers), NOW) == seconds


def test_a_reset_of_an_answer_that_refuses_nothing_is_no_hint() -> None:
    assert read_advised_wait(answer(200, x_ratelimit_reset="30"), NOW) is None
    assert add_retry_hint(answer(200), 30.0).get_header("retry-after") is None


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_backoff_is_never_longer_than_its_cap_nor_negative(attempt: int, random: float) -> None:
    assert 0 <= compute_backoff(attempt, random) <= BACKOFF_CAP


def test_a_read_that_is_refused_without_a_hint_is_tried_again_after_growing_waits() -> None:
    clock, upstream = VirtualClock(), Told([answer(503), answer(429), answer(200, "fine")])
    exchange = performed(broker(upstream, clock=clock).perform(get()))
    assert exchange.response is not None
    assert (exchange.response.body, exchange.attempts) == (b"fine", 3)
    assert clock.now() == 0.5 + 1.0


def test_retry_after_as_a_date_is_waited_for() -> None:
    clock = VirtualClock(epoch=NOW)
    upstream = Told([answer(429, retry_after="Sat, 21 Nov 2026 12:00:09 GMT"), answer(200)])
    exchange = performed(broker(upstream, clock=clock).perform(get()))
    assert exchange.response is not None
    assert (exchange.response.status, clock.now()) == (200, 9.0)


def test_waits_never_exceed_the_budget_in_all() -> None:
    clock, upstream = VirtualClock(), Told([answer(429, retry_after="12")])
    exchange = performed(broker(upstream, clock=clock).perform(get()))
    assert (exchange.attempts, clock.now()) == (2, 12.0)


def test_a_wait_beyond_the_budget_is_passed_on_with_what_the_api_said() -> None:
    upstream = Told([answer(429, "slow down", x_ratelimit_reset="90")])
    exchange = performed(broker(upstream).perform(get()))
    assert exchange.response is not None
    assert (exchange.response.body, exchange.attempts) == (b"slow down", 1)
    assert exchange.response.get_header("retry-after") == "90"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_request_that_writes_is_never_sent_again_by_itself(method: str) -> None:
    upstream = Told([answer(503), answer(200)])
    writing = broker(upstream, rule(method, read=False), writes=Release(None))
    exchange = performed(writing.perform(WireRequest(method, API + "/things")))
    assert exchange.response is not None
    assert (exchange.response.status, len(upstream.requests)) == (503, 1)


def test_a_get_that_writes_is_never_sent_again_by_itself() -> None:
    upstream = Told([answer(429, retry_after="1"), answer(200)])
    performed(broker(upstream, rule(read=False)).perform(get()))
    assert len(upstream.requests) == 1


def test_a_post_that_reads_is_not_sent_again_because_its_method_promises_nothing() -> None:
    upstream = Told([answer(429, retry_after="1"), answer(200)])
    performed(broker(upstream, rule("POST")).perform(WireRequest("POST", API + "/search")))
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 500, 502, 504])
def test_other_failures_are_not_tried_again(status: int) -> None:
    upstream = Told([answer(status, retry_after="1"), answer(200)])
    performed(broker(upstream).perform(get()))
    assert len(upstream.requests) == 1


def test_what_one_session_is_told_holds_the_others_of_that_origin() -> None:
    clock, throttle = VirtualClock(), Throttle()
    refusing = Told([answer(429, retry_after="5")])
    writing = broker(refusing, rule("POST", read=False), clock=clock, throttle=throttle)
    performed(writing.perform(WireRequest("POST", API + "/things")))
    other = Told([answer(200)])
    performed(broker(other, clock=clock, throttle=throttle).perform(get()))
    assert clock.now() == 5.0


def test_a_long_pause_is_told_at_once_and_nothing_is_sent() -> None:
    clock, throttle = VirtualClock(), Throttle()
    refusing = Told([answer(429, retry_after="300")])
    performed(broker(refusing, clock=clock, throttle=throttle).perform(get()))
    other = Told([answer(200)])
    exchange = performed(broker(other, clock=clock, throttle=throttle).perform(get()))
    assert (exchange.refusal, exchange.retry_after, exchange.attempts) == ("rate_limited", 300.0, 0)
    assert "300 s" in exchange.reason
    assert (other.requests, clock.now()) == ([], 0.0)


def test_another_origin_is_not_held() -> None:
    clock, throttle = VirtualClock(), Throttle()
    throttle.pause_origin(ORIGIN, clock, 300.0)
    elsewhere = Told([answer(200)])
    free = broker(elsewhere, rule(url="https://b.test"), clock=clock, throttle=throttle)
    exchange = performed(free.perform(WireRequest("GET", "https://b.test/x")))
    assert exchange.response is not None


def test_a_write_that_was_held_before_it_left_has_not_been_released() -> None:
    clock, throttle = VirtualClock(), Throttle()
    throttle.pause_origin(ORIGIN, clock, 300.0)
    writing = broker(
        Told([answer(200)]),
        rule("POST", read=False),
        clock=clock,
        throttle=throttle,
        writes=Release(None),
    )
    exchange = performed(writing.perform(WireRequest("POST", API + "/things")))
    assert (exchange.refusal, writing.released) == ("rate_limited", False)


def test_an_absurd_pause_is_forgotten_after_an_hour() -> None:
    clock, throttle = VirtualClock(), Throttle()
    throttle.pause_origin(ORIGIN, clock, 10.0**9)
    with pytest.raises(RateLimited) as raised:
        throttle.admit_request(ORIGIN, clock, 10.0).send(None)
    assert raised.value.seconds == MAX_PAUSE


def test_those_who_waited_for_a_pause_come_back_one_by_one() -> None:
    clock, throttle = VirtualClock(), Throttle(Rate(per_second=2.0, burst=10.0))
    throttle.pause_origin(ORIGIN, clock, 4.0)
    times = []
    for _ in range(4):
        with pytest.raises(StopIteration):
            throttle.admit_request(ORIGIN, clock, 60.0).send(None)
        times.append(clock.now())
    assert times == [4.0, 4.5, 5.0, 5.5]


def test_a_redirect_loop_ends() -> None:
    upstream = Told([answer(302, location="/things")])
    exchange = performed(broker(upstream).perform(get()))
    assert exchange.refusal == "refused"
    assert "redirected more than" in exchange.reason
    assert len(upstream.requests) == Caps().redirects + 1
