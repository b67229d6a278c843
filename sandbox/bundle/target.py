"""A host and port that a server may connect to."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

HTTPS = 443
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\Z")


@dataclass(frozen=True)
class NetworkTarget:
    """Names are lower-case ASCII (RFC 5891 for others) and without a final dot; IPv6 addresses are
    without brackets.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_named(self) -> bool:
        """Whether the host is a name and no address."""
        return not is_address(self.host)


def parse_target(text: str, default_port: int | None = HTTPS) -> NetworkTarget | None:
    """`HOST[:PORT]` as a target, or None where it is none; no port only where there is a default.

    Addresses in other than their usual form (`0x7f.1`, `2130706433`) are none.
    """
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/@\s]+)(?::([0-9]{1,5}))?", text)
    if match is None or (match[2] is None and default_port is None):
        return None
    port = int(match[2]) if match[2] else default_port or 0
    host = _parse_host(match[1])
    return NetworkTarget(host, port) if host and 0 < port < 65536 else None


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _parse_host(text: str) -> str:
    if text.startswith("["):
        return str(ipaddress.IPv6Address(text[1:-1])) if is_address(text[1:-1]) else ""
    try:
        name = text.encode("idna").decode() if not text.isascii() else text
    except UnicodeError:
        return ""
    name = name.lower().removesuffix(".")
    if is_address(name):
        return name
    # Some resolvers read a name that ends in a number as an address (WHATWG URL, section 3.5).
    last = name.rpartition(".")[2]
    numeric = last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last)
    return name if len(name) <= 253 and _NAME.match(name) and not numeric else ""
