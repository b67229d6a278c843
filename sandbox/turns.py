"""Holding servers to the paces that they learned."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.clock import Clock
from sandbox.errors import TurnTooLate
from sandbox.pace import Pace
from sandbox.policy import Origin


class Turns:
    """When each server's next request may leave, for each of its hosts. Requests are spread evenly:
    what leaves all at once may arrive with the next lot, in one window of the API's clock.
    """

    def __init__(self) -> None:
        self._next: dict[tuple[str, Origin], float] = {}

    async def wait(
        self, server: str, origin: Origin, pace: Pace, clock: Clock, patience: float
    ) -> None:
        """Return when the server's turn has come. Raises TurnTooLate, and takes no turn, where that
        is more than `patience` seconds away.
        """
        now = clock.now()
        turn = max(now, self._next.get((server, origin), now))
        if turn - now > patience:
            raise TurnTooLate(str(pace), turn - now)
        self._next[server, origin] = turn + 1 / pace.per_second
        if turn > now:
            await clock.sleep(turn - now)


def pace_of(paces: Iterable[Pace], origin: Origin) -> Pace | None:
    """The slowest pace that holds for an origin."""
    names = (origin.host, f"{origin.host}:{origin.port}")
    found = [pace for pace in paces if pace.host in names]
    return min(found, key=lambda pace: pace.per_second, default=None)
