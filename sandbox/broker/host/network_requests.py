"""Network requests of a forged server beside HTTP, in the form of wire requests.

`READ tls://HOST:PORT` asks for the certificate there; `READ dns:NAME?type=A`, or
`dns://SERVER/NAME?type=A`, is a DNS query (URIs of RFC 4501); `TALK tcp://HOST:PORT` sends a body
and reads the answer. Each is one exchange, recorded and replayed like a request to an API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from sandbox.bundle.target import NetworkTarget, parse_target
from sandbox.errors import NetworkRefused
from sandbox.wire.exchange import WireRequest

READ, TALK = "READ", "TALK"
TLS, DNS, TCP = "tls://", "dns:", "tcp://"
MAX_DATA, MAX_ANSWER, MAX_UNTIL = 64 * 1024, 1024 * 1024, 200
DNS_PORT = 53
TYPES = frozenset(
    "A AAAA CAA CNAME DNSKEY DS HTTPS MX NAPTR NS PTR SOA SRV SSHFP SVCB TLSA TXT".split()
)
MAX_NAME = 253
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\Z")


def parse_network_request(params: Mapping[str, Any], body: bytes) -> WireRequest | None:
    """Parse a `toolwright/request` of kind `dns`, `tls` or `tcp`; None if it is malformed."""
    if params.get("kind") == "dns":
        return _parse_dns_request(params)
    host, port = params.get("host"), params.get("port")
    if not isinstance(host, str) or not isinstance(port, int) or isinstance(port, bool):
        return None
    target = parse_target(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    if target is None:
        return None
    if params.get("kind") == "tls":
        return WireRequest(READ, f"{TLS}{target}")
    until, most = params.get("until", ""), params.get("max_bytes", MAX_DATA)
    if not isinstance(until, str) or len(until) > MAX_UNTIL or not isinstance(most, int):
        return None
    if len(body) > MAX_DATA or not 0 < most <= MAX_ANSWER:
        return None
    headers = (("until", quote(until, safe="")), ("max-bytes", str(most)))
    return WireRequest(TALK, f"{TCP}{target}", headers, body)


def describe_request(request: WireRequest) -> tuple[str, dict[str, Any]]:
    """The function of `toolwright.network` that makes such a request, and its arguments."""
    if request.url.startswith(DNS):
        name, kind, server = parse_dns_url(request.url)
        place = "" if server is None else str(server)
        return "network.dns", {"name": name, "type": kind, "server": place}
    target = parse_target_url(request.url)
    place_of: dict[str, Any] = {"host": target.host, "port": target.port}
    if request.url.startswith(TLS):
        return "network.tls_peer", place_of
    until = unquote(request.get_header("until") or "")
    most = int(request.get_header("max-bytes") or MAX_DATA)
    data = request.body.decode("utf-8", "replace")
    return "network.tcp", {**place_of, "data": data, "until": until, "max_bytes": most}


def is_network(request: WireRequest) -> bool:
    return request.url.startswith((TLS, DNS, TCP))


def _parse_dns_request(params: Mapping[str, Any]) -> WireRequest | None:
    name, kind, server = params.get("name"), params.get("type", "A"), params.get("server", "")
    if not isinstance(name, str) or not isinstance(kind, str) or not isinstance(server, str):
        return None
    plain = normalize_question(name, kind)
    target = parse_target(server, DNS_PORT) if server else None
    if plain is None or (server and target is None):
        return None
    place = f"{DNS}//{target}/" if target else DNS
    return WireRequest(READ, f"{place}{quote(plain, safe='')}?type={kind.upper()}")


def normalize_question(name: str, kind: str) -> str | None:
    """The name in lower case, IDNA-encoded and without a final dot; None if the name is invalid or
    the type not among `TYPES`.
    """
    try:
        plain = name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return None
    plain = plain.lower().removesuffix(".")
    fits = len(plain) <= MAX_NAME and _NAME.match(plain)
    return plain if fits and kind.upper() in TYPES else None


def parse_dns_url(url: str) -> tuple[str, str, NetworkTarget | None]:
    """The name, the type and the server (None: this machine's) of a `dns:` URL."""
    parts = urlsplit(url)
    server = parse_target(parts.netloc, DNS_PORT) if parts.netloc else None
    kind = dict(parse_qsl(parts.query)).get("type", "A")
    return unquote(parts.path.removeprefix("/")), kind, server


def parse_target_url(url: str) -> NetworkTarget:
    """The host and port of a `tls:` or `tcp:` URL. Raises NetworkRefused if it names none."""
    found = parse_target(url.partition("://")[2], None)
    if found is None:
        raise NetworkRefused(url[:200])
    return found
