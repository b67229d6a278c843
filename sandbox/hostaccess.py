"""All that a forged server asks the host for besides HTTP and calls: an upstream."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.exchange import Upstream, WireRequest, WireResponse
from sandbox.netrequest import is_network


@dataclass(frozen=True)
class HostAccess:
    """Files and values by `local`, the network by `network`."""

    local: Upstream
    network: Upstream

    async def send(self, request: WireRequest) -> WireResponse:
        return await (self.network if is_network(request) else self.local).send(request)
