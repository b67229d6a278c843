"""Calls of code that computes, each with what it has to come to, and how they came out."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal

from sandbox.bundle import ToolDefinition
from sandbox.errors import CallTimedOut, SessionBroken
from sandbox.example import Example
from sandbox.recording import Tape
from sandbox.runner import Outcome, Session
from sandbox.toolcall import NO_CALLS, KnownCalls

CALL_SECONDS = 2.0
BUDGET_SECONDS = 10.0
"""No further call begins after this."""
MAX_BREAKS = 1
BROKEN = "not run: other calls end their session"
LATE = "not run: the calls before it took too long"

OpenSession = Callable[[], AbstractAsyncContextManager[Session]]
Came = Outcome | str
"""What a call came to; a text where there was no outcome, saying why."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One call, and what it has to come to: as `example` says, a refusal of the arguments, or
    anything but a crash.
    """

    tool: ToolDefinition
    name: str
    arguments: Mapping[str, Any]
    kind: Literal["example", "malformed", "extreme"]
    example: Example | None = None
    calls: KnownCalls = NO_CALLS


async def ran(
    trials: Iterable[Trial],
    open_session: OpenSession,
    seconds: float = CALL_SECONDS,
    budget: float = BUDGET_SECONDS,
) -> dict[Trial, Came]:
    """What every trial came to; a session that breaks is replaced once. What was not run is told as
    BROKEN or LATE. A call may take `seconds`, and none begins after `budget`.

    Raises LoadFailed.
    """
    came: dict[Trial, Came] = {}
    left, breaks = deque(trials), 0
    until = time.perf_counter() + budget
    while left and breaks <= MAX_BREAKS and time.perf_counter() < until:
        async with open_session() as session:
            breaks += await _until_broken(session, left, came, seconds, until)
    return came | dict.fromkeys(left, BROKEN if breaks > MAX_BREAKS else LATE)


async def _until_broken(
    session: Session, left: deque[Trial], came: dict[Trial, Came], seconds: float, until: float
) -> bool:
    """Work through the trials for so long; whether the session broke on the way."""
    while left and time.perf_counter() < until:
        trial = left.popleft()
        try:
            tape = Tape(calls=trial.calls)
            came[trial] = await session.call(trial.tool.name, trial.arguments, seconds, tape)
        except (SessionBroken, CallTimedOut) as error:
            came[trial] = str(error)
            return True
    return False


def told_failure(came: Outcome) -> str:
    """A failed call in words."""
    assert came.failure is not None
    where = f" at {came.failure.where}" if came.failure.where else ""
    return f"the call failed ({came.failure.kind}{where}): {came.failure.message[:300]}"
