"""The exit of a third-party server: connections to declared hosts, judged and made on the host.

The server reaches an HTTP proxy and, for programs that know no proxy, addresses that stand for the
declared hosts; both are ends of one pipe (`sandbox.link`). There is no bridge, gateway or resolver.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sandbox.addresses import Resolver, checked_addresses, system_resolver
from sandbox.brake import Brake
from sandbox.clienthello import NotTls, read_client_hello
from sandbox.clock import Clock, SystemClock
from sandbox.errors import SandboxError, UpstreamUnreachable
from sandbox.exchange import Upstream, WireRequest, WireResponse
from sandbox.link import CHUNK, Stream
from sandbox.policy import Origin
from sandbox.proxyhead import BadRequest, answer_bytes, read_asked
from sandbox.target import Target
from sandbox.throttle import Throttle

Refusal = Literal["", "refused", "unreachable", "timeout", "too_large", "frozen"]
PROXY_PORT = 3128
PROXY = ("127.0.0.1", PROXY_PORT)
MAX_HOSTS = 64
TLS_ANSWERS = (b"\x15", b"\x16")


@dataclass(frozen=True)
class ExitCaps:
    """What a session's connections may use. Sizes are bytes, times seconds."""

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
    """One connection that a server made, or wanted to: what the audit keeps of it.

    `sent` and `received` count bytes as the server sees them; `refusal` says why it did not come
    about, or how it ended.
    """

    host: str
    port: int
    kind: str = ""
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    refusal: Refusal = ""
    reason: str = ""


class Refused(SandboxError):
    """A connection that is not made, or not held any longer."""

    def __init__(self, refusal: Refusal, reason: str) -> None:
        self.refusal, self.reason = refusal, reason
        super().__init__(reason)


@dataclass
class Exit:
    """The connections of one session, to the `allowed` targets and no others.

    `private` are the targets whose address may be outside the global range. Plain HTTP goes by
    `upstream`, which has to hold to the same addresses. `told` gets every connection once, at its
    end. Cut it to break all of them off.
    """

    allowed: frozenset[Target]
    upstream: Upstream
    private: frozenset[Target] = frozenset()
    told: Callable[[Tunnel], None] = lambda tunnel: None
    caps: ExitCaps = field(default_factory=ExitCaps)
    brake: Brake = field(default_factory=Brake)
    throttle: Throttle | None = None
    clock: Clock = field(default_factory=SystemClock)
    resolve: Resolver = system_resolver
    _made: int = 0
    _open: int = 0
    _bytes: int = 0

    def __post_init__(self) -> None:
        named = sorted({target.host for target in self.allowed if _can_stand(target)})
        self._hosts = {name: f"127.1.0.{n}" for n, name in enumerate(named[:MAX_HOSTS], 1)}
        self._doors = [
            target
            for target in sorted(self.allowed, key=str)
            if target.host in self._hosts and target.port != PROXY_PORT
        ]

    @property
    def hosts(self) -> Mapping[str, str]:
        """The address inside that stands for each declared name."""
        return self._hosts

    @property
    def listeners(self) -> tuple[tuple[str, int], ...]:
        """Where the far side listens: the proxy, then what stands for the declared targets."""
        return (PROXY, *((self._hosts[door.host], door.port) for door in self._doors))

    async def serve(self, stream: Stream) -> None:
        """Answer for one connection, until it ends."""
        tally = _Tally(self)
        self._made += 1
        self._open += 1
        try:
            async with asyncio.timeout(self.caps.tunnel_seconds):
                await self._served(stream, tally)
        except Refused as refused:
            tally.refuse(refused.refusal, refused.reason)
        except UpstreamUnreachable as error:
            tally.refuse("unreachable", str(error))
        except TimeoutError:
            tally.refuse("timeout", "it took too long")
        except asyncio.CancelledError:
            tally.refuse("frozen" if self.brake.engaged else "", "it was cut off")
            raise
        except OSError as error:
            tally.refuse("", f"it broke off: {error}")
        finally:
            self._open -= 1
            if self._made <= self.caps.tunnels + 1:
                self.told(tally.tunnel())

    async def _served(self, stream: Stream, tally: _Tally) -> None:
        self._check_room()
        if stream.listener > len(self._doors):
            raise Refused("refused", "there is no such door")
        door = self._doors[stream.listener - 1] if stream.listener else None
        try:
            async with asyncio.timeout(self.caps.head_seconds):
                asked = await read_asked(stream, door)
        except BadRequest as error:
            await stream.write(_told(400, str(error)))
            stream.end()
            raise Refused("refused", str(error)) from error
        tally.of(asked.target, asked.kind)
        try:
            if asked.target not in self.allowed:
                raise Refused("refused", f"{asked.target} is not among the declared hosts")
            if asked.request is not None:
                await self._forwarded(stream, asked.request, tally)
                return
        except (Refused, UpstreamUnreachable) as error:
            await stream.write(_told(403 if isinstance(error, Refused) else 502, str(error)))
            stream.end()
            raise
        await self._tunnelled(stream, tally, proxied=door is None)

    def _check_room(self) -> None:
        if self.brake.engaged:
            raise Refused("frozen", "Toolwright is frozen")
        if self._made > self.caps.tunnels or self._open > self.caps.at_once:
            raise Refused("refused", "the session made too many connections")

    async def _forwarded(self, stream: Stream, request: WireRequest, tally: _Tally) -> None:
        """Send one plain HTTP request, and its answer back."""
        await self._admitted("http", tally.target)
        tally.count(sent=len(request.body))
        async with asyncio.timeout(self.caps.idle_seconds):
            try:
                response = await self.upstream.send(request)
            except UpstreamUnreachable:
                raise
            except SandboxError as error:
                raise Refused("too_large", str(error)) from error
        tally.count(received=len(response.body))
        await stream.write(answer_bytes(response, request.method))
        stream.end()

    async def _tunnelled(self, stream: Stream, tally: _Tally, proxied: bool) -> None:
        """Connect to the target, if the client speaks TLS and asks for that very host."""
        if proxied:
            await stream.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        async with asyncio.timeout(self.caps.head_seconds):
            hello = await _client_hello(stream, tally.target)
        await self._admitted("https", tally.target)
        reader, writer = await self._connected(tally.target)
        with _closed(writer):
            writer.write(hello)
            tally.count(sent=len(hello))
            await writer.drain()
            await self._piped(stream, reader, writer, tally)

    async def _admitted(self, scheme: str, target: Target) -> None:
        if self.throttle:
            await self.throttle.admit(Origin(scheme, target.host, target.port), self.clock)

    async def _connected(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        private = {(granted.host, granted.port) for granted in self.private}
        failure = ""
        async with asyncio.timeout(self.caps.connect_seconds):
            found = await checked_addresses(target.host, target.port, private, self.resolve)
            for address in found:
                try:
                    return await asyncio.open_connection(address, target.port, limit=CHUNK)
                except OSError as error:
                    failure = error.strerror or str(error)
        raise UpstreamUnreachable(f"{target} could not be reached: {failure}")

    async def _piped(
        self,
        stream: Stream,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        tally: _Tally,
    ) -> None:
        async with asyncio.timeout(self.caps.idle_seconds) as patience:
            ways = (
                asyncio.ensure_future(self._outward(stream, writer, tally, patience)),
                asyncio.ensure_future(self._inward(reader, stream, tally, patience)),
            )
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _outward(
        self,
        stream: Stream,
        writer: asyncio.StreamWriter,
        tally: _Tally,
        patience: asyncio.Timeout,
    ) -> None:
        while data := await stream.read():
            self._alive(patience)
            tally.count(sent=len(data))
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def _inward(
        self,
        reader: asyncio.StreamReader,
        stream: Stream,
        tally: _Tally,
        patience: asyncio.Timeout,
    ) -> None:
        first = True
        while data := await reader.read(CHUNK):
            if first and data[:1] not in TLS_ANSWERS:
                raise Refused("refused", f"{tally.target} does not answer in TLS")
            first = False
            self._alive(patience)
            tally.count(received=len(data))
            await stream.write(data)
        stream.end()

    def _alive(self, patience: asyncio.Timeout) -> None:
        patience.reschedule(asyncio.get_running_loop().time() + self.caps.idle_seconds)


async def _client_hello(stream: Stream, target: Target) -> bytes:
    """The bytes of a TLS client hello that asks for the target's host. Raises Refused."""
    data = b""
    while True:
        part = await stream.read()
        data += part
        try:
            hello = read_client_hello(data)
        except NotTls as error:
            raise Refused("refused", str(error)) from error
        if hello is not None:
            break
        if not part:
            raise Refused("refused", "the connection ended before it said what it is")
    if hello.encrypted:
        raise Refused("refused", "the TLS client hello is encrypted: its host cannot be seen")
    name = (hello.name or "").lower().removesuffix(".")
    if name != (target.host if target.named else ""):
        raise Refused("refused", f"TLS asks for {name[:200]!r} in a tunnel to {target}")
    return data


def _can_stand(target: Target) -> bool:
    return target.named and target.host != "localhost"


def _told(status: int, reason: str) -> bytes:
    body = f"{reason}\n".encode()
    return answer_bytes(WireResponse(status, (("content-type", "text/plain"),), body), "GET")


@contextlib.contextmanager
def _closed(writer: asyncio.StreamWriter) -> Iterator[None]:
    """Close the connection to the target, at once, however the block is left."""
    try:
        yield
    finally:
        writer.transport.abort()


class _Tally:
    """What one connection is and has used so far; an exit holds all of its own to its caps."""

    def __init__(self, exit: Exit) -> None:
        self.target = Target("", 0)
        self._exit = exit
        self._kind = ""
        self._sent = self._received = 0
        self._refusal: Refusal = ""
        self._reason = ""
        self._started = time.monotonic()

    def of(self, target: Target, kind: str) -> None:
        self.target, self._kind = target, kind

    def count(self, sent: int = 0, received: int = 0) -> None:
        """Add bytes. Raises Refused past a cap."""
        self._sent += sent
        self._received += received
        self._exit._bytes += sent + received
        caps = self._exit.caps
        if self._sent + self._received > caps.tunnel_bytes:
            raise Refused("too_large", "a connection carried more than allowed")
        if self._exit._bytes > caps.session_bytes:
            raise Refused("too_large", "a session's connections carried more than allowed")

    def refuse(self, refusal: Refusal, reason: str) -> None:
        self._refusal, self._reason = refusal, reason[:300]

    def tunnel(self) -> Tunnel:
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
