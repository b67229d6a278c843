"""Rate limiting of requests: pauses that an origin asked for, the pace of each server, and a token
bucket per origin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sandbox.broker.throttle_stores import CLOCKS_DIFFER, MAX_PAUSE, MemoryStore, ThrottleStore
from sandbox.budget import CALL, CallUsage
from sandbox.bundle.ratelimit import Pace
from sandbox.clock import Clock
from sandbox.errors import RateLimited, TurnTooLate
from sandbox.wire.policy import Origin


def find_pace(paces: Iterable[Pace], origin: Origin) -> Pace | None:
    """The slowest pace that holds for an origin."""
    names = (origin.host, f"{origin.host}:{origin.port}")
    found = [pace for pace in paces if pace.host in names]
    return min(found, key=lambda pace: pace.per_second, default=None)


@dataclass(frozen=True)
class Rate:
    """A token bucket: `per_second` tokens flow in, up to `burst` are kept."""

    per_second: float = 50.0
    burst: float = 100.0


CALL_RATE = Rate(per_second=10.0, burst=20.0)
"""What one call sends to one host: as many as a person would in a few pages, then politely."""


def find_overrun(call: CallUsage | None, host: str) -> str:
    """Why a call may not send another request to a host, or "". Counts the request if it may.

    What a tool sends that another one called counts for both.
    """
    calls = []
    while call is not None:
        if call.hosts[host].sent >= call.allowed:
            return (
                f"this call of {call.server} has sent {call.allowed} requests to {host}, which is "
                "as many as one call may. Ask for less at once. A person lets its calls send more "
                f"with `toolwright grant {call.server} requests:{10 * call.allowed}`."
            )
        calls.append(call)
        call = call.caller
    for each in calls:
        each.hosts[host].sent += 1
    return ""


class Throttle:
    """Rate limits of requests. A pause that one session is asked for holds all sessions of that
    origin, and with a shared `store` those of every process. Token buckets are per process.
    """

    def __init__(
        self,
        rate: Rate | None = None,
        store: ThrottleStore | None = None,
        call_rate: Rate = CALL_RATE,
    ) -> None:
        self._rate, self._call_rate = rate or Rate(), call_rate
        self._store = store or MemoryStore()
        self._buckets: dict[Origin, tuple[float, float]] = {}

    async def wait_call_turn(self, host: str, clock: Clock) -> None:
        """Wait until the call that this task works for may send another request to the host: the
        first ones at once, further ones at an even pace.
        """
        call = CALL.get()
        now, step, wait = clock.now(), 1 / self._call_rate.per_second, 0.0
        while call is not None:
            used = call.hosts[host]
            used.due = max(used.due, now) + step
            wait = max(wait, used.due - now - step * self._call_rate.burst)
            call = call.caller
        if wait > CLOCKS_DIFFER:
            await clock.sleep(wait)

    async def wait_turn(
        self, server: str, origin: Origin, pace: Pace, clock: Clock, patience: float
    ) -> None:
        """Wait for the server's turn at the origin, by the pace of its own bundle. Raises
        TurnTooLate, and takes no turn, if that is more than `patience` seconds away.

        Requests are spread evenly: two bursts at the ends of their windows could fall into one
        window of the API's clock.
        """
        ahead = self._store.take_turn(server, origin, 1 / pace.per_second, patience, clock)
        if ahead > patience:
            raise TurnTooLate(str(pace), ahead)
        if ahead > 0:
            await clock.sleep(ahead)

    async def admit_request(
        self, origin: Origin, clock: Clock, patience: float | None = None
    ) -> None:
        """Wait until a request to the origin may be sent. Raises RateLimited if the origin asked
        for a pause that lasts longer than `patience` seconds, TimeoutError at the caller's
        deadline.
        """
        left = self._store.get_pause_left(origin, clock)
        if left > 0:
            self._restart_bucket(origin, clock.now() + left)
            if patience is not None and left > patience:
                raise RateLimited(str(origin), left)
            await clock.sleep(left)
        tokens, updated = self._buckets.get(origin, (self._rate.burst, clock.now()))
        now = clock.now()
        gained = max(0.0, now - updated) * self._rate.per_second
        tokens = min(self._rate.burst, tokens + gained) - 1
        self._buckets[origin] = (tokens, max(now, updated))
        if tokens < 0:
            await clock.sleep(-tokens / self._rate.per_second)

    def pause_origin(self, origin: Origin, clock: Clock, seconds: float) -> None:
        """Send nothing to the origin for a time; then requests follow at the bucket's rate."""
        held = min(max(seconds, 0.0), MAX_PAUSE)
        if self._store.pause_origin(origin, held, clock):
            self._buckets[origin] = (1.0, clock.now() + held)

    def _restart_bucket(self, origin: Origin, until: float) -> None:
        """Begin the bucket anew at the end of a pause, unless it begins there already."""
        _, updated = self._buckets.get(origin, (0.0, 0.0))
        if until > updated + CLOCKS_DIFFER:
            self._buckets[origin] = (1.0, until)
