"""The way out without a broker: an HTTP client of the runtime's own."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import zlib
from urllib.parse import urljoin, urlsplit

from .answers import Answer
from .credentials import EnvironmentCredentials
from .errors import RequestFailed
from .requests import WireRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .bundle import Bundle
    from .calls import Call

SECONDS = 50.0
"""For one request with its redirects: common MCP clients give a call up after 60."""
MAX_ANSWER = 16 * 1024 * 1024
MAX_REDIRECTS = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PORTS = {"http": 80, "https": 443}
BASE_URL = "TOOLWRIGHT_BASE_URL"


class StandaloneTransport:
    """Sends by itself, to the base URL's origin and the origins a tool declares, nowhere else."""

    checks_arguments = False

    def __init__(self, bundle: Bundle, environment: Mapping[str, str]) -> None:
        self.base_url = environment.get(BASE_URL) or bundle.base_url
        declared = bundle.manifest.get("credentials") or ()
        self._credentials = EnvironmentCredentials(bundle.name, declared, environment)
        self._environment = environment
        self._permissions = bundle.manifest.get("permissions") or ()

    def send(self, request: WireRequest, call: Call) -> Answer:
        """Raises RequestFailed: refused, timeout, unreachable or too_large."""
        patterns = call.tool.definition.get("requests") or ()
        allowed = {_origin(self.base_url), *(_origin(pattern["url"]) for pattern in patterns)}
        if _origin(request.url) is None or _origin(request.url) not in allowed:
            raise RequestFailed(
                "refused", f"{request.url[:200]} is not among the declared requests"
            )
        signed = self._credentials.add(request, call.tool.definition.get("security") or ())
        return self._followed(signed)

    def ask(self, kind: str, wanted: Mapping[str, Any], body: bytes, call: Call) -> Answer:
        """Raises RequestFailed: nobody grants files here, and values only by our environment."""
        name = wanted.get("name", "")
        if kind == "env" and f"env:{name}" in self._permissions and name in self._environment:
            return Answer(200, [], self._environment[name].encode())
        raise RequestFailed(
            "refused",
            f"{kind} {name or wanted.get('path') or wanted.get('tool', '')} was not granted",
        )

    def _followed(self, request: WireRequest) -> Answer:
        answer = _exchange(request)
        for _ in range(MAX_REDIRECTS):
            target = urljoin(request.url, answer.headers.get("location", ""))
            stays = target != request.url and _origin(target) == _origin(request.url)
            if answer.status not in REDIRECTS or request.method not in ("GET", "HEAD") or not stays:
                break
            request = WireRequest(request.method, target.partition("#")[0], request.headers)
            answer = _exchange(request)
        return answer


def _origin(url: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(url)
        if parts.scheme not in PORTS or not parts.hostname or "@" in parts.netloc:
            return None
        return parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]
    except ValueError:
        return None


def _exchange(request: WireRequest) -> Answer:
    connection = _connection(request.url)
    expired = threading.Event()
    watch = threading.Timer(SECONDS, _cut, (connection, expired))
    watch.daemon = True
    watch.start()
    try:
        return _sent(connection, request)
    except (OSError, http.client.HTTPException, ValueError, zlib.error) as error:
        if expired.is_set() or isinstance(error, TimeoutError):
            raise RequestFailed("timeout", f"no whole answer within {SECONDS:g} s") from error
        reason = f"{type(error).__name__}: {error}"[:500]
        raise RequestFailed("unreachable", reason) from error
    finally:
        watch.cancel()
        connection.close()


def _connection(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=SECONDS, context=context
        )
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)


def _cut(connection: http.client.HTTPConnection, expired: threading.Event) -> None:
    # A peer that sends a byte now and then never runs into a socket's own timeout.
    expired.set()
    if connection.sock is not None:
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def _sent(connection: http.client.HTTPConnection, request: WireRequest) -> Answer:
    parts = urlsplit(request.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.putrequest(request.method, target, skip_accept_encoding=True)
    for name, value in request.headers:
        connection.putheader(name, value.encode())
    connection.putheader("accept-encoding", "identity")
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        connection.putheader("content-length", str(len(request.body)))
    connection.endheaders(request.body or None)
    # The response takes the socket over when the peer closes after it; the watch still needs it.
    held = connection.sock
    response = connection.getresponse()
    connection.sock = held
    data = _bounded(_chunks(response))
    encoding = (response.getheader("content-encoding") or "").strip().lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        data = _inflated(data)
    return Answer(response.status, response.getheaders(), data)


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while chunk := response.read1(1 << 16):
        yield chunk


def _bounded(chunks: Iterator[bytes]) -> bytes:
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > MAX_ANSWER:
            raise RequestFailed("too_large", f"the answer is larger than {MAX_ANSWER} bytes")
    return bytes(data)


def _inflated(data: bytes) -> bytes:
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
    plain = inflater.decompress(data, MAX_ANSWER + 1)
    if len(plain) > MAX_ANSWER:
        raise RequestFailed("too_large", f"the answer is larger than {MAX_ANSWER} bytes")
    return plain
