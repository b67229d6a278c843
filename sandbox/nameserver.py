"""One question to the name system (RFC 1035), over UDP and where that is cut over TCP."""

from __future__ import annotations

import asyncio
import socket
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
            wire = await asyncio.to_thread(_exchanged, query.to_wire(), place)
            return _told(query, dns.message.from_wire(wire), kind)
        except (OSError, dns.exception.DNSException, struct.error, ValueError) as error:
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


def _exchanged(wire: bytes, place: tuple[str, int]) -> bytes:
    """The answer in its wire form. Raises OSError."""
    family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as udp:
        udp.settimeout(SECONDS)
        udp.connect(place)
        udp.send(wire)
        answer = udp.recv(65535)
    if len(answer) < 4 or not struct.unpack(">H", answer[2:4])[0] & dns.flags.TC:
        return answer
    with socket.create_connection(place, SECONDS) as tcp:
        tcp.sendall(struct.pack(">H", len(wire)) + wire)
        (size,) = struct.unpack(">H", _exactly(tcp, 2))
        return _exactly(tcp, size)


def _exactly(tcp: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        chunk = tcp.recv(size - len(got))
        if not chunk:
            raise ConnectionError("the answer is cut")
        got += chunk
    return got
