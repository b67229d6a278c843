"""Estimating an API's rate limit from accepted and refused requests. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor
from statistics import median_low

WINDOWS = (1.0, 10.0, 60.0)
"""Seconds. The periods that rate limits are usually given for."""
MARGIN = 0.8
"""The share of the estimated limit that is used: clocks differ, and others may use the API too."""
LEAST_REFUSED = 2
MAX_REQUESTS = 200
TOLERATED = 0.1
MAX_EVENTS = 2000


@dataclass(frozen=True)
class SentRequest:
    """One request that reached a host: when (seconds since 1970), and whether it was taken."""

    at: float
    taken: bool


@dataclass(frozen=True)
class LearnedRate:
    """At most `requests` in any `per` seconds; `limit` is the estimate without the margin."""

    requests: int
    per: float
    limit: int


def learn_rate(sent: Iterable[SentRequest], at_most: float = float("inf")) -> LearnedRate | None:
    """Estimate a rate that the API would have accepted; None where too few requests were refused,
    or where none was accepted, which is an outage.

    Chooses the shortest of WINDOWS in which nearly every refusal came when the window was full, or
    else the one in which most did. The rate is always less than `at_most` per second, so that each
    further refusal slows down further.
    """
    events = sorted(sent, key=lambda each: (each.at, not each.taken))[-MAX_EVENTS:]
    refused = sum(not each.taken for each in events)
    if refused < LEAST_REFUSED or refused == len(events):
        return None
    span = events[-1].at - events[0].at
    limits = {per: _estimate_limit(events, per) for per in WINDOWS if per <= max(span, WINDOWS[0])}
    misfits = {per: _measure_misfit(events, per, limit) for per, limit in limits.items() if limit}
    fitting = [per for per, misfit in misfits.items() if misfit <= TOLERATED]
    if not misfits:
        return None
    per = min(fitting) if fitting else min(misfits, key=lambda each: (misfits[each], each))
    return _apply_margin(limits[per], per, at_most)


def _apply_margin(limit: int, per: float, at_most: float) -> LearnedRate | None:
    if limit > MAX_REQUESTS:
        limit, per = MAX_REQUESTS, per * MAX_REQUESTS / limit
    requests = max(1, floor(limit * MARGIN))
    if requests / per >= at_most:
        requests = max(1, floor(at_most * per / 2))
    if requests / per >= at_most:
        per = 2 * requests / at_most
    return LearnedRate(requests, per, limit) if per <= WINDOWS[-1] else None


def _estimate_limit(events: Sequence[SentRequest], per: float) -> int:
    """The median number of requests accepted in the window before a refusal. The maximum could be
    twice the limit, where the API's windows begin at fixed times.
    """
    counts = [_count_taken_before(events, at, per) for at, e in enumerate(events) if not e.taken]
    return median_low([count for count in counts if count] or [0])


def _measure_misfit(events: Sequence[SentRequest], per: float, limit: int) -> float:
    """How badly a limit explains the events, 0..1: the share of refusals in a window that was far
    from full, or of requests accepted beyond the limit, whichever is larger.
    """
    counts = [(_count_taken_before(events, at, per), each.taken) for at, each in enumerate(events)]
    full = [count for count, taken in counts if not taken]
    beyond = sum(taken and count >= limit for count, taken in counts)
    far = sum(count < limit * 0.5 for count in full)
    return max(far / len(full), beyond / len(counts))


def _count_taken_before(events: Sequence[SentRequest], index: int, per: float) -> int:
    """The number of requests accepted in the window before that request."""
    count, at = 0, events[index].at
    for each in reversed(events[:index]):
        if at - each.at >= per:
            break
        count += each.taken
    return count
