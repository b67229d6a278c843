"""Trials of code that computes: calls with an expected outcome, and running them."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal

from sandbox.broker.host.tools import NO_CALLS, KnownCalls
from sandbox.bundle.example import Example
from sandbox.bundle.model import ToolDefinition
from sandbox.clock import Clock, SystemClock
from sandbox.errors import CallTimedOut, SessionBroken
from sandbox.session.interface import Outcome, Session
from sandbox.session.recording import CallLog

CALL_SECONDS = 10.0
BUDGET_SECONDS = 120.0
"""An outer limit: no further call begins after this. How many are made is counted."""
MAX_BREAKS = 1
OpenSession = Callable[[], AbstractAsyncContextManager[Session]]


@dataclass(frozen=True)
class NoOutcome:
    """A call that came to nothing: it broke its session, or was not run because others did, or
    because those before it took too long. `reason` says so.
    """

    kind: Literal["broke", "broken", "late"]
    reason: str


BROKEN = NoOutcome("broken", "not run: other calls end their session")
LATE = NoOutcome("late", "not run: the calls before it took too long")
Came = Outcome | NoOutcome


@dataclass(frozen=True, eq=False)
class TrialCall:
    """One call, and what it has to come to: as `example` says, a refusal of the arguments, or
    anything but a crash. `number` counts the examples of its tool from 1.
    """

    tool: ToolDefinition
    name: str
    arguments: Mapping[str, Any]
    kind: Literal["example", "malformed", "extreme"]
    example: Example | None = None
    calls: KnownCalls = NO_CALLS
    number: int = 0


async def run_trials(
    trials: Iterable[TrialCall],
    open_session: OpenSession,
    seconds: float = CALL_SECONDS,
    budget: float = BUDGET_SECONDS,
    clock: Clock | None = None,
) -> dict[TrialCall, Came]:
    """Run trials and return their outcomes; BROKEN or LATE for those that were not run. A session
    that breaks is replaced once. A call may take `seconds`, and none begins after `budget` seconds.

    Raises LoadFailed.
    """
    came: dict[TrialCall, Came] = {}
    left, breaks = deque(trials), 0
    clock = clock or SystemClock()
    until = clock.now() + budget
    while left and breaks <= MAX_BREAKS and clock.now() < until:
        async with open_session() as session:
            breaks += await _run_until_broken(session, left, came, seconds, until, clock)
    return came | dict.fromkeys(left, BROKEN if breaks > MAX_BREAKS else LATE)


async def _run_until_broken(
    session: Session,
    left: deque[TrialCall],
    came: dict[TrialCall, Came],
    seconds: float,
    until: float,
    clock: Clock,
) -> bool:
    """Work through the trials for so long; whether the session broke on the way."""
    while left and clock.now() < until:
        trial = left.popleft()
        try:
            tape = CallLog(calls=trial.calls.restart())
            came[trial] = await session.call(trial.tool.name, trial.arguments, seconds, tape)
        except (SessionBroken, CallTimedOut) as error:
            came[trial] = NoOutcome("broke", str(error))
            return True
    return False


def describe_failure(came: Outcome) -> str:
    """A failed call as a sentence."""
    assert came.failure is not None
    where = f" at {came.failure.where}" if came.failure.where else ""
    return f"the call failed ({came.failure.kind}{where}): {came.failure.message[:300]}"


MAX_SHOWN = 400


_REPEATED = re.compile(r"([^\\])\1{39,}", re.DOTALL)
"""The same character in a row: 10,000 letters, or the zeros of 10**400. Not backslashes, of which
JSON means half.
"""


def format_value(value: Any) -> str:
    """JSON for a reader, bounded; of what only repeats one character, how often."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = _REPEATED.sub(lambda run: f"{run[1] * 3}…({len(run[0])} times {run[1]!r})…", text)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"


def format_outcome(came: Came) -> str:
    """What a call gave; of one without an outcome, the text that says why."""
    if isinstance(came, NoOutcome):
        return came.reason[:MAX_SHOWN]
    if came.failure:
        return format_value({"failure": came.failure.kind, "message": came.failure.message[:300]})
    return format_value(came.structured)


def serialize_result(came: Outcome) -> str:
    """The result as one text, equal for equal results."""
    return json.dumps(came.result, sort_keys=True)
