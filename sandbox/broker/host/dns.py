"""One question to the name system (RFC 1035), over UDP and where that is cut over TCP."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype

from sandbox.errors import UpstreamUnreachable

MAX_ANSWERS = 200
TRIES, SECONDS = 2, 2.0
PORT = 53
RESOLVERS = Path("/etc/resolv.conf")
SYSTEM: tuple[tuple[str, int], ...] = ()
"""In place of servers: those of this machine."""


async def answer_of(name: str, kind: str, servers: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """`answers` (in presentation form, sorted), `rcode` and `ttl` (the smallest, None without
    answers), of the first server that gives any. Raises UpstreamUnreachable.
    """
    places = list(servers) or [(each, PORT) for each in _system()]
    query = dns.message.make_query(name, kind, use_edns=True, payload=1232)
    reason = "this machine has no name server"
    for place in places[:TRIES]:
        try:
            wire = await _exchanged(query.to_wire(), place)
            return _told(query, dns.message.from_wire(wire), kind)
        except (OSError, EOFError, dns.exception.DNSException, struct.error, ValueError) as error:
            reason = f"{place[0]}:{place[1]}: {type(error).__name__}: {error}"[:300]
    raise UpstreamUnreachable(f"no name server answered for {name}: {reason}")


def _system() -> list[str]:
    """The name servers in resolv.conf(5), the local one where it names none."""
    try:
        lines = RESOLVERS.read_text().splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines]
    return [w[1] for w in words if len(w) > 1 and w[0] == "nameserver"] or ["127.0.0.1"]


def _told(query: dns.message.Message, answer: dns.message.Message, kind: str) -> dict[str, Any]:
    if not query.is_response(answer):
        raise ValueError("the answer is to another question")
    wanted = dns.rdatatype.from_text(kind)
    found = [rrset for rrset in answer.answer if rrset.rdtype == wanted]
    answers = sorted(record.to_text() for rrset in found for record in rrset)
    ttls = [rrset.ttl for rrset in found]
    return {
        "answers": answers[:MAX_ANSWERS],
        "rcode": dns.rcode.to_text(answer.rcode()),
        "ttl": min(ttls) if ttls else None,
    }


async def _exchanged(wire: bytes, place: tuple[str, int]) -> bytes:
    """The answer in its wire form, over TCP where it does not fit into a datagram. Raises OSError,
    EOFError.
    """
    async with asyncio.timeout(SECONDS):
        answer = await _datagram(wire, place)
    if len(answer) < 4 or not struct.unpack(">H", answer[2:4])[0] & dns.flags.TC:
        return answer
    async with asyncio.timeout(SECONDS):
        return await _stream(wire, place)


class _Ear(asyncio.DatagramProtocol):
    """Waits for a datagram with the question's id (RFC 5452, section 9.1); others are passed over.
    The socket is connected, so that none comes from elsewhere.
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


async def _datagram(wire: bytes, place: tuple[str, int]) -> bytes:
    loop = asyncio.get_running_loop()
    transport, ear = await loop.create_datagram_endpoint(lambda: _Ear(wire), remote_addr=place)
    try:
        transport.sendto(wire)
        return await ear.answer
    finally:
        transport.abort()


async def _stream(wire: bytes, place: tuple[str, int]) -> bytes:
    reader, writer = await asyncio.open_connection(*place)
    try:
        writer.write(struct.pack(">H", len(wire)) + wire)
        (size,) = struct.unpack(">H", await reader.readexactly(2))
        return await reader.readexactly(size)
    finally:
        writer.transport.abort()
