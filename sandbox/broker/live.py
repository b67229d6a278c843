"""The live network as an upstream: httpcore with checked and pinned addresses."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpcore

from sandbox.broker.addresses import Resolver, resolve_allowed_addresses, resolve_by_system
from sandbox.broker.reading import FairStream, create_decoder
from sandbox.budget import CALL
from sandbox.errors import (
    AddressNotAllowed,
    BytesExhausted,
    ResponseTooLarge,
    UpstreamUnreachable,
)
from sandbox.wire.exchange import Headers, WireRequest, WireResponse
from sandbox.wire.policy import DEFAULT_PORTS, Origin, parse_origin

_OF_TIME, _UNKNOWN_ISSUER = (9, 10), (18, 19, 20, 21)
"""Codes with which OpenSSL refuses a certificate (X509_V_ERR_…)."""
STREAM_SECONDS = 20.0
"""How long events are listened to that a read gives as they happen. It is less than an API has for
a whole answer, and than a client waits for a call."""
_EVENT_STREAM = "text/event-stream"
DROPPED_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class LiveHttp:
    """Sends requests over HTTP/1.1 or 2 with pooled connections, on one event loop.

    `private` are the origins that a person allowed to have addresses outside the global range. A
    name is resolved once per connection, every address must be allowed, and the connection goes to
    a checked one. Redirects are not followed. Of an event stream that a GET opens and that goes on
    after `stream_seconds`, the whole events that came until then are the answer.
    """

    def __init__(
        self,
        private: frozenset[Origin] = frozenset(),
        *,
        response_bytes: int = 8 * 1024 * 1024,
        connect_seconds: float = 10.0,
        stream_seconds: float = STREAM_SECONDS,
        verify: ssl.SSLContext | None = None,
        resolve: Resolver = resolve_by_system,
    ) -> None:
        self._limit, self._stream_seconds = response_bytes, stream_seconds
        self._timeouts = {"connect": connect_seconds, "read": None, "write": None, "pool": None}
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=verify,
            max_connections=64,
            max_keepalive_connections=32,
            keepalive_expiry=30,
            http2=True,
            network_backend=_PinnedBackend(
                frozenset((origin.host, origin.port) for origin in private), resolve
            ),
        )

    async def __aenter__(self) -> LiveHttp:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._pool.aclose()

    async def send(self, request: WireRequest) -> WireResponse:
        """Send and read the whole answer. Raises UpstreamUnreachable, AddressNotAllowed or
        ResponseTooLarge.
        """
        origin = parse_origin(request.url)
        if origin is None:
            raise UpstreamUnreachable(f"{request.url[:200]} has no http(s) origin")
        if not request.url.isascii():
            raise UpstreamUnreachable(f"{origin}: the URL is not percent-encoded")
        parts = urlsplit(request.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        url = httpcore.URL(
            scheme=origin.scheme.encode(),
            host=origin.host.encode("idna") if not origin.host.isascii() else origin.host.encode(),
            port=origin.port,
            target=target.encode("ascii"),
        )
        try:
            async with self._pool.stream(
                request.method,
                url,
                headers=_encode_headers(request, _format_host(origin)),
                content=request.body or None,
                extensions={"timeout": self._timeouts},
            ) as response:
                headers = _decode_headers(response.headers)
                # Its events come as they happen, so it may have no end.
                is_stream = (
                    request.method == "GET"
                    and 200 <= response.status < 300
                    and any(
                        key == "content-type" and value.lower().startswith(_EVENT_STREAM)
                        for key, value in headers
                    )
                )
                try:
                    body = await self._read_body(response, headers, is_stream)
                except (ResponseTooLarge, BytesExhausted) as error:
                    error.status = response.status
                    raise
        except (
            httpcore.NetworkError,
            httpcore.TimeoutException,
            httpcore.ProtocolError,
            ssl.SSLError,
        ) as error:
            if isinstance(error, _ConnectionDenied):
                raise AddressNotAllowed(str(error)) from error
            detail = _describe_failure(error)
            raise UpstreamUnreachable(
                f"{origin} could not be reached: {detail[:300]}",
                unsent=isinstance(error, httpcore.ConnectError | httpcore.ConnectTimeout),
            ) from error
        kept = tuple((key, value) for key, value in headers if key not in DROPPED_HEADERS)
        return WireResponse(response.status, kept, body)

    async def _read_body(
        self, response: httpcore.Response, headers: Headers, is_stream: bool
    ) -> bytes:
        decoder = create_decoder(headers)
        # Not a list: of a body that comes byte by byte that takes a hundred times its size.
        body, held, call = bytearray(), 0, CALL.get()
        try:
            async with asyncio.timeout(self._stream_seconds if is_stream else None) as deadline:
                async for chunk in response.aiter_stream():
                    room = self._limit - len(body) + 1
                    content = decoder.decode(chunk, room) if decoder else chunk
                    body += content
                    if len(body) > self._limit:
                        raise ResponseTooLarge(self._limit, size=_read_size(headers, self._limit))
                    if call is not None:
                        call.memory.take(len(content))
                        held += len(content)
            if decoder:
                decoder.check_end()
            return bytes(body)
        except TimeoutError:
            if not deadline.expired():
                raise
            return _end_event_stream(body, self._stream_seconds)
        finally:
            # Whoever keeps the answer counts it as a whole.
            if call is not None:
                call.memory.take(-held)


def _end_event_stream(body: bytearray, seconds: float) -> bytes:
    """The whole events of a stream that goes on, and a comment that says so (HTML 9.2.5: an event
    ends with an empty line, and a line that begins with a colon is a comment).
    """
    ends = [match.end() for match in _EVENT_END.finditer(body)]
    told = f": the stream goes on; these are its events of the first {seconds:g} s\n"
    return bytes(body[: ends[-1] if ends else 0]) + told.encode()


_EVENT_END = re.compile(rb"(?:\r\n|\n|\r)(?:\r\n|\n|\r)")


def _read_size(headers: Headers, limit: int) -> int:
    """The size that an answer past the limit says to have; 0 where it says none that can be so."""
    said = next((value for key, value in headers if key == "content-length"), "")
    size = int(said) if re.fullmatch("[0-9]{1,18}", said) else 0
    return size if size > limit else 0


def _format_host(origin: Origin) -> str:
    """The Host header: what the policy matched and TLS asks for, however the URL spells it."""
    name = f"[{origin.host}]" if ":" in origin.host else origin.host
    return name if DEFAULT_PORTS.get(origin.scheme) == origin.port else f"{name}:{origin.port}"


def _encode_headers(request: WireRequest, host: str) -> list[tuple[bytes, bytes]]:
    headers = [("Host", host), ("Accept-Encoding", "gzip, deflate")]
    headers += request.headers
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        headers.append(("Content-Length", str(len(request.body))))
    if not any(name.lower() == "user-agent" for name, _ in request.headers):
        headers.append(("User-Agent", "toolwright"))
    return [(name.encode("ascii"), value.encode("utf-8")) for name, value in headers]


def _decode_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return tuple(
        (key.decode("ascii", "replace").lower(), value.decode("latin-1")) for key, value in headers
    )


class _ConnectionDenied(httpcore.ConnectError):
    """An AddressNotAllowed on its way through the library, which keeps no cause."""


class _PinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that were checked."""

    def __init__(self, private: frozenset[tuple[str, int]], resolve: Resolver) -> None:
        self._private, self._resolve = private, resolve
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        try:
            addresses = await resolve_allowed_addresses(host, port, self._private, self._resolve)
        except AddressNotAllowed as error:
            raise _ConnectionDenied(str(error)) from error
        except UpstreamUnreachable as error:
            raise httpcore.ConnectError(str(error)) from error
        for address in addresses:
            try:
                stream = await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
                return FairStream(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("unix sockets are not an upstream")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _describe_failure(error: BaseException) -> str:
    """Why there was no answer. That all attempts failed says nothing: what the first one met does
    (anyio tries each address of a name).
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return "nothing listens there (connection refused): is it running?"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _describe_certificate(cause)
        if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
            return "it does not speak TLS at that port: is http:// meant instead of https://?"
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


_NO_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"}
)
"""What OpenSSL says, by its version, of an answer that is no TLS."""


def _describe_certificate(error: ssl.SSLCertVerificationError) -> str:
    """Why a server's certificate was refused, with what a person can check."""
    said = f"its TLS certificate is refused: {error.verify_message.rstrip('.')}"
    if error.verify_code in _OF_TIME:
        now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
        return f"{said}; this machine's clock says {now}"
    if error.verify_code in _UNKNOWN_ISSUER:
        return f"{said}; SSL_CERT_FILE names a file of the authorities that you trust"
    return said
