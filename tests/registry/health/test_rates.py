"""The rate that refusals teach: near what the API takes, and nothing from an outage."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from registry.health.rates import LearnedRate, SentRequest, learn_rate


def crowded(limit: int, per: float, asked: int, seconds: float, seed: int = 1) -> list[SentRequest]:
    """What an API that takes `limit` in any `per` seconds made of so many requests at random."""
    random, taken, sent = Random(seed), list[float](), list[SentRequest]()
    for at in sorted(random.uniform(0, seconds) for _ in range(asked)):
        taken = [each for each in taken if at - each < per]
        if len(taken) < limit:
            taken.append(at)
        sent.append(SentRequest(1e9 + at, bool(taken) and taken[-1] == at))
    return sent


@pytest.mark.parametrize(("limit", "per"), [(5, 1.0), (20, 1.0), (10, 10.0), (30, 60.0)])
def test_what_an_api_takes_is_learned_with_a_margin(limit: int, per: float) -> None:
    rate = learn_rate(crowded(limit, per, limit * 8, per * 3))
    assert rate is not None
    assert rate.requests / rate.per <= limit / per
    assert rate.requests / rate.per >= 0.4 * limit / per


@given(
    limit=some.integers(1, 60),
    per=some.sampled_from([1.0, 10.0, 60.0]),
    asked=some.integers(3, 300),
    seed=some.integers(0, 99),
)
def test_no_more_is_learned_than_was_taken(limit: int, per: float, asked: int, seed: int) -> None:
    rate = learn_rate(crowded(limit, per, asked, per * 2, seed))
    assert rate is None or rate.requests <= max(1, limit * max(1.0, rate.per / per) + 1)


def test_a_short_crowd_says_nothing_of_long_windows() -> None:
    sent = [SentRequest(100 + at * 0.37, at % 3 != 1) for at in range(12)]
    rate = learn_rate(sent)
    assert rate is not None
    assert rate.per == 1.0


@pytest.mark.parametrize("taken", [[], [True] * 20, [False] * 20, [True] * 9 + [False]])
def test_an_api_that_refuses_nothing_or_everything_teaches_no_rate(taken: list[bool]) -> None:
    assert learn_rate(SentRequest(100 + at / 10, good) for at, good in enumerate(taken)) is None


def test_a_second_lesson_only_slows_down() -> None:
    sent = crowded(50, 1.0, 400, 3.0)
    first = learn_rate(sent)
    assert first is not None
    second = learn_rate(sent, first.requests / first.per)
    assert second is not None
    assert second.requests / second.per < first.requests / first.per


def test_the_slowest_is_one_request_a_minute() -> None:
    sent = [SentRequest(100.0, True), SentRequest(100.1, False), SentRequest(100.2, False)]
    assert learn_rate(sent, 1 / 60) is None


def test_a_limit_of_thousands_is_told_for_a_shorter_time() -> None:
    sent = [SentRequest(1 + at / 10_000, at < 900) for at in range(1800)]
    rate = learn_rate(sent)
    assert isinstance(rate, LearnedRate)
    assert rate.limit <= 200
    assert rate.requests / rate.per <= 900
