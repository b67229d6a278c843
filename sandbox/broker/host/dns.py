"""DNS queries (RFC 1035): over UDP, and over TCP if the answer is truncated."""

from __future__ import annotations

import asyncio
import importlib
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.errors import UpstreamUnreachable

if TYPE_CHECKING:
    from dns.message import Message

MAX_ANSWERS = 200
TRIES, SECONDS = 2, 2.0
PORT = 53
RESOLVERS = Path("/etc/resolv.conf")
SYSTEM: tuple[tuple[str, int], ...] = ()
"""Stands for the name servers of this machine."""


@cache
def _load_library() -> Any:
    # Loaded by name at the first query: it takes 60 ms, and few servers ask a name server.
    for part in ("exception", "flags", "message", "rcode", "rdatatype"):
        importlib.import_module(f"dns.{part}")
    return importlib.import_module("dns")


async def query_dns(
    name: str, kind: str, servers: Sequence[tuple[str, int]], seconds: float = SECONDS
) -> dict[str, Any]:
    """Query servers in turn, each for at most `seconds`, and return the first answer: `answers` (in
    presentation form, sorted), `rcode` and `ttl` (the smallest, None without answers). Raises
    UpstreamUnreachable.
    """
    places = list(servers) or [(each, PORT) for each in _list_name_servers()]
    query = _load_library().message.make_query(name, kind, use_edns=True, payload=1232)
    reason = "this machine has no name server"
    for place in places[:TRIES]:
        try:
            wire = await _exchange_message(query.to_wire(), place, seconds)
            return parse_answer(query, wire, kind)
        except (OSError, EOFError, ValueError) as error:
            reason = f"{place[0]}:{place[1]}: {type(error).__name__}: {error}"[:300]
    raise UpstreamUnreachable(f"no name server answered for {name}: {reason}")


def _list_name_servers() -> list[str]:
    """The name servers of resolv.conf(5); the local one if it names none."""
    try:
        lines = RESOLVERS.read_text().splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines]
    return [w[1] for w in words if len(w) > 1 and w[0] == "nameserver"] or ["127.0.0.1"]


def parse_answer(query: Message, wire: bytes, kind: str) -> dict[str, Any]:
    """What `query_dns` returns, of a name server's answer in wire form. Raises ValueError."""
    library = _load_library()
    try:
        return _read_answer(query, library.message.from_wire(wire), kind)
    except (library.exception.DNSException, struct.error, EOFError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _read_answer(query: Message, answer: Message, kind: str) -> dict[str, Any]:
    if not query.is_response(answer):
        raise ValueError("the answer is to another question")
    library = _load_library()
    wanted = library.rdatatype.from_text(kind)
    found = [rrset for rrset in answer.answer if rrset.rdtype == wanted]
    answers = sorted(record.to_text() for rrset in found for record in rrset)
    ttls = [rrset.ttl for rrset in found]
    return {
        "answers": answers[:MAX_ANSWERS],
        "rcode": library.rcode.to_text(answer.rcode()),
        "ttl": min(ttls) if ttls else None,
    }


async def _exchange_message(wire: bytes, place: tuple[str, int], seconds: float) -> bytes:
    """The answer in wire form, over TCP if the datagram was truncated. Raises OSError, EOFError."""
    async with asyncio.timeout(seconds):
        answer = await _query_udp(wire, place)
    if len(answer) < 4 or not struct.unpack(">H", answer[2:4])[0] & _load_library().flags.TC:
        return answer
    async with asyncio.timeout(seconds):
        return await _query_tcp(wire, place)


class _DatagramReceiver(asyncio.DatagramProtocol):
    """Receives the datagram with the query's id (RFC 5452, section 9.1) and ignores others. The
    socket is connected, so that none comes from elsewhere.
    """

    def __init__(self, wire: bytes) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._identity = wire[:2]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if data[:2] == self._identity and not self.answer.done():
            self.answer.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc)


async def _query_udp(wire: bytes, place: tuple[str, int]) -> bytes:
    loop = asyncio.get_running_loop()
    transport, ear = await loop.create_datagram_endpoint(
        lambda: _DatagramReceiver(wire), remote_addr=place
    )
    try:
        transport.sendto(wire)
        return await ear.answer
    finally:
        transport.abort()


async def _query_tcp(wire: bytes, place: tuple[str, int]) -> bytes:
    reader, writer = await asyncio.open_connection(*place)
    try:
        writer.write(struct.pack(">H", len(wire)) + wire)
        (size,) = struct.unpack(">H", await reader.readexactly(2))
        return await reader.readexactly(size)
    finally:
        writer.transport.abort()
