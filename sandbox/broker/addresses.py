"""Name resolution for outgoing connections: resolved once, and every address checked.

A caller connects to the returned addresses only, so that a name cannot change in between (DNS
rebinding).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Future
from threading import Thread
from typing import Any

from sandbox.errors import AddressNotAllowed, UpstreamUnreachable

MAX_ADDRESSES = 8

Address = tuple[Any, ...]
"""One answer of `socket.getaddrinfo`."""
Resolver = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host name, for a port. Raises UpstreamUnreachable."""


async def resolve_by_system(host: str, port: int) -> list[str]:
    """The addresses from the system's resolver, without duplicates. Raises UpstreamUnreachable.

    It waits in a thread of its own: where a host's name servers say nothing that takes half a
    minute, and the event loop's few threads are for everybody's work. Nor does the process's end
    wait for it.
    """
    looked_up: Future[list[Address]] = Future()
    try:
        Thread(target=_look_up, args=(host, port, looked_up), name="name", daemon=True).start()
        found = await asyncio.wrap_future(looked_up)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UpstreamUnreachable(f"{host} does not resolve: {reason}") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _look_up(host: str, port: int, found: Future[list[Address]]) -> None:
    if found.set_running_or_notify_cancel():
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:  # whatever it is, somebody waits for it
            found.set_exception(error)


async def resolve_allowed_addresses(
    host: str,
    port: int,
    private: Collection[tuple[str, int]],
    resolve: Resolver = resolve_by_system,
) -> list[str]:
    """The addresses of a host that may be connected to.

    `private` are the hosts and ports that a person granted though they are not public. For any
    other, one address outside the global range refuses the name as a whole: AddressNotAllowed.
    Raises UpstreamUnreachable.
    """
    addresses = (await resolve(host, port))[:MAX_ADDRESSES]
    if not addresses:
        raise UpstreamUnreachable(f"{host} has no address")
    if (host, port) in private:
        return addresses
    for address in addresses:
        if not is_public(address):
            raise AddressNotAllowed(
                f"{host} is at the private address {address}; "
                f"a person can grant it with `toolwright source allow {host}:{port}`"
            )
    return addresses


def is_public(address: str) -> bool:
    """Whether an address is global and a single host's (RFC 6890), not one wrapped in another."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo and ip.teredo[1])
        if inner or ip.is_site_local or ip not in _UNICAST:
            return False
    special = any(ip.version == network.version and ip in network for network in _SPECIAL)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not special


_UNICAST = ipaddress.ip_network("2000::/3")
"""Global unicast in IPv6 (RFC 4291, section 2.4). Outside of it are IPv4-embedded addresses and
those of translators (RFC 6052, RFC 8215), which may stand for private ones.
"""
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        # Protocol assignments (RFC 6890), 6to4 relays (RFC 7526), documentation (RFC 9637), and
        # the metadata service of a cloud that gave it a public address.
        ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20", "168.63.129.16/32"),
    )
)
