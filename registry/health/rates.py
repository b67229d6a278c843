"""How many requests an API takes, from when it took some and refused others. A pure function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor
from statistics import median_low

WINDOWS = (1.0, 10.0, 60.0)
"""Seconds. What limits are given for, mostly."""
MARGIN = 0.8
"""Of what it took is asked: its clock and ours are not the same, and others may ask as well."""
LEAST_REFUSED = 2
MAX_REQUESTS = 200
TOLERATED = 0.1
MAX_EVENTS = 2000


@dataclass(frozen=True)
class Sent:
    """One request that reached a host: when (seconds since 1970), and whether it was taken."""

    at: float
    taken: bool


@dataclass(frozen=True)
class Learned:
    """At most `requests` in any `per` seconds; `limit` is what was seen, without the margin."""

    requests: int
    per: float
    limit: int


def learned(sent: Iterable[Sent], at_most: float = float("inf")) -> Learned | None:
    """The rate that would not have been refused; None where these requests teach none: too few
    were refused, or none was taken, which is an outage.

    Of the windows that these requests span the shortest counts in which nearly every refusal came
    when the window was full, or else the one in which most did. The rate is never more than
    `at_most` per second, so that being refused again slows down further.
    """
    events = sorted(sent, key=lambda each: (each.at, not each.taken))[-MAX_EVENTS:]
    refused = sum(not each.taken for each in events)
    if refused < LEAST_REFUSED or refused == len(events):
        return None
    span = events[-1].at - events[0].at
    limits = {per: _limit(events, per) for per in WINDOWS if per <= max(span, WINDOWS[0])}
    misfits = {per: _misfit(events, per, limit) for per, limit in limits.items() if limit}
    fitting = [per for per, misfit in misfits.items() if misfit <= TOLERATED]
    if not misfits:
        return None
    per = min(fitting) if fitting else min(misfits, key=lambda each: (misfits[each], each))
    return _with_margin(limits[per], per, at_most)


def _with_margin(limit: int, per: float, at_most: float) -> Learned | None:
    if limit > MAX_REQUESTS:
        limit, per = MAX_REQUESTS, per * MAX_REQUESTS / limit
    requests = max(1, floor(limit * MARGIN))
    if requests / per >= at_most:
        requests = max(1, floor(at_most * per / 2))
    if requests / per >= at_most:
        per = 2 * requests / at_most
    return Learned(requests, per, limit) if per <= WINDOWS[-1] else None


def _limit(events: Sequence[Sent], per: float) -> int:
    """What was taken within the window before a refusal, mostly: with windows that begin on the
    second the most of them would be twice the limit.
    """
    counts = [_taken_before(events, at, per) for at, e in enumerate(events) if not e.taken]
    return median_low([count for count in counts if count] or [0])


def _misfit(events: Sequence[Sent], per: float, limit: int) -> float:
    """How badly a limit explains what happened, 0..1: refusals in a window that was far from full,
    and requests that were taken beyond it.
    """
    counts = [(_taken_before(events, at, per), each.taken) for at, each in enumerate(events)]
    full = [count for count, taken in counts if not taken]
    beyond = sum(taken and count >= limit for count, taken in counts)
    far = sum(count < limit * 0.5 for count in full)
    return max(far / len(full), beyond / len(counts))


def _taken_before(events: Sequence[Sent], index: int, per: float) -> int:
    """How many were taken in the window before that request."""
    count, at = 0, events[index].at
    for each in reversed(events[:index]):
        if at - each.at >= per:
            break
        count += each.taken
    return count
