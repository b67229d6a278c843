"""A server's trust: the ladder with what is missing to its next step, and the curve of its calls.

The curve is made of the calls and changes of state that the registry has, and shows what the rules
of `registry.trust` look at: the share of right calls among the last 50 counted ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

from orchestrator.control.charts import render_share_curve
from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_facts,
    render_section,
    render_time,
)
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


def render_trust(store: Store, name: str) -> str:
    """The trust of a server. Raises RowNotFound."""
    standing = store.standings.get(name)
    entry = store.servers.get(name)
    held = explain_quarantine(store.servers, name) if entry.state == "quarantined" else ""
    alert = f'<p role="alert">{escape_text(held)}</p>' if held else ""
    outcomes = store.calls.find_outcomes(name, LOOKED_AT)
    states = store.servers.find_state_changes(name, STATES)
    average = standing.average_latency_ms
    facts = render_facts(
        (
            ("calls", f"{standing.total}, {standing.successful} of them right"),
            ("took", f"{average:.0f} ms on average" if average is not None else ""),
            ("last failure", _render_last_failure(standing)),
        )
    )
    parts = (alert, render_ladder(standing), render_curve(outcomes, states), facts)
    return render_section("Trust", "".join(parts))


def _render_last_failure(standing: Standing) -> str:
    if standing.last_failure is None:
        return ""
    return f"{render_time(standing.last_failure)} {escape_text(standing.last_failure_reason)}"


def render_ladder(standing: Standing) -> str:
    """The steps of the ladder, where the server stands, and what is missing to the next."""
    here = ' aria-current="step"'
    steps = "".join(
        f"<li{here if level == standing.level else ''}>{level}</li>" for level in LADDER
    )
    off = "" if standing.level in LADDER else f"<p>{render_badge(standing.level)}</p>"
    return f'{off}<ol class="ladder">{steps}</ol><p>{explain_next_level(standing)}</p>' + (
        _render_missing(standing)
    )


def _render_missing(standing: Standing) -> str:
    if standing.level not in RUNGS:
        return ""
    target, needed, percent = RUNGS[standing.level]
    good = min(standing.ladder_successes, needed)
    share = standing.ratio or 0.0
    met = share * 100 > percent
    rows = (
        (good >= needed, f"{good} of {needed} right calls", good / needed),
        (met, f"{share:.0%} right of the last {standing.window}; more than {percent} %", share),
    )
    lines = "".join(
        f"<li>{'✓' if done else '○'} {told} "
        f'<progress max="1" value="{value:.2f}" aria-label="{told}"></progress></li>'
        for done, told, value in rows
    )
    return f'<ul class="plain missing" aria-label="to {target}">{lines}</ul>'


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


def render_curve(outcomes: Sequence[CallOutcome], states: Sequence[StateChange]) -> str:
    """The curve of the counted ones of these calls; a sentence where they are too few for one."""
    counted = [each for each in outcomes if each.fault in COUNTED]
    if len(counted) < LEAST:
        return '<p class="empty">The curve begins with its second call that counts.</p>'
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
    chart = render_share_curve(
        shares, failures, (*versions, *held), (level / 100 for level in LEVELS), told
    )
    scale = "".join(f'<span class="at{level}">{level} %</span>' for level in (100, *LEVELS))
    return (
        f'<figure class="curve"><div class="scale" aria-hidden="true">{scale}</div>{chart}'
        f"<figcaption>{told}. {len(counted)} counted calls since {render_time(starts[0])}"
        f"{_render_legend(len(failures), len(versions), len(held))}.</figcaption></figure>"
    )


def _render_legend(failures: int, versions: int, held: int) -> str:
    parts = (
        ("tick", "failure", failures),
        ("version", "new version", versions),
        ("held", "quarantine", held),
    )
    return "".join(
        f' <span class="key"><i class="{kind}"></i>{count} {noun}{"s" * (count > 1)}</span>'
        for kind, noun, count in parts
        if count
    )
