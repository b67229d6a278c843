"""A broker in front of the real network, and servers on this machine that hear what leaves it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sandbox.broker.addresses import Resolver
from sandbox.broker.broker import Broker
from sandbox.broker.live import LiveHttp
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.credentials.source import CredentialSource
from sandbox.wire.exchange import Caps, Exchange, WireRequest, WriteMode
from sandbox.wire.policy import Origin, Policy, RequestRule, build_read_policy
from tests.sandbox.upstreams import HOST, to_this_machine

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"
Writer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Listener:
    """A plain HTTP server; `heard` are the heads and bodies of the requests that reached it."""

    port: int = 0
    heard: list[bytes] = field(default_factory=list)

    @property
    def origin(self) -> Origin:
        return Origin("http", HOST, self.port)

    def url(self, path: str) -> str:
        return f"http://{HOST}:{self.port}{path}"


@asynccontextmanager
async def listener(answer: bytes | Writer = FINE) -> AsyncIterator[Listener]:
    """It answers every request with these bytes, or as a function writes them."""
    made = Listener()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length[1])) if length else b""
                made.heard.append(head + body)
                if isinstance(answer, bytes):
                    writer.write(answer)
                else:
                    await answer(writer)
                await writer.drain()
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            return
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


def rule(
    origin: Origin, method: str = "GET", security: tuple[tuple[str, ...], ...] = ()
) -> RequestRule:
    """What a session may ask for whose bundle declares `/items/{key}` there, and nothing else."""
    tool = ToolDefinition(
        "tool",
        "A tool.",
        {"type": "object"},
        {"type": "object"},
        "read",
        requests=(RequestPattern(method, f"{origin}/items/{{key}}"),),
        security=security,
    )
    bundle = Bundle(
        name="sample",
        version=1,
        title="Sample",
        base_url=str(origin),
        source_code="",
        tools=(tool,),
        provenance=Provenance("test", "0" * 64),
        permissions=(f"network:{origin.host}:{origin.port}",),
    )
    (made,) = build_read_policy(bundle).rules
    return made


@asynccontextmanager
async def brokered(
    *rules: RequestRule,
    granted: Iterable[Origin] = (),
    resolve: Resolver = to_this_machine,
    caps: Caps | None = None,
    credentials: CredentialSource | None = None,
    writes: WriteMode = None,
) -> AsyncIterator[Broker]:
    """A broker over the real network; `granted` are the origins that may be on this machine."""
    limit = (caps or Caps()).response_bytes
    async with LiveHttp(frozenset(granted), resolve=resolve, response_bytes=limit) as live:
        yield Broker(Policy(rules), live, caps=caps, credentials=credentials, writes=writes)


async def asked(
    api: Listener, request: WireRequest, *rules: RequestRule, caps: Caps | None = None
) -> Exchange:
    """What becomes of one request to that server, whose address is granted."""
    allowed = rules or tuple(rule(api.origin, method) for method in ("GET", "POST"))
    async with brokered(*allowed, granted=[api.origin], caps=caps) as broker:
        return await broker.perform(request)
