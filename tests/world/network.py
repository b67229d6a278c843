"""Servers on loopback for what is no HTTP: TLS with a self-made certificate, names, and lines."""

from __future__ import annotations

import datetime
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PORTS = 100
BEGINS = datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC)
ENDS = datetime.datetime(2031, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)


@contextmanager
def tls_server(
    directory: Path,
    name: str = "shop.test",
    begins: datetime.datetime = BEGINS,
    ends: datetime.datetime = ENDS,
) -> Iterator[int]:
    """The port of a server that shakes hands with a certificate that nobody vouches for, which is
    kept as `peer.pem`.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(directory, name, begins, ends))

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                with context.wrap_socket(self.request, server_side=True) as shaken:
                    shaken.recv(1)
            except OSError:
                return

    with _served(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        yield port


def _certificate(
    directory: Path, name: str, begins: datetime.datetime, ends: datetime.datetime
) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(0x4711)
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / "peer.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@dataclass(frozen=True)
class Lines:
    """`replies` by what was sent, up to its first line break; `asked` are those lines."""

    port: int
    asked: list[bytes]


@contextmanager
def line_server(replies: Mapping[bytes, bytes], *, silent: bool = False) -> Iterator[Lines]:
    """A server that answers one line and closes; a `silent` one never does."""
    asked: list[bytes] = []
    over = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            line = self.rfile.readline().rstrip(b"\r\n")
            asked.append(line)
            if silent:
                over.wait()
            self.wfile.write(replies.get(line, b"% no match\r\n"))

    with _served(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        try:
            yield Lines(port, asked)
        finally:
            over.set()


@contextmanager
def name_server(zone: Mapping[tuple[str, str], tuple[str, ...]], ttl: int = 300) -> Iterator[int]:
    """The port of a name server for these names and types. A long answer is cut over UDP."""

    def answered(wire: bytes) -> dns.message.Message:
        asked = dns.message.from_wire(wire)
        question = asked.question[0]
        name, kind = (
            question.name.to_text(omit_final_dot=True),
            dns.rdatatype.to_text(question.rdtype),
        )
        answer = dns.message.make_response(asked)
        records = zone.get((name, kind))
        if records is None:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        else:
            answer.answer.append(dns.rrset.from_text(question.name, ttl, "IN", kind, *records))
        return answer

    class Datagram(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            wire, place = self.request
            answer = answered(wire)
            if len(answer.to_wire(max_size=65535)) > 512:
                answer.answer.clear()
                answer.flags |= dns.flags.TC
            place.sendto(answer.to_wire(), self.client_address)

    class Stream(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            (size,) = struct.unpack(">H", self.rfile.read(2))
            wire = answered(self.rfile.read(size)).to_wire(max_size=65535)
            self.wfile.write(struct.pack(">H", len(wire)) + wire)

    udp, tcp = _same_port(Datagram, Stream)
    with _served(udp) as port, _served(tcp):
        yield port


def _same_port(
    datagram: type[socketserver.BaseRequestHandler], stream: type[socketserver.BaseRequestHandler]
) -> tuple[socketserver.ThreadingUDPServer, socketserver.ThreadingTCPServer]:
    """A server of each kind on one port: one that is free for UDP may be in use for TCP."""
    for _ in range(PORTS):
        udp = socketserver.ThreadingUDPServer(("127.0.0.1", 0), datagram)
        try:
            return udp, socketserver.ThreadingTCPServer(udp.server_address, stream)
        except OSError:
            udp.server_close()
    raise AssertionError(f"none of {PORTS} ports is free for both")


@contextmanager
def _served(server: socketserver.TCPServer | socketserver.UDPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield int(server.socket.getsockname()[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
