"""Holding servers to the paces that they learned."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.clock import Clock
from sandbox.errors import TurnTooLate
from sandbox.pace import Pace
from sandbox.policy import Origin
from sandbox.sharedturns import SharedTurns


class Turns:
    """When each server's next request may leave, for each of its hosts. Requests are spread evenly:
    what leaves all at once may arrive with the next lot, in one window of the API's clock.
    `shared` are the turns that other processes of the home take.
    """

    def __init__(self, shared: SharedTurns | None = None) -> None:
        self._shared = shared
        self._next: dict[tuple[str, Origin], float] = {}

    async def wait(
        self, server: str, origin: Origin, pace: Pace, clock: Clock, patience: float
    ) -> None:
        """Return when the server's turn has come. Raises TurnTooLate, and takes no turn, where that
        is more than `patience` seconds away.
        """
        now, step = clock.now(), 1 / pace.per_second
        ahead = max(0.0, self._next.get((server, origin), now) - now)
        if self._shared is not None:
            name = f"{server} {origin}"
            ahead = self._shared.take(name, step, clock.wall(), ahead, patience)
        if ahead > patience:
            raise TurnTooLate(str(pace), ahead)
        self._next[server, origin] = now + ahead + step
        if ahead > 0:
            await clock.sleep(ahead)


def pace_of(paces: Iterable[Pace], origin: Origin) -> Pace | None:
    """The slowest pace that holds for an origin."""
    names = (origin.host, f"{origin.host}:{origin.port}")
    found = [pace for pace in paces if pace.host in names]
    return min(found, key=lambda pace: pace.per_second, default=None)
