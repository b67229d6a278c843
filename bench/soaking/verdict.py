"""Did anything leak? The rules, over what was counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.processes.kill import CONTAINER_SECONDS, SILENCE_SECONDS
from sandbox.engines.docker.engine import ANSWER_SECONDS

GROWING = frozenset({"invocations", "recordings", "approvals", "jobs", "audit", "sqlite_sequence"})
"""The tables that hold what happened and so must grow."""
FILLING = frozenset({"trust", "freeze", "watched"})
"""Those that have one row for each thing that there is, once it was used."""
FD_SLACK = 6 + 10 + 10
"""Open files that may come and go, and the pools that fill the more calls meet: ten sockets to the
engine (docker-py's `DEFAULT_MAX_POOL_SIZE`) and five connections to the database (SQLAlchemy's
`QueuePool`) with two files each. What leaks with each session or call is more within minutes.
"""
SLOPE_MB = 1.5
"""MB a minute that a process may gain, over the whole of a soak."""
FIRST_MB = 12.0
"""What one may gain besides, once, while it warms up."""
KILL_MS = (SILENCE_SECONDS + CONTAINER_SECONDS + ANSWER_SECONDS) * 1000
"""By when a kill has to have answered, however loaded the machine is: by its own limits, with an
engine that does not answer the last time that it is asked.
"""


@dataclass(frozen=True)
class Figures:
    """One process: `fds` open files, `own_mb` of memory that it wrote and no other
    process has, `threads`. Another pid is another process.
    """

    pid: int
    fds: int
    own_mb: float
    threads: int


Series = list[tuple[float, Figures]]
"""What one process had, by minute."""


@dataclass(frozen=True)
class Sample:
    """What there was at a moment. `phase` is `busy`, or `still` when all was stopped by a kill.

    `minute` is the time since the start; `containers` are those of this installation, `foreign`
    those of a process that is gone; `left` the mounts and network namespaces of containers that
    are gone; `temp` files in the temporary directory; `calls` how many were answered so far;
    `reads` how many of them have reached the API; `kill` how it was stopped, `kill_ms` how long
    that took and `kill_left` how many sandboxes it gave up on.
    """

    minute: float
    phase: Literal["busy", "still", "end"]
    processes: Mapping[str, Figures]
    rows: Mapping[str, int]
    containers: int = 0
    foreign: int = 0
    left: int = 0
    temp: int = 0
    calls: int = 0
    reads: int = 0
    kill: str = ""
    kill_ms: float = 0.0
    kill_left: int = 0


@dataclass(frozen=True)
class Writes:
    """What became of the writes: the state of each by its number, and how often it arrived."""

    states: Mapping[int, str]
    arrived: Mapping[int, int]


@dataclass(frozen=True)
class Ending:
    """What was found when all had ended: `audit` the first broken link, or ""; `survivors`
    processes of the installation that still run; `registered` processes that the registry names.
    """

    audit: str
    survivors: int = 0
    registered: int = 0
    troubles: tuple[str, ...] = field(default_factory=tuple)


def verdict(samples: Sequence[Sample], writes: Writes, ending: Ending) -> tuple[str, ...]:
    """What is wrong, in words; nothing where the soak held."""
    return (
        *_stopped(samples),
        *_files(samples),
        *_memory(samples),
        *_rows(samples),
        *_writes(writes),
        *_ended(samples, ending),
    )


def _stopped(samples: Sequence[Sample]) -> Iterator[str]:
    for sample in samples:
        when = f"minute {sample.minute:.1f}, {sample.kill}"
        if sample.phase == "still" and sample.containers:
            yield f"{when}: {sample.containers} containers were left after the kill"
        if sample.foreign:
            yield f"{when}: {sample.foreign} containers of a dead process were left"
        if sample.left:
            yield f"{when}: {sample.left} mounts or network namespaces were left"
        if sample.kill_left:
            yield f"{when}: the kill gave up on {sample.kill_left} containers"
        if sample.kill_ms > KILL_MS:
            yield f"{when}: the kill took {sample.kill_ms:.0f} ms"


def _series(samples: Sequence[Sample], phase: str) -> Iterator[tuple[str, Series]]:
    """Each process's figures in a phase, in time."""
    found: dict[tuple[str, int], Series] = {}
    for sample in samples:
        for name, figures in sample.processes.items() if sample.phase == phase else ():
            found.setdefault((name, figures.pid), []).append((sample.minute, figures))
    for (name, _), series in found.items():
        yield name, series


def _files(samples: Sequence[Sample]) -> Iterator[str]:
    """Open files are the same at the same phase: the fewest of the later half, by the earlier."""
    for name, series in _series(samples, "still"):
        half = len(series) // 2
        if half < 1:
            continue
        before = max(figures.fds for _, figures in series[:half])
        after = min(figures.fds for _, figures in series[half:])
        if after > before + FD_SLACK:
            yield f"{name}: {after} open files where {before} were before"


def _memory(samples: Sequence[Sample]) -> Iterator[str]:
    for name, series in _series(samples, "still"):
        if len(series) < 2:
            continue
        (start, first), (end, last) = series[0], series[-1]
        allowed = FIRST_MB + SLOPE_MB * (end - start)
        if last.own_mb - first.own_mb > allowed:
            yield (
                f"{name}: grew from {first.own_mb:.0f} to {last.own_mb:.0f} MB of its own in "
                f"{end - start:.1f} min, more than {allowed:.0f} MB"
            )


def _rows(samples: Sequence[Sample]) -> Iterator[str]:
    still = [sample for sample in samples if sample.phase in ("still", "end")]
    if len(still) < 2:
        return
    first, last = still[0].rows, still[-1].rows
    for table, count in last.items():
        fixed = table not in GROWING | FILLING and table != "processes"
        if fixed and count > first.get(table, 0):
            yield f"{table}: {count} rows where {first.get(table, 0)} were before"


def _writes(writes: Writes) -> Iterator[str]:
    for number, times in writes.arrived.items():
        state = writes.states.get(number)
        if times > 1:
            yield f"write {number} arrived {times} times"
        if state is None:
            yield f"write {number} arrived and nobody approved it"
        elif state not in ("done", "unknown"):
            yield f"write {number} arrived and is {state}"
    for number, state in writes.states.items():
        if state == "done" and not writes.arrived.get(number):
            yield f"write {number} is done and never arrived"
        if state in ("approved", "claimed", "sending"):
            yield f"write {number} was left {state}"


def _ended(samples: Sequence[Sample], ending: Ending) -> Iterator[str]:
    last = samples[-1] if samples else None
    if last is None or not last.calls:
        yield "no call was answered"
    busy = [sample.reads for sample in samples if sample.phase == "busy"]
    stuck = len(busy) > 1 and busy[-1] <= busy[0]
    if busy and (stuck or not busy[-1]):
        yield f"the calls came to nothing: {busy[0]} reads at first, {busy[-1]} at last"
    if last and (last.containers or last.temp):
        yield f"{last.containers} containers and {last.temp} temporary files were left at the end"
    if ending.audit:
        yield f"the audit is broken: {ending.audit}"
    if ending.survivors:
        yield f"{ending.survivors} processes were left at the end"
    if ending.registered:
        yield f"{ending.registered} processes are registered and none runs"
    yield from (f"doctor: {trouble}" for trouble in ending.troubles)
