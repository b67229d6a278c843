"""Requests of the egress proxy's clients: CONNECT (RFC 9110, section 9.3.6) or plain HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import responses
from typing import Literal
from urllib.parse import urlsplit

import h11

from sandbox.bundle.target import NetworkTarget, parse_target
from sandbox.thirdparty.link import LinkStream
from sandbox.wire.exchange import Headers, WireRequest, WireResponse

MAX_HEAD = 16 * 1024
MAX_BODY = 8 * 1024 * 1024
MAX_HEADERS = 64
TLS_HANDSHAKE = b"\x16"
NO_CONTENT = frozenset({204, 304})
_DROPPED = frozenset(
    "accept-encoding connection content-length expect host keep-alive te trailer transfer-encoding "
    "upgrade".split()
)


class BadRequest(Exception):
    """The bytes are no valid proxy request. The message gives the reason."""


@dataclass(frozen=True)
class ProxyRequest:
    """A tunnel to a target, or with `request` a plain HTTP request to it."""

    target: NetworkTarget
    request: WireRequest | None = None

    @property
    def kind(self) -> Literal["tls", "http"]:
        return "http" if self.request else "tls"


async def read_proxy_request(stream: LinkStream, door: NetworkTarget | None) -> ProxyRequest:
    """Parse the request of a new connection. `door` is the target that its address stands for, None
    for the proxy's own. Bytes after a CONNECT head stay in the stream. Raises BadRequest.
    """
    first = await stream.read()
    stream.unread(first)
    if door is not None and first[:1] == TLS_HANDSHAKE:
        return ProxyRequest(door)
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
    try:
        head = await _read_event(connection, stream)
        if not isinstance(head, h11.Request) or len(head.headers) > MAX_HEADERS:
            raise BadRequest("that is no HTTP request")
        if door is None and head.method == b"CONNECT":
            return await _read_tunnel(connection, stream, head)
        body = await _read_body(connection, stream)
        return _build_plain_request(head, body, door)
    except (h11.RemoteProtocolError, UnicodeDecodeError, ValueError) as error:
        raise BadRequest(f"that is no HTTP request: {error}") from error


def encode_response(response: WireResponse, method: str, reason: str = "") -> bytes:
    """Encode a response as HTTP/1.1 with `connection: close`. `reason` is its reason phrase (RFC
    9112, section 4), by default the usual one: what a proxy's clients show of a refused CONNECT.
    """
    lines = [f"HTTP/1.1 {response.status} {reason or responses.get(response.status, 'Other')}"]
    for name, value in response.headers:
        if name.lower() not in _DROPPED and "\r" not in value and "\n" not in value:
            lines.append(f"{name}: {value}")
    if response.status not in NO_CONTENT:
        lines.append(f"content-length: {len(response.body)}")
    head = "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1", "replace")
    bodiless = method == "HEAD" or response.status in NO_CONTENT
    return head if bodiless else head + response.body


async def _read_event(connection: h11.Connection, stream: LinkStream) -> object:
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        if connection.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await stream.write(connection.send(go_on) or b"")
        connection.receive_data(await stream.read())


async def _read_tunnel(
    connection: h11.Connection, stream: LinkStream, head: h11.Request
) -> ProxyRequest:
    target = parse_target(head.target.decode("ascii"), None)
    if target is None or not isinstance(await _read_event(connection, stream), h11.EndOfMessage):
        raise BadRequest("CONNECT takes a host and a port, and no body")
    stream.unread(bytes(connection.trailing_data[0]))
    return ProxyRequest(target)


async def _read_body(connection: h11.Connection, stream: LinkStream) -> bytes:
    parts, size = [], 0
    while isinstance(event := await _read_event(connection, stream), h11.Data):
        size += len(event.data)
        if size > MAX_BODY:
            raise BadRequest(f"the request is larger than {MAX_BODY} bytes")
        parts.append(bytes(event.data))
    if not isinstance(event, h11.EndOfMessage):
        raise BadRequest("the request breaks off")
    return b"".join(parts)


def _build_plain_request(
    head: h11.Request, body: bytes, door: NetworkTarget | None
) -> ProxyRequest:
    headers = [(name.decode("ascii"), value.decode("latin-1")) for name, value in head.headers]
    written = head.target.decode("ascii")
    if door is not None:
        host = next((value for name, value in headers if name == "host"), "")
        if parse_target(host, 80) != door or not written.startswith("/"):
            raise BadRequest(f"this address stands for {door} and for no other host")
        written = f"http://{host}{written}"
    parts = urlsplit(written)
    target = parse_target(parts.netloc, 80)
    if parts.scheme != "http" or target is None or parts.fragment:
        raise BadRequest("a proxy takes CONNECT, or an absolute http URL")
    kept: Headers = tuple(
        (name, value)
        for name, value in headers
        if name not in _DROPPED and not name.startswith("proxy-")
    )
    return ProxyRequest(target, WireRequest(head.method.decode("ascii"), written, kept, body))
