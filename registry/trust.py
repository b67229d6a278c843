"""The trust level of a server and of each of its operations, from the outcomes of calls.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

Level = Literal["probationary", "standard", "trusted", "degraded", "experimental"]

WINDOW = 50
DEGRADED_COUNTED, DEGRADED_PERCENT = 5, 70
STANDARD_SUCCESSES, STANDARD_PERCENT = 10, 80
TRUSTED_SUCCESSES, TRUSTED_PERCENT = 50, 95
EXEMPT_SUCCESSES = 50

Fault = Literal["", "server", "unclear", "refusal", "api", "caller", "upstream", "nobody"]
"""Whose doing an outcome is; "" is a success.

`server` counts at once. `unclear` is what code raised without having declared it: its own bug or
its caller's mistake. It counts against a rise, and against the server only where its own proved
cases fail as well. `refusal` is a refusal that the tool declares and a case proves, `api` an answer
that is not what was proved with. Neither these nor the others are counted.
"""

FAULTS: dict[str, Fault] = {
    "": "",
    "bug": "server",
    "crashed": "server",
    "wrong": "server",
    "drift": "server",
    "exception": "unclear",
    "tool": "unclear",
    "refusal": "refusal",
    "schema": "api",
    "malformed": "api",
    "arguments": "caller",
    "credential": "caller",
    "refused": "nobody",
    "not_allowed": "nobody",
    "captured": "nobody",
    "too_large": "caller",
    "http": "upstream",
    "upstream": "upstream",
    "rate_limited": "upstream",
    "timeout": "upstream",
    "unreachable": "upstream",
    "frozen": "nobody",
    "cancelled": "nobody",
    "interrupted": "nobody",
    "engine": "nobody",
}
"""Whose doing an outcome is, by failure kind.

The kinds are docs/runtime-protocol.md, section 2, and ten of ours: `drift` (a server lists
other tools than were proved), `crashed` (the container ended or broke the protocol), `exception`
(the code raised what it did not declare), `refusal` (it refused as it declares), `credential`
(401, 403), `not_allowed` (a private address that nobody allowed), `engine` (none answers, or
its base image is missing), `cancelled` (by its client), `interrupted` (another call of its session
gave no answer) and `wrong` (a person marked the result wrong).
"""

DECIDED: dict[Fault, str] = {"": "1", "server": "0", "unclear": "?", "refusal": "r", "api": "d"}
"""The letters in `TrustRecord.recent` of what a tool itself decided. What its caller or the world
decided is in no record of it, so that nobody can change one by that.
"""
REFUSING_CALLS, REFUSING_PERCENT = 5, 30
SUSPECTED_AGAIN = 25
"""Outcomes after which a server whose cases were found to pass can be suspected again."""


def judge_fault(kind: str) -> Fault:
    """Whose doing an outcome of that kind is. A kind that nobody declared is the server's: only
    the container can have made it up.
    """
    return FAULTS.get(kind, "server")


def is_counted(kind: str) -> bool:
    """Whether an outcome of that kind enters the ladder."""
    return judge_fault(kind) in ("", "server", "unclear")


def is_rate_limit(kind: str, status: int | None = None) -> bool:
    """Whether a failure says that calls came too fast (RFC 6585, section 4)."""
    return status == 429 or kind == "rate_limited"


@dataclass(frozen=True)
class Observation:
    """One finished call. `at` is epoch seconds, `reason` says why it failed."""

    version: int
    fault: Fault
    latency_ms: float
    at: float
    reason: str = ""

    @property
    def counted(self) -> bool:
        return self.fault in ("", "server", "unclear")


@dataclass(frozen=True)
class TrustRecord:
    """What is known of a server, or of one operation of it.

    `total`, `successful`, `counted` and `latency_total_ms` are over its lifetime. `window` holds
    the last 50 counted outcomes since the ladder started, oldest first, "1" for a success, "0" for
    a failure of its own, "?" for one that may be. `ladder_successes` are the successes since the
    ladder started (with `ladder_version`), `version_successes` those of this version. `ordinal`
    numbers the outcomes that entered windows; up to the number `vouched` the server's own cases
    were found to pass. `recent` are the last 50 outcomes that it decided itself, as DECIDED has
    them.
    """

    version: int
    total: int = 0
    successful: int = 0
    counted: int = 0
    latency_total_ms: float = 0.0
    ordinal: int = 0
    window: str = ""
    ladder_successes: int = 0
    ladder_version: int = 1
    version_successes: int = 0
    last_failure: float | None = None
    last_failure_reason: str = ""
    recent: str = ""
    vouched: int = 0


@dataclass(frozen=True)
class Standing:
    """The level and figures derived from a record, as the gate and people see them.

    `ratio` is over the window and `wilson` its lower 95 % bound (0 where nothing was counted yet);
    `score` is over the lifetime; both are 0..1, None before the first counted outcome. `failed` is
    the number of failures in the window that are its own, `unclear` of those that may be.
    `refusing` is the share (0..1) of the last calls that it refused or did not answer as proved,
    None where that is within bounds. `suspected` says that its own cases have to be tried again.
    """

    level: Level
    version: int
    total: int
    successful: int
    counted: int
    window: int
    ratio: float | None
    wilson: float
    score: float | None
    ladder_successes: int
    version_successes: int
    average_latency_ms: float | None
    last_failure: float | None
    last_failure_reason: str
    failed: int = 0
    unclear: int = 0
    refusing: float | None = None
    suspected: bool = False


def record_observations(
    record: TrustRecord, calls: Iterable[Observation]
) -> tuple[TrustRecord, tuple[int | None, ...]]:
    """The record after more calls, with the ordinal of each that entered the window.

    A call that an earlier version made, finishing late, enters the lifetime figures only.
    """
    total, successful, counted = record.total, record.successful, record.counted
    latency, ordinal, won = record.latency_total_ms, record.ordinal, 0
    window, recent = record.window, record.recent
    failed: tuple[float | None, str] = record.last_failure, record.last_failure_reason
    ordinals: list[int | None] = []
    for seen in calls:
        good, letter = seen.fault == "", DECIDED.get(seen.fault, "")
        of_version = seen.version == record.version
        of_ladder = of_version and seen.counted
        total += 1
        successful += good
        counted += seen.counted
        latency += seen.latency_ms
        if not good:
            failed = seen.at, seen.reason
        if of_version:
            recent += letter
        if of_ladder:
            ordinal += 1
            window += letter
            won += good
        ordinals.append(ordinal if of_ladder else None)
    after = replace(
        record,
        total=total,
        successful=successful,
        counted=counted,
        latency_total_ms=latency,
        last_failure=failed[0],
        last_failure_reason=failed[1],
        recent=recent[-WINDOW:],
        ordinal=ordinal,
        window=window[-WINDOW:],
        ladder_successes=record.ladder_successes + won,
        version_successes=record.version_successes + won,
    )
    return after, tuple(ordinals)


def overturn_success(
    record: TrustRecord, version: int, age: int | None, at: float, reason: str
) -> TrustRecord:
    """The record after a person marked one success wrong.

    `age` is how many outcomes entered the window after it; None where it never entered.
    """
    after = replace(
        record,
        successful=record.successful - 1,
        last_failure=at,
        last_failure_reason=reason,
    )
    if age is None or version < record.ladder_version:
        return after
    place = len(record.window) - 1 - age
    window = record.window
    if place >= 0:
        window = window[:place] + "0" + window[place + 1 :]
    return replace(
        after,
        window=window,
        ladder_successes=record.ladder_successes - 1,
        version_successes=record.version_successes - (version == record.version),
    )


def vouch_for_record(record: TrustRecord) -> TrustRecord:
    """The record after the server's own cases were found to pass: what is unclear stays so."""
    return replace(record, vouched=record.ordinal)


def condemn_record(record: TrustRecord) -> TrustRecord:
    """The record after a case of the server's own was found to fail: what was unclear since it was
    vouched for is its own failure.
    """
    tail = _cut_unvouched(record)
    start = len(record.window) - len(tail)
    return replace(record, window=record.window[:start] + tail.replace("?", "0"))


def renew_record(record: TrustRecord, version: int) -> TrustRecord:
    """The record under a new version: the score stays, the write exemption starts again."""
    return replace(record, version=version, version_successes=0, recent="", vouched=record.ordinal)


def restart_record(record: TrustRecord, version: int) -> TrustRecord:
    """The record under a version that repairs a degraded server: the ladder starts again."""
    return replace(
        renew_record(record, version),
        window="",
        ladder_successes=0,
        ladder_version=version,
    )


def carry_over_record(record: TrustRecord, version: int, repaired: bool) -> TrustRecord:
    """The record under the next version; `repaired` where the server was degraded before it."""
    return restart_record(record, version) if repaired else renew_record(record, version)


def compute_level(record: TrustRecord, experimental: bool = False) -> Level:
    """The trust level. Ratios are compared as integers, since 70 % of 10 is exactly 7."""
    size, good = len(record.window), record.window.count("1")
    plain = good + record.window.count("0")
    if plain >= DEGRADED_COUNTED and good * 100 < DEGRADED_PERCENT * plain:
        return "degraded"
    if experimental:
        return "experimental"
    if record.ladder_successes >= TRUSTED_SUCCESSES and good * 100 > TRUSTED_PERCENT * size:
        return "trusted"
    if record.ladder_successes >= STANDARD_SUCCESSES and good * 100 > STANDARD_PERCENT * size:
        return "standard"
    return "probationary"


def is_suspected(record: TrustRecord) -> bool:
    """Whether so many calls failed since the server was vouched for that it would be degraded if
    what is unclear was its own fault.
    """
    tail = _cut_unvouched(record)
    least = SUSPECTED_AGAIN if record.vouched else DEGRADED_COUNTED
    return (
        "?" in tail and len(tail) >= least and tail.count("1") * 100 < DEGRADED_PERCENT * len(tail)
    )


def compute_refusing_share(record: TrustRecord) -> float | None:
    """The share of the last calls that were decided other than by a success or a failure of the
    server's own; None where they are few, or no more than REFUSING_PERCENT.
    """
    size = len(record.recent)
    other = sum(record.recent.count(letter) for letter in "?rd")
    if size < REFUSING_CALLS or other * 100 <= REFUSING_PERCENT * size:
        return None
    return other / size


def _cut_unvouched(record: TrustRecord) -> str:
    """The part of the window since the server was vouched for."""
    count = min(record.ordinal - record.vouched, len(record.window))
    return record.window[len(record.window) - count :]


def compute_standing(record: TrustRecord, experimental: bool = False) -> Standing:
    """The record with everything derived from it. `experimental` is the entry's state."""
    size, good = len(record.window), record.window.count("1")
    return Standing(
        level=compute_level(record, experimental),
        version=record.version,
        total=record.total,
        successful=record.successful,
        counted=record.counted,
        window=size,
        ratio=good / size if size else None,
        wilson=compute_wilson_bound(good, size),
        score=record.successful / record.counted if record.counted else None,
        ladder_successes=record.ladder_successes,
        version_successes=record.version_successes,
        average_latency_ms=record.latency_total_ms / record.total if record.total else None,
        last_failure=record.last_failure,
        last_failure_reason=record.last_failure_reason,
        failed=record.window.count("0"),
        unclear=record.window.count("?"),
        refusing=compute_refusing_share(record),
        suspected=is_suspected(record),
    )


def is_write_exempt(server: Standing, operation: Standing) -> bool:
    """Whether a write of that operation needs no confirmation any more. What refuses a third of its
    calls is not exempt: a server may call its own bugs refusals.
    """
    return (
        server.level == "trusted"
        and operation.version_successes >= EXEMPT_SUCCESSES
        and operation.refusing is None
    )


def compute_wilson_bound(successes: int, total: int, z: float = 1.959964) -> float:
    """The lower bound of Wilson's score interval (JASA 22, 1927, p. 209), 95 % by default."""
    if total == 0:
        return 0.0
    share, square = successes / total, z * z
    centre = share + square / (2 * total)
    spread = z * sqrt((share * (1 - share) + square / (4 * total)) / total)
    return max(0.0, (centre - spread) / (1 + square / total))
