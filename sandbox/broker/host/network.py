"""What a forged server asks the network for besides HTTP (`sandbox.netrequest`), answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from sandbox.addresses import Resolver, checked_addresses, system_resolver
from sandbox.errors import NetworkRefused, UpstreamUnreachable
from sandbox.exchange import WireRequest, WireResponse
from sandbox.nameserver import SYSTEM, answer_of
from sandbox.netrequest import DNS, MAX_DATA, TLS, asked, target_of
from sandbox.permissions import Permission
from sandbox.target import Target, is_address
from sandbox.tlspeer import peer_of

SECONDS = 10.0
LOCAL = "localhost"


@dataclass(frozen=True)
class NetworkAccess:
    """Answers such requests: an `Upstream`. What was not granted raises NetworkRefused.

    `granted` says what is at this moment, `private` which hosts and ports a person allowed though
    their address is not public; one that a permission names by its address needs no more.
    """

    granted: Callable[[], Sequence[Permission]]
    private: Callable[[], Collection[tuple[str, int]]] = frozenset
    resolve: Resolver = system_resolver
    seconds: float = SECONDS

    async def send(self, request: WireRequest) -> WireResponse:
        try:
            async with asyncio.timeout(self.seconds):
                return await self._answered(request)
        except TimeoutError as error:
            reason = f"{request.url[:200]} gave no whole answer within {self.seconds:g} s"
            raise UpstreamUnreachable(reason) from error

    async def _answered(self, request: WireRequest) -> WireResponse:
        if request.url.startswith(DNS):
            return await self._named(request)
        target = target_of(request.url)
        kind = "tls" if request.url.startswith(TLS) else "tcp"
        exact = self._allowed(kind, target)
        addresses = await self._addresses(target, exact)
        if kind == "tls":
            return _json(await peer_of(target, addresses))
        return WireResponse(200, (), await _talked(request, target, addresses))

    def _allowed(self, kind: str, target: Target) -> bool:
        """Whether just that host is granted, and not any on its port. Raises NetworkRefused."""
        names = {each.name for each in self.granted() if each.kind == kind}
        if str(target) in names:
            return True
        if kind == "tls" and f"*:{target.port}" in names:
            return False
        raise NetworkRefused(f"{kind}:{target}")

    async def _addresses(self, target: Target, exact: bool) -> list[str]:
        """Raises UpstreamUnreachable where one of them is private and nobody allowed that."""
        private = set(self.private())
        if exact and (is_address(target.host) or target.host == LOCAL):
            private.add((target.host, target.port))
        if not exact:
            private = set()
        return await checked_addresses(target.host, target.port, private, self.resolve)

    async def _named(self, request: WireRequest) -> WireResponse:
        name, kind, server = asked(request.url)
        granted = [each.name for each in self.granted() if each.kind == "dns"]
        if not any(_covers(each, name, server) for each in granted):
            raise NetworkRefused(f"dns:{name}" + (f"@{server}" if server else ""))
        if server is None:
            return _json(await answer_of(name, kind, SYSTEM))
        addresses = await self._addresses(server, exact=True)
        return _json(await answer_of(name, kind, [(each, server.port) for each in addresses]))


def _covers(granted: str, name: str, server: Target | None) -> bool:
    zone, _, place = granted.partition("@")
    if place != (str(server) if server else ""):
        return False
    return zone == "*" or name == zone or name.endswith(f".{zone}")


async def _talked(request: WireRequest, target: Target, addresses: Sequence[str]) -> bytes:
    """What comes back: until a text, the end, or as much as is wanted."""
    until = unquote(request.header("until") or "").encode()
    most = int(request.header("max-bytes") or MAX_DATA)
    try:
        reader, writer = await asyncio.open_connection(addresses[0], target.port)
        try:
            writer.write(request.body)
            await writer.drain()
            return await _heard(reader, until, most)
        finally:
            # What was not taken yet is not sent after the call.
            writer.transport.abort()
    except OSError as error:
        raise UpstreamUnreachable(f"{target} could not be reached: {error}") from error


async def _heard(reader: asyncio.StreamReader, until: bytes, most: int) -> bytes:
    got = bytearray()
    while len(got) < most:
        chunk = await reader.read(min(1 << 16, most - len(got)))
        if not chunk:
            break
        # Only where it may begin: an answer of single bytes would be searched for each of them.
        begin = max(0, len(got) - len(until))
        got += chunk
        found = got.find(until, begin) if until else -1
        if found >= 0:
            return bytes(got[: found + len(until)])
    return bytes(got)


def _json(value: Mapping[str, Any]) -> WireResponse:
    return WireResponse(200, (("content-type", "application/json"),), json.dumps(value).encode())
