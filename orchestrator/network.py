"""The connections of a process to APIs."""

from __future__ import annotations

from sandbox.exchange import Upstream
from sandbox.livehttp import LiveHttp
from sandbox.policy import Origin

RESPONSE_BYTES = 32 * 1024 * 1024


class Network:
    """Connection pools, one per set of private origins that people allowed."""

    def __init__(self) -> None:
        self._pools: dict[frozenset[Origin], LiveHttp] = {}

    def upstream(self, private: frozenset[Origin]) -> Upstream:
        if private not in self._pools:
            self._pools[private] = LiveHttp(private, response_bytes=RESPONSE_BYTES)
        return self._pools[private]

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()
