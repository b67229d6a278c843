"""A server's trust: the ladder with what is missing to its next step, and the curve of its calls.

The curve is made of the calls and changes of state that the registry has, and shows what the rules
of `registry.trust` look at: the share of right calls among the last 50 counted ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from forge.text import render_count
from orchestrator.control.charts import ShareCurve, draw_share_curve
from orchestrator.control.texts import ShownText, cut_text
from registry.calls.invocations import CallOutcome
from registry.servers.entries import StateChange
from registry.servers.quarantine import explain_quarantine
from registry.store import Store
from registry.trust import (
    DEGRADED_PERCENT,
    STANDARD_PERCENT,
    STANDARD_SUCCESSES,
    TRUSTED_PERCENT,
    TRUSTED_SUCCESSES,
    WINDOW,
    Standing,
)

LOOKED_AT = 500
"""Newest calls that the curve is made of."""
LEAST = 2
STATES = 20
COUNTED = ("", "server", "unclear")
LEVELS = (DEGRADED_PERCENT, STANDARD_PERCENT, TRUSTED_PERCENT)
RUNGS = {
    "probationary": ("standard", STANDARD_SUCCESSES, STANDARD_PERCENT),
    "standard": ("trusted", TRUSTED_SUCCESSES, TRUSTED_PERCENT),
}
"""The next level of each that rises: right calls that it wants, and the percentage to exceed."""
LADDER = ("probationary", "standard", "trusted")


@dataclass(frozen=True)
class LadderGoal:
    """Something that the next level wants; `share` is how much of it is there."""

    is_met: bool
    told: str
    share: float


@dataclass(frozen=True)
class TrustLadder:
    """The steps of the ladder, where a server stands, and what is missing to the next. `level` may
    be none of the steps; `target` is "" where there is no next one.
    """

    steps: tuple[str, ...]
    level: str
    told: str
    target: str
    goals: tuple[LadderGoal, ...]


@dataclass(frozen=True)
class TrustCurve:
    """The curve with what it says in words. `keys` are (class, what it marks)."""

    curve: ShareCurve
    levels: tuple[int, ...]
    counted: int
    since: float
    keys: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ServerTrust:
    """A server's trust: why it is quarantined ("" where it is not), its ladder, the curve (None
    where there are too few calls for one), and when it failed last (None: never).
    """

    held: ShownText
    ladder: TrustLadder
    curve: TrustCurve | None
    calls: str
    took: str
    failed: float | None
    failure: ShownText


def view_trust(store: Store, name: str) -> ServerTrust:
    """Raises RowNotFound."""
    standing = store.standings.get(name)
    entry = store.servers.get(name)
    held = explain_quarantine(store.servers, name) if entry.state == "quarantined" else ""
    average = standing.average_latency_ms
    return ServerTrust(
        cut_text(held),
        build_ladder(standing),
        build_curve(
            store.calls.find_outcomes(name, LOOKED_AT),
            store.servers.find_state_changes(name, STATES),
        ),
        _describe_calls(standing),
        f"{average:.0f} ms on average" if average is not None else "",
        standing.last_failure,
        cut_text(standing.last_failure_reason),
    )


def _describe_calls(standing: Standing) -> str:
    if not standing.total:
        return "none yet"
    wrong = max(0, standing.counted - standing.successful)
    apart = standing.total - standing.counted
    told = f"{standing.total}: {standing.successful} right, {wrong} wrong"
    return f"{told}, {apart} that do not count (callers' mistakes, outages)" if apart else told


def build_ladder(standing: Standing) -> TrustLadder:
    told, level = explain_next_level(standing), standing.level
    if level not in RUNGS:
        return TrustLadder(LADDER, level, told, "", ())
    target, needed, percent = RUNGS[level]
    good = min(standing.ladder_successes, needed)
    share = standing.ratio or 0.0
    ratio = f"{share:.0%} right of the last {standing.window}; more than {percent} %"
    if not standing.window:
        ratio = f"more than {percent} % of the last calls right"
    goals = (
        LadderGoal(good >= needed, f"{good} of {needed} right calls", good / needed),
        LadderGoal(share * 100 > percent, ratio, share),
    )
    return TrustLadder(LADDER, level, told, target, goals)


def explain_next_level(standing: Standing) -> str:
    """What is missing to the next level, in a sentence."""
    if standing.level == "trusted":
        return "It has earned the highest level."
    if standing.level == "degraded":
        return "Too many of its calls failed: it has to be repaired or made anew."
    if standing.level == "experimental":
        return "It is registered as experimental and does not rise."
    target, needed, percent = RUNGS[standing.level]
    share = f"{standing.ratio:.0%}" if standing.ratio is not None else "none yet"
    missing = max(0, needed - standing.ladder_successes)
    noun = "more right call" if missing == 1 else "more right calls"
    calls = f"{missing} {noun} and " if missing else ""
    return f"{target}: {calls}more than {percent} % of its last calls right (now {share})."


def compute_shares(outcomes: Iterable[CallOutcome]) -> list[float]:
    """After each counted outcome the share of right ones among the last WINDOW."""
    shares, last = [], list[bool]()
    good = 0
    for each in outcomes:
        last.append(each.fault == "")
        good += each.fault == ""
        if len(last) > WINDOW:
            good -= last[len(last) - WINDOW - 1]
        shares.append(good / min(len(last), WINDOW))
    return shares


def build_curve(
    outcomes: Sequence[CallOutcome], states: Sequence[StateChange]
) -> TrustCurve | None:
    """The curve of the counted ones of these calls; None where they are too few for one."""
    counted = [each for each in outcomes if each.fault in COUNTED]
    if len(counted) < LEAST:
        return None
    shares = compute_shares(counted)
    starts = [each.started for each in counted]
    versions = [
        (number, "version")
        for number, (before, after) in enumerate(pairwise(counted), 1)
        if before.version != after.version
    ]
    held = [
        (min(bisect_left(starts, change.at), len(counted) - 1), "held")
        for change in states
        if change.state == "quarantined" and change.at >= starts[0]
    ]
    failures = [number for number, each in enumerate(counted) if each.fault == "server"]
    told = f"Share of right calls among the last {WINDOW}, now {shares[-1]:.0%}"
    curve = draw_share_curve(
        shares, failures, (*versions, *held), (level / 100 for level in LEVELS), told, starts
    )
    keys = (
        ("tick", "failure", len(failures)),
        ("version", "new version", len(versions)),
        ("held", "quarantine", len(held)),
    )
    return TrustCurve(
        curve,
        (100, *LEVELS),
        len(counted),
        starts[0],
        tuple((kind, render_count(count, noun)) for kind, noun, count in keys if count),
    )
