"""The network besides HTTP, as far as `dns:`, `tls:` and `tcp:` permissions go and a person granted
them.
"""

from __future__ import annotations

import json

from .calls import current_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER = 65536


def dns(name: str, type: str = "A", server: str = "") -> dict[str, Any]:
    """What the name system says: `answers` (texts, such as `10 mail.example.com.`), `rcode` (such
    as NOERROR or NXDOMAIN) and `ttl` (seconds; None without answers). `server` is `HOST[:PORT]` of
    a name server, "" for this machine's. Raises RequestFailed.
    """
    return _told("dns", {"name": name, "type": type, "server": server})


def tls_peer(host: str, port: int = 443) -> dict[str, Any]:
    """The certificate that is shown in TLS: `subject`, `issuer`, `not_before` and `not_after` (RFC
    3339), `names`, `serial`, `fingerprint_sha256`, whether it is `verified` for the host or else
    the `problem`, and the `protocol`. Raises RequestFailed.
    """
    return _told("tls", {"host": host, "port": port})


def tcp(host: str, port: int, data: str | bytes, until: str = "", max_bytes: int = ANSWER) -> bytes:
    """Send data and give what comes back: until that text, the end, or so many bytes (at most
    1 MiB). Raises RequestFailed.
    """
    content = data.encode() if isinstance(data, str) else data
    wanted = {"host": host, "port": port, "until": until, "max_bytes": max_bytes}
    return current_call().ask("tcp", wanted, content).data


def _told(kind: str, wanted: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(current_call().ask(kind, wanted).data)
    return told
