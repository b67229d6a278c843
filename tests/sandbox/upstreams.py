"""Servers on this machine's loopback that stand for the world outside, with certificates."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "api.test"
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Outside:
    """A listening server; `heard` are the first bytes of every connection, after TLS."""

    port: int
    heard: list[bytes]
    certificate: str

    def trusting(self) -> ssl.SSLContext:
        """A client's context that trusts this server."""
        return ssl.create_default_context(cadata=self.certificate)


@cache
def identity() -> tuple[str, str]:
    """A certificate for `HOST` that signs itself, and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return made.public_bytes(serialization.Encoding.PEM).decode(), text.decode()


def server_context() -> ssl.SSLContext:
    certificate, key = identity()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as place:
        path = Path(place) / "identity.pem"
        path.write_text(certificate + key)
        context.load_cert_chain(path)
    return context


@asynccontextmanager
async def outside(
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
    *,
    tls: bool = True,
    hold: asyncio.Event | None = None,
) -> AsyncIterator[Outside]:
    """A server that hears a request and answers it, after `hold` is set where it is given."""
    heard: list[bytes] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heard.append(await reader.read(65536))
            if hold is not None:
                await hold.wait()
            writer.write(answer)
            await writer.drain()
        except OSError:
            return
        finally:
            writer.close()

    server = await asyncio.start_server(
        connected, "127.0.0.1", 0, ssl=server_context() if tls else None
    )
    try:
        yield Outside(server.sockets[0].getsockname()[1], heard, identity()[0])
    finally:
        server.close()


async def to_this_machine(host: str, port: int) -> list[str]:
    """A resolver by which every name is this machine."""
    return ["127.0.0.1"]
