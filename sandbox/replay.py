"""A recording in place of the world: what was asked once is answered as it was then."""

from __future__ import annotations

from sandbox.broker import Broker
from sandbox.cassette import Cassette
from sandbox.exchange import Exchange, WireRequest
from sandbox.policy import Policy
from sandbox.toolcall import ToolCalls


class Replay(Broker):
    """In place of a session's broker: answers the recorded requests in their order, and no other.

    Nothing is sent, and no credential is known. A request that is not the one recorded at its place
    is refused and kept in `surprises` with that place; a refused one takes nobody's place.
    """

    def __init__(self, exchanges: tuple[Exchange, ...]) -> None:
        super().__init__(Policy(()), Cassette(()))
        self.exchanges = exchanges
        self.answered = 0
        self.surprises: list[tuple[int, WireRequest]] = []

    @property
    def unused(self) -> tuple[Exchange, ...]:
        """What was recorded and not asked for."""
        return self.exchanges[self.answered :]

    async def perform(self, request: WireRequest, calls: ToolCalls | None = None) -> Exchange:
        unused = self.unused
        if unused and unused[0].request == request:
            self.answered += 1
            return unused[0]
        self.surprises.append((self.answered, request))
        reason = f"{request.method} {request.url[:200]} is not the request that was recorded here"
        return Exchange(request, None, "refused", reason)
