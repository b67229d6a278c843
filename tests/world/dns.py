"""A DNS client of a few lines (RFC 1035), so that the test's eyes are not the server's."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "TXT": 16}


@dataclass(frozen=True)
class DnsAnswer:
    """`records` are in presentation form: `192.0.2.1`, a TXT's text, or a SOA's seven fields."""

    rcode: int
    authoritative: bool
    records: tuple[str, ...]


def query(name: str, kind: str, host: str, port: int, seconds: float = 60.0) -> DnsAnswer:
    """Ask one question over UDP. Raises TimeoutError where no answer comes."""
    labels = [label.encode() for label in name.rstrip(".").split(".")]
    question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    packet = struct.pack(">6H", 0x7157, 0, 1, 0, 0, 0) + question
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(seconds)
        udp.connect((host, port))
        udp.send(packet + struct.pack(">2H", TYPES[kind], 1))
        return _read(udp.recv(4096), len(packet) + 4)


def _read(packet: bytes, at: int) -> DnsAnswer:
    ident, flags, _, answers = struct.unpack_from(">4H", packet)
    assert ident == 0x7157, "an answer to another question"
    records = []
    for _ in range(answers):
        _, at = _name(packet, at)
        kind, _, _, length = struct.unpack_from(">HHIH", packet, at)
        at += 10
        records.append(_record(packet, kind, at, length))
        at += length
    return DnsAnswer(flags & 15, bool(flags & 0x400), tuple(records))


def _record(packet: bytes, kind: int, at: int, length: int) -> str:
    if kind == TYPES["A"]:
        return socket.inet_ntoa(packet[at : at + 4])
    if kind == TYPES["TXT"]:
        end, text = at + length, b""
        while at < end:
            text += packet[at + 1 : at + 1 + packet[at]]
            at += 1 + packet[at]
        return text.decode()
    name, at = _name(packet, at)
    if kind != TYPES["SOA"]:
        return name
    mailbox, at = _name(packet, at)
    return " ".join([name, mailbox, *map(str, struct.unpack_from(">5I", packet, at))])


def _name(packet: bytes, at: int) -> tuple[str, int]:
    """A name and where it ends; a pointer leads to an earlier place (RFC 1035 section 4.1.4)."""
    labels: list[str] = []
    while packet[at]:
        if packet[at] >= 0xC0:
            earlier = struct.unpack_from(">H", packet, at)[0] & 0x3FFF
            return ".".join([*labels, _name(packet, earlier)[0]]), at + 2
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode())
        at += 1 + packet[at]
    return ".".join([*labels, ""]), at + 1
