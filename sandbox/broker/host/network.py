"""Upstream of a forged server's network requests beside HTTP: TLS peers, DNS and TCP
(`sandbox.broker.host.network_requests`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from sandbox.broker.addresses import Resolver, resolve_allowed_addresses, resolve_by_system
from sandbox.broker.host.dns import SECONDS as SERVER_SECONDS
from sandbox.broker.host.dns import SYSTEM, query_dns
from sandbox.broker.host.network_requests import (
    DNS,
    MAX_DATA,
    TLS,
    is_network,
    parse_dns_url,
    parse_target_url,
)
from sandbox.broker.host.tls import inspect_peer
from sandbox.bundle.permissions import Permission
from sandbox.bundle.target import NetworkTarget, is_address
from sandbox.errors import NetworkRefused, UpstreamUnreachable
from sandbox.wire.exchange import Upstream, WireRequest, WireResponse

SECONDS = 10.0
LOCAL = "localhost"


@dataclass(frozen=True)
class NetworkAccess:
    """The upstream that answers such requests. Raises NetworkRefused for what was not granted.

    `granted` returns the present permissions, `private` the hosts and ports that a person allowed
    though their address is not public; a permission that names an address allows it by itself.
    `seconds` bounds a request, `server_seconds` the answer of one name server.
    """

    granted: Callable[[], Sequence[Permission]]
    private: Callable[[], Collection[tuple[str, int]]] = frozenset
    resolve: Resolver = resolve_by_system
    seconds: float = SECONDS
    server_seconds: float = SERVER_SECONDS

    async def send(self, request: WireRequest) -> WireResponse:
        try:
            async with asyncio.timeout(self.seconds):
                return await self._answer_request(request)
        except TimeoutError as error:
            reason = f"{request.url[:200]} gave no whole answer within {self.seconds:g} s"
            raise UpstreamUnreachable(reason) from error

    async def _answer_request(self, request: WireRequest) -> WireResponse:
        if request.url.startswith(DNS):
            return await self._answer_dns(request)
        target = parse_target_url(request.url)
        kind = "tls" if request.url.startswith(TLS) else "tcp"
        exact = self._check_grant(kind, target)
        addresses = await self._resolve_addresses(target, exact)
        if kind == "tls":
            return _build_json_response(await inspect_peer(target, addresses))
        return WireResponse(200, (), await _exchange_bytes(request, target, addresses))

    def _check_grant(self, kind: str, target: NetworkTarget) -> bool:
        """True if exactly that target is granted, False if any host on its port is. Raises
        NetworkRefused if neither is.
        """
        names = {each.name for each in self.granted() if each.kind == kind}
        if str(target) in names:
            return True
        if kind == "tls" and f"*:{target.port}" in names:
            return False
        raise NetworkRefused(f"{kind}:{target}")

    async def _resolve_addresses(self, target: NetworkTarget, exact: bool) -> list[str]:
        """The addresses of a target. Raises UpstreamUnreachable for a private one not allowed."""
        private = set(self.private())
        if exact and (is_address(target.host) or target.host == LOCAL):
            private.add((target.host, target.port))
        if not exact:
            private = set()
        return await resolve_allowed_addresses(target.host, target.port, private, self.resolve)

    async def _answer_dns(self, request: WireRequest) -> WireResponse:
        name, kind, server = parse_dns_url(request.url)
        granted = [each.name for each in self.granted() if each.kind == "dns"]
        if not any(_covers_name(each, name, server) for each in granted):
            raise NetworkRefused(f"dns:{name}" + (f"@{server}" if server else ""))
        if server is None:
            return _build_json_response(await query_dns(name, kind, SYSTEM, self.server_seconds))
        addresses = await self._resolve_addresses(server, exact=True)
        places = [(each, server.port) for each in addresses]
        return _build_json_response(await query_dns(name, kind, places, self.server_seconds))


def _covers_name(granted: str, name: str, server: NetworkTarget | None) -> bool:
    zone, _, place = granted.partition("@")
    if place != (str(server) if server else ""):
        return False
    return zone == "*" or name == zone or name.endswith(f".{zone}")


async def _exchange_bytes(
    request: WireRequest, target: NetworkTarget, addresses: Sequence[str]
) -> bytes:
    """Send the body and read until a text, the end, or `max-bytes`. Raises UpstreamUnreachable."""
    until = unquote(request.get_header("until") or "").encode()
    most = int(request.get_header("max-bytes") or MAX_DATA)
    try:
        reader, writer = await asyncio.open_connection(addresses[0], target.port)
        try:
            writer.write(request.body)
            await writer.drain()
            return await _read_until(reader, until, most)
        finally:
            # What was not taken yet is not sent after the call.
            writer.transport.abort()
    except OSError as error:
        raise UpstreamUnreachable(f"{target} could not be reached: {error}") from error


async def _read_until(reader: asyncio.StreamReader, until: bytes, most: int) -> bytes:
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


def _build_json_response(value: Mapping[str, Any]) -> WireResponse:
    return WireResponse(200, (("content-type", "application/json"),), json.dumps(value).encode())


@dataclass(frozen=True)
class HostAccess:
    """An upstream that sends network requests to `network` and all others to `local`."""

    local: Upstream
    network: Upstream

    async def send(self, request: WireRequest) -> WireResponse:
        return await (self.network if is_network(request) else self.local).send(request)
