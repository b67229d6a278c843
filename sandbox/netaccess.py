"""What a forged server asks the network for besides HTTP, as requests of their own.

`READ tls://HOST:PORT` is who answers there; `READ dns:NAME?type=A`, or `dns://SERVER/NAME?type=A`,
is a question to the name system (URIs of RFC 4501); `TALK tcp://HOST:PORT` sends a body and takes
what comes back. Each is one exchange, recorded and replayed like a request to an API.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from sandbox.addresses import Resolver, checked_addresses, system_resolver
from sandbox.errors import NetworkRefused, UpstreamUnreachable
from sandbox.exchange import WireRequest, WireResponse
from sandbox.nameserver import SYSTEM, answer_of, question
from sandbox.permissions import Permission
from sandbox.target import Target, is_address, parse_target
from sandbox.tlspeer import peer_of

READ, TALK = "READ", "TALK"
TLS, DNS, TCP = "tls://", "dns:", "tcp://"
SECONDS = 10.0
MAX_DATA, MAX_ANSWER, MAX_UNTIL = 64 * 1024, 1024 * 1024, 200
DNS_PORT, TLS_PORT = 53, 443
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
        target = _target(request.url)
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
        name, kind, server = _asked(request.url)
        granted = [each.name for each in self.granted() if each.kind == "dns"]
        if not any(_covers(each, name, server) for each in granted):
            raise NetworkRefused(f"dns:{name}" + (f"@{server}" if server else ""))
        if server is None:
            return _json(await answer_of(name, kind, SYSTEM))
        addresses = await self._addresses(server, exact=True)
        return _json(await answer_of(name, kind, [(each, server.port) for each in addresses]))


def network_request(params: Mapping[str, Any], body: bytes) -> WireRequest | None:
    """The request of a `toolwright/request` of kind `dns`, `tls` or `tcp`, or None where it is none
    of them or not well-formed.
    """
    if params.get("kind") == "dns":
        return _dns_request(params)
    host, port = params.get("host"), params.get("port")
    if not isinstance(host, str) or not isinstance(port, int) or isinstance(port, bool):
        return None
    target = parse_target(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    if target is None:
        return None
    if params.get("kind") == "tls":
        return WireRequest(READ, f"{TLS}{target}")
    until, most = params.get("until", ""), params.get("max_bytes", MAX_DATA)
    if not isinstance(until, str) or len(until) > MAX_UNTIL or not isinstance(most, int):
        return None
    if len(body) > MAX_DATA or not 0 < most <= MAX_ANSWER:
        return None
    headers = (("until", quote(until, safe="")), ("max-bytes", str(most)))
    return WireRequest(TALK, f"{TCP}{target}", headers, body)


def asked_of(request: WireRequest) -> tuple[str, dict[str, Any]]:
    """The function of `toolwright.network` that makes such a request, and its arguments."""
    if request.url.startswith(DNS):
        name, kind, server = _asked(request.url)
        place = "" if server is None else str(server)
        return "network.dns", {"name": name, "type": kind, "server": place}
    target = _target(request.url)
    place_of: dict[str, Any] = {"host": target.host, "port": target.port}
    if request.url.startswith(TLS):
        return "network.tls_peer", place_of
    until = unquote(request.header("until") or "")
    most = int(request.header("max-bytes") or MAX_DATA)
    data = request.body.decode("utf-8", "replace")
    return "network.tcp", {**place_of, "data": data, "until": until, "max_bytes": most}


def is_network(request: WireRequest) -> bool:
    return request.url.startswith((TLS, DNS, TCP))


def _dns_request(params: Mapping[str, Any]) -> WireRequest | None:
    name, kind, server = params.get("name"), params.get("type", "A"), params.get("server", "")
    if not isinstance(name, str) or not isinstance(kind, str) or not isinstance(server, str):
        return None
    plain = question(name, kind)
    target = parse_target(server, DNS_PORT) if server else None
    if plain is None or (server and target is None):
        return None
    place = f"{DNS}//{target}/" if target else DNS
    return WireRequest(READ, f"{place}{quote(plain, safe='')}?type={kind.upper()}")


def _asked(url: str) -> tuple[str, str, Target | None]:
    """The name, the type and the server of a question."""
    parts = urlsplit(url)
    server = parse_target(parts.netloc, DNS_PORT) if parts.netloc else None
    kind = dict(parse_qsl(parts.query)).get("type", "A")
    return unquote(parts.path.removeprefix("/")), kind, server


def _target(url: str) -> Target:
    found = parse_target(url.partition("://")[2], None)
    if found is None:
        raise NetworkRefused(url[:200])
    return found


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
            got = bytearray()
            while len(got) < most and not (until and until in got):
                chunk = await reader.read(min(1 << 16, most - len(got)))
                if not chunk:
                    break
                got += chunk
        finally:
            writer.close()
    except OSError as error:
        raise UpstreamUnreachable(f"{target} could not be reached: {error}") from error
    end = got.find(until) + len(until) if until and until in got else len(got)
    return bytes(got[:end])


def _json(value: Mapping[str, Any]) -> WireResponse:
    return WireResponse(200, (("content-type", "application/json"),), json.dumps(value).encode())
