"""The trust level of a server and of each of its operations, from the outcomes of calls.

Pure functions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

Level = Literal["probationary", "standard", "trusted", "degraded", "experimental"]

WINDOW = 50
DEGRADED_COUNTED, DEGRADED_PERCENT = 5, 70
STANDARD_SUCCESSES, STANDARD_PERCENT = 10, 80
TRUSTED_SUCCESSES, TRUSTED_PERCENT = 50, 95
EXEMPT_SUCCESSES = 50

COUNTED: dict[str, bool] = {
    "": True,
    "bug": True,
    "schema": True,
    "malformed": True,
    "drift": True,
    "rate_limited": True,
    "tool": True,
    "crashed": True,
    "wrong": True,
    "http": False,
    "arguments": False,
    "credential": False,
    "refused": False,
    "timeout": False,
    "unreachable": False,
    "too_large": False,
    "frozen": False,
    "cancelled": False,
    "engine": False,
}
"""Whether an outcome counts for trust, by failure kind ("" is a success).

The kinds are docs/runtime-protocol.md, section 2, and six of ours: `drift` (the server lists or
answers something other than what was proved), `crashed` (the container ended or broke the
protocol), `credential` (401, 403), `engine` (none answers, or its base image is missing),
`cancelled` (by its client) and `wrong` (a person marked the result wrong).
"""


def is_counted(kind: str, status: int | None = None) -> bool:
    """Whether an outcome of that kind and HTTP status enters the ladder.

    HTTP 429 counts, because it is what is left after the retry budget. A kind that nobody declared
    counts too: only the container can have made it up.
    """
    return COUNTED.get(kind, True) or (kind == "http" and is_rate_limit(kind, status))


def is_rate_limit(kind: str, status: int | None = None) -> bool:
    """Whether a failure says that calls came too fast (RFC 6585, section 4)."""
    return status == 429 or kind == "rate_limited"


@dataclass(frozen=True)
class Observation:
    """One finished call. `at` is epoch seconds, `reason` says why it failed."""

    version: int
    succeeded: bool
    counted: bool
    latency_ms: float
    at: float
    reason: str = ""


@dataclass(frozen=True)
class TrustRecord:
    """What is known of a server, or of one operation of it.

    `total`, `successful`, `counted` and `latency_total_ms` are over its lifetime. `window` holds
    the last 50 counted outcomes since the ladder started, oldest first, "1" for a success;
    `ladder_successes` are those since the ladder started (with `ladder_version`),
    `version_successes` those of this version. `ordinal` numbers the outcomes that entered windows.
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


@dataclass(frozen=True)
class Standing:
    """The level and figures derived from a record, as the gate and people see them.

    `ratio` is over the window and `wilson` its lower 95 % bound (0 where nothing was counted yet);
    `score` is over the lifetime; both are 0..1, None before the first counted outcome.
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


def record_observation(record: TrustRecord, seen: Observation) -> TrustRecord:
    """The record after one more call.

    A call that an earlier version made, finishing late, enters the lifetime figures only.
    """
    good = seen.succeeded
    after = replace(
        record,
        total=record.total + 1,
        successful=record.successful + good,
        counted=record.counted + seen.counted,
        latency_total_ms=record.latency_total_ms + seen.latency_ms,
        last_failure=record.last_failure if good else seen.at,
        last_failure_reason=record.last_failure_reason if good else seen.reason,
    )
    if not seen.counted or seen.version != record.version:
        return after
    return replace(
        after,
        ordinal=record.ordinal + 1,
        window=(record.window + ("1" if good else "0"))[-WINDOW:],
        ladder_successes=record.ladder_successes + good,
        version_successes=record.version_successes + good,
    )


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


def renew_record(record: TrustRecord, version: int) -> TrustRecord:
    """The record under a new version: the score stays, the write exemption starts again."""
    return replace(record, version=version, version_successes=0)


def restart_record(record: TrustRecord, version: int) -> TrustRecord:
    """The record under a version that repairs a degraded server: the ladder starts again."""
    return replace(
        renew_record(record, version), window="", ladder_successes=0, ladder_version=version
    )


def carry_over_record(record: TrustRecord, version: int, repaired: bool) -> TrustRecord:
    """The record under the next version; `repaired` where the server was degraded before it."""
    return restart_record(record, version) if repaired else renew_record(record, version)


def compute_level(record: TrustRecord, experimental: bool = False) -> Level:
    """The trust level. Ratios are compared as integers, since 70 % of 10 is exactly 7."""
    size, good = len(record.window), record.window.count("1")
    if size >= DEGRADED_COUNTED and good * 100 < DEGRADED_PERCENT * size:
        return "degraded"
    if experimental:
        return "experimental"
    if record.ladder_successes >= TRUSTED_SUCCESSES and good * 100 > TRUSTED_PERCENT * size:
        return "trusted"
    if record.ladder_successes >= STANDARD_SUCCESSES and good * 100 > STANDARD_PERCENT * size:
        return "standard"
    return "probationary"


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
    )


def is_write_exempt(server: Standing, operation: Standing) -> bool:
    """Whether a write of that operation needs no confirmation any more."""
    return server.level == "trusted" and operation.version_successes >= EXEMPT_SUCCESSES


def compute_wilson_bound(successes: int, total: int, z: float = 1.959964) -> float:
    """The lower bound of Wilson's score interval (JASA 22, 1927, p. 209), 95 % by default."""
    if total == 0:
        return 0.0
    share, square = successes / total, z * z
    centre = share + square / (2 * total)
    spread = z * sqrt((share * (1 - share) + square / (4 * total)) / total)
    return max(0.0, (centre - spread) / (1 + square / total))
