"""A session's memory as `status` tells it: what was done in it, why, and what waits."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from orchestrator.results.fitting import fit_lists
from orchestrator.results.keeper import ANSWER_BYTES
from orchestrator.results.shape import cut_text, measure_json, write_json
from registry.sessions.memory import SessionCall, SessionMemory

LETTERS = 160
ARGUMENT_BYTES = 240
OPEN = frozenset({"pending", "approved", "claimed", "sending"})
_SHARES = {"waits": 0.3, "runs": 0.4}


def describe_session(memory: SessionMemory) -> dict[str, Any]:
    """What was done in a session and why, within the size of an answer. `summary` is made by rule,
    of names, counts and states.
    """
    lists = {
        "waits": [
            {"approval": each.approval, "tool": each.tool, "state": each.state}
            for each in memory.approvals
            if each.state in OPEN
        ],
        "runs": [
            {
                "job": run.job,
                "kind": run.kind,
                "state": run.state,
                "task": cut_text(run.task, LETTERS),
                "message": cut_text(run.message, LETTERS),
            }
            for run in memory.runs
        ],
        "decided": [
            {"approval": each.approval, "tool": each.tool, "state": each.state}
            for each in memory.approvals
            if each.state not in OPEN
        ],
        "calls": [_describe_exchange(each) for each in memory.exchanges],
    }
    shares = {**_SHARES, "decided": 0.3}
    return fit_lists({"summary": summarize(memory)}, lists, ANSWER_BYTES, shares)


def summarize(memory: SessionMemory) -> str:
    """A session in a few sentences, by rule."""
    done = memory.exchanges
    if not done and not memory.runs and not memory.approvals:
        return "Nothing is known of this session."
    told = []
    if done:
        counts = Counter(each.tool for each in done).most_common(4)
        names = ", ".join(f"{name} ({count})" for name, count in counts)
        failed = sum(each.outcome != "ok" for each in done)
        told.append(f"Since {_render_time(done[-1].started)}: {names}.")
        told += [f"{failed} of these calls did not succeed."] if failed else []
        told.append(_describe_last(done[0]))
    waiting = sum(each.state == "pending" for each in memory.approvals)
    told += [f"{waiting} writes wait for a person."] if waiting else []
    going = [run for run in memory.runs if run.state in ("queued", "running", "waiting")]
    told += [f"A {run.kind} is {run.state}: {cut_text(run.message, LETTERS)}" for run in going[:1]]
    return " ".join(told)


def _describe_last(last: SessionCall) -> str:
    why = cut_text(last.task or last.reason, LETTERS)
    words = f" for “{why}”" if why else ""
    held = f", kept as {last.handle}" if last.handle else ""
    return f"The last was {last.tool}{words}: {last.outcome}{held}."


def _describe_exchange(each: SessionCall) -> dict[str, Any]:
    line: dict[str, Any] = {"call": each.call, "tool": each.tool, "outcome": each.outcome}
    told = {
        "task": cut_text(each.task, LETTERS),
        "why": cut_text(each.reason, LETTERS),
        "result": each.handle,
    }
    arguments: Any = dict(each.arguments)
    if measure_json(arguments) > ARGUMENT_BYTES:
        arguments = cut_text(write_json(arguments), ARGUMENT_BYTES // 2)
    return {**line, "arguments": arguments, **{key: told[key] for key in told if told[key]}}


def _render_time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M UTC")
