"""Egress proxy of a third-party server: allows connections to declared hosts only.

The server reaches an HTTP proxy and, for programs without proxy support, loopback addresses that
stand for the declared hosts; both are carried over one pipe (`sandbox.thirdparty.link`) to this
process, which connects. The container has no bridge, gateway or resolver.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sandbox.broker.addresses import Resolver, resolve_allowed_addresses, resolve_by_system
from sandbox.broker.throttle import Throttle
from sandbox.bundle.target import NetworkTarget
from sandbox.clock import Clock, SystemClock
from sandbox.errors import SandboxError, UpstreamUnreachable
from sandbox.killswitch import KillSwitch
from sandbox.thirdparty.clienthello import HelloReader, NotTls
from sandbox.thirdparty.link import CHUNK, LinkStream
from sandbox.thirdparty.proxy_request import BadRequest, encode_response, read_proxy_request
from sandbox.wire.exchange import Upstream, WireRequest, WireResponse
from sandbox.wire.policy import Origin

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connector = Callable[[NetworkTarget], Awaitable[Connection | None]]
Refusal = Literal["", "refused", "unreachable", "timeout", "too_large", "frozen"]
PROXY_PORT = 3128
PROXY = ("127.0.0.1", PROXY_PORT)
MAX_HOSTS = 64
MAX_PHRASE = 400
MAX_BLOCKED = 8
TLS_ANSWERS = (b"\x15", b"\x16")


@dataclass(frozen=True)
class EgressCaps:
    """Limits of a session's connections. Sizes are bytes, times are seconds."""

    head_seconds: float = 10.0
    connect_seconds: float = 10.0
    idle_seconds: float = 300.0
    tunnel_seconds: float = 3600.0
    tunnel_bytes: int = 256 * 1024 * 1024
    session_bytes: int = 1024 * 1024 * 1024
    tunnels: int = 2000
    at_once: int = 32


@dataclass(frozen=True)
class Tunnel:
    """The audit record of one connection that a server made or attempted.

    `sent` and `received` count bytes as the server sees them; `refusal` and `reason` tell why it
    was refused or how it ended.
    """

    host: str
    port: int
    kind: str = ""
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    refusal: Refusal = ""
    reason: str = ""


class EgressRefused(SandboxError):
    """A connection is refused or broken off."""

    def __init__(self, refusal: Refusal, reason: str) -> None:
        self.refusal, self.reason = refusal, reason
        super().__init__(reason)


@dataclass
class EgressProxy:
    """Serves the connections of one session, to the `allowed` targets only.

    `server` is the name of the registered server, for what a person is told to type; "" for none.
    `private` are the targets whose address may be outside the global range. Plain HTTP is sent by
    `upstream`, which has to apply the same rule. `connect` connects otherwise than by an address,
    None for where it does not. `told` receives the record of every connection at
    its end; past the cap `tunnels`, of the first refused one only.
    """

    allowed: frozenset[NetworkTarget]
    upstream: Upstream
    private: frozenset[NetworkTarget] = frozenset()
    told: Callable[[Tunnel], None] = lambda tunnel: None
    caps: EgressCaps = field(default_factory=EgressCaps)
    kill_switch: KillSwitch = field(default_factory=KillSwitch)
    throttle: Throttle | None = None
    clock: Clock = field(default_factory=SystemClock)
    resolve: Resolver = resolve_by_system
    connect: Connector | None = None
    server: str = ""
    blocked: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_BLOCKED))
    """Why connections were refused or led nowhere, until somebody takes them out."""
    _made: int = 0
    _open: int = 0
    _bytes: int = 0

    def __post_init__(self) -> None:
        named = sorted({target.host for target in self.allowed if _can_stand_in(target)})
        self._hosts = {name: f"127.1.0.{n}" for n, name in enumerate(named[:MAX_HOSTS], 1)}
        self._doors = [
            target
            for target in sorted(self.allowed, key=str)
            if target.host in self._hosts and target.port != PROXY_PORT
        ]

    @property
    def hosts(self) -> Mapping[str, str]:
        """The loopback address in the container that stands for each declared name."""
        return self._hosts

    @property
    def listeners(self) -> tuple[tuple[str, int], ...]:
        """The addresses that the forwarder listens on: the proxy, then one for each declared
        target.
        """
        return (PROXY, *((self._hosts[door.host], door.port) for door in self._doors))

    async def serve_stream(self, stream: LinkStream) -> None:
        """Serve one connection until it ends, and report it."""
        tally = _Tally(self)
        self._made += 1
        self._open += 1
        try:
            async with asyncio.timeout(self.caps.tunnel_seconds):
                await self._judge_stream(stream, tally)
        except EgressRefused as refused:
            tally.set_refusal(refused.refusal, refused.reason)
        except UpstreamUnreachable as error:
            self.blocked.append(str(error))
            tally.set_refusal("unreachable", str(error))
        except TimeoutError:
            tally.set_refusal("timeout", "it took too long")
        except asyncio.CancelledError:
            tally.set_refusal("frozen" if self.kill_switch.engaged else "", "it was cut off")
            raise
        except OSError as error:
            tally.set_refusal("", f"it broke off: {error}")
        finally:
            self._open -= 1
            if self._made <= self.caps.tunnels + 1:
                self.told(tally.to_tunnel())

    async def _judge_stream(self, stream: LinkStream, tally: _Tally) -> None:
        self._check_room()
        if stream.listener > len(self._doors):
            raise EgressRefused("refused", "there is no such door")
        door = self._doors[stream.listener - 1] if stream.listener else None
        try:
            async with asyncio.timeout(self.caps.head_seconds):
                asked = await read_proxy_request(stream, door)
        except BadRequest as error:
            await stream.write(_render_refusal(400, str(error)))
            stream.end()
            raise EgressRefused("refused", str(error)) from error
        tally.set_target(asked.target, asked.kind)
        try:
            if asked.target not in self.allowed:
                reason = self._describe_undeclared(asked.target)
                self.blocked.append(reason)
                raise EgressRefused("refused", reason)
            if asked.request is not None:
                await self._forward_request(stream, asked.request, tally)
                return
        except (EgressRefused, UpstreamUnreachable) as error:
            await stream.write(
                _render_refusal(403 if isinstance(error, EgressRefused) else 502, str(error))
            )
            stream.end()
            raise
        await self._open_tunnel(stream, tally, proxied=door is None)

    def _describe_undeclared(self, target: NetworkTarget) -> str:
        told = f"Toolwright allows no connection to {target}"
        if not self.server:
            return told
        return f"{told}. To allow it: `toolwright grant {self.server} network:{target}`"

    def _check_room(self) -> None:
        if self.kill_switch.engaged:
            raise EgressRefused("frozen", "Toolwright is frozen")
        if self._made > self.caps.tunnels or self._open > self.caps.at_once:
            raise EgressRefused("refused", "the session made too many connections")

    async def _forward_request(
        self, stream: LinkStream, request: WireRequest, tally: _Tally
    ) -> None:
        """Forward one plain HTTP request and its answer."""
        await self._wait_admitted("http", tally.target)
        tally.count_bytes(sent=len(request.body))
        async with asyncio.timeout(self.caps.idle_seconds):
            try:
                response = await self.upstream.send(request)
            except UpstreamUnreachable:
                raise
            except SandboxError as error:
                raise EgressRefused("too_large", str(error)) from error
        tally.count_bytes(received=len(response.body))
        await stream.write(encode_response(response, request.method))
        stream.end()

    async def _open_tunnel(self, stream: LinkStream, tally: _Tally, proxied: bool) -> None:
        """Connect to the target if the client hello asks for exactly that host, and copy bytes."""
        if proxied:
            await stream.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        async with asyncio.timeout(self.caps.head_seconds):
            hello = await _receive_client_hello(stream, tally.target)
        await self._wait_admitted("https", tally.target)
        reader, writer = await self._connect_target(tally.target)
        with _close_at_end(writer):
            writer.write(hello)
            tally.count_bytes(sent=len(hello))
            await writer.drain()
            await self._pipe_bytes(stream, reader, writer, tally)

    async def _wait_admitted(self, scheme: str, target: NetworkTarget) -> None:
        if self.throttle:
            await self.throttle.admit_request(Origin(scheme, target.host, target.port), self.clock)

    async def _connect_target(self, target: NetworkTarget) -> Connection:
        private = {(granted.host, granted.port) for granted in self.private}
        failure = ""
        async with asyncio.timeout(self.caps.connect_seconds):
            if self.connect is not None and (made := await self.connect(target)):
                return made
        async with asyncio.timeout(self.caps.connect_seconds):
            found = await resolve_allowed_addresses(target.host, target.port, private, self.resolve)
            for address in found:
                try:
                    return await asyncio.open_connection(address, target.port, limit=CHUNK)
                except OSError as error:
                    failure = error.strerror or str(error)
        raise UpstreamUnreachable(f"{target} could not be reached: {failure}")

    async def _pipe_bytes(
        self,
        stream: LinkStream,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        tally: _Tally,
    ) -> None:
        async with asyncio.timeout(self.caps.idle_seconds) as patience:
            ways = (
                asyncio.ensure_future(self._copy_outward(stream, writer, tally, patience)),
                asyncio.ensure_future(self._copy_inward(reader, stream, tally, patience)),
            )
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _copy_outward(
        self,
        stream: LinkStream,
        writer: asyncio.StreamWriter,
        tally: _Tally,
        patience: asyncio.Timeout,
    ) -> None:
        while data := await stream.read():
            self._extend_patience(patience)
            tally.count_bytes(sent=len(data))
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def _copy_inward(
        self,
        reader: asyncio.StreamReader,
        stream: LinkStream,
        tally: _Tally,
        patience: asyncio.Timeout,
    ) -> None:
        first = True
        while data := await reader.read(CHUNK):
            if first and data[:1] not in TLS_ANSWERS:
                raise EgressRefused("refused", f"{tally.target} does not answer in TLS")
            first = False
            self._extend_patience(patience)
            tally.count_bytes(received=len(data))
            await stream.write(data)
        stream.end()

    def _extend_patience(self, patience: asyncio.Timeout) -> None:
        patience.reschedule(asyncio.get_running_loop().time() + self.caps.idle_seconds)


async def _receive_client_hello(stream: LinkStream, target: NetworkTarget) -> bytes:
    """The bytes of a TLS client hello that asks for the target's host. Raises Refused."""
    data, reader = bytearray(), HelloReader()
    while True:
        part = await stream.read()
        data += part
        try:
            hello = reader.read(part)
        except NotTls as error:
            raise EgressRefused("refused", str(error)) from error
        if hello is not None:
            break
        if not part:
            raise EgressRefused("refused", "the connection ended before it said what it is")
    if hello.encrypted:
        raise EgressRefused("refused", "the TLS client hello is encrypted: its host cannot be seen")
    name = (hello.name or "").lower().removesuffix(".")
    if name != (target.host if target.is_named else ""):
        raise EgressRefused("refused", f"TLS asks for {name[:200]!r} in a tunnel to {target}")
    return bytes(data)


def _can_stand_in(target: NetworkTarget) -> bool:
    return target.is_named and target.host != "localhost"


def _render_refusal(status: int, reason: str) -> bytes:
    body = f"{reason}\n".encode()
    answer = WireResponse(status, (("content-type", "text/plain"),), body)
    # Of a CONNECT that is refused, clients show the reason phrase alone ("403 Forbidden").
    phrase = "".join(letter for letter in reason[:MAX_PHRASE] if " " <= letter <= "~")
    return encode_response(answer, "GET", phrase)


@contextlib.contextmanager
def _close_at_end(writer: asyncio.StreamWriter) -> Iterator[None]:
    """Abort the connection to the target however the block is left."""
    try:
        yield
    finally:
        writer.transport.abort()


class _Tally:
    """The target, byte counts and refusal of one connection; enforces the byte limits."""

    def __init__(self, exit: EgressProxy) -> None:
        self.target = NetworkTarget("", 0)
        self._exit = exit
        self._kind = ""
        self._sent = self._received = 0
        self._refusal: Refusal = ""
        self._reason = ""
        self._started = time.monotonic()

    def set_target(self, target: NetworkTarget, kind: str) -> None:
        self.target, self._kind = target, kind

    def count_bytes(self, sent: int = 0, received: int = 0) -> None:
        """Add bytes. Raises Refused past a cap."""
        self._sent += sent
        self._received += received
        self._exit._bytes += sent + received
        caps = self._exit.caps
        if self._sent + self._received > caps.tunnel_bytes:
            raise EgressRefused("too_large", "a connection carried more than allowed")
        if self._exit._bytes > caps.session_bytes:
            raise EgressRefused("too_large", "a session's connections carried more than allowed")

    def set_refusal(self, refusal: Refusal, reason: str) -> None:
        self._refusal, self._reason = refusal, reason[:300]

    def to_tunnel(self) -> Tunnel:
        return Tunnel(
            host=self.target.host[:255],
            port=self.target.port,
            kind=self._kind,
            sent=self._sent,
            received=self._received,
            seconds=time.monotonic() - self._started,
            refusal=self._refusal,
            reason=self._reason,
        )
