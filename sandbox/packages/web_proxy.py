"""The web proxy of a user whose machine reaches registries through one."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from sandbox.bundle.target import NetworkTarget, parse_target
from sandbox.errors import UpstreamUnreachable

MAX_HEAD = 16 * 1024
VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


@dataclass(frozen=True)
class WebProxy:
    """An HTTP proxy that tunnels. `authorization` is sent to it, and `direct` are the hosts that it
    is not asked for, as NO_PROXY has them.
    """

    target: NetworkTarget
    authorization: str = ""
    direct: str = ""

    def serves(self, host: str) -> bool:
        names = [name.strip().lstrip(".").lower() for name in self.direct.split(",")]
        return not any(name == "*" or f".{host}".endswith(f".{name}") for name in names if name)

    async def connect(
        self, target: NetworkTarget
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A tunnel to the target (RFC 9110, section 9.3.6). Raises UpstreamUnreachable."""
        try:
            reader, writer = await asyncio.open_connection(
                self.target.host, self.target.port, limit=MAX_HEAD
            )
        except OSError as error:
            raise UpstreamUnreachable(f"the proxy {self.target}: {error}") from error
        head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
        if self.authorization:
            head += f"Proxy-Authorization: {self.authorization}\r\n"
        writer.write(f"{head}\r\n".encode("ascii"))
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
            status = answer.split(b" ", 2)[1:2]
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise UpstreamUnreachable(f"the proxy {self.target} does not answer") from error
        if status != [b"200"]:
            writer.close()
            told = answer.partition(b"\r\n")[0].decode("ascii", "replace")
            raise UpstreamUnreachable(f"the proxy {self.target} refuses {target}: {told[:200]}")
        return reader, writer


def load_web_proxy(environ: Mapping[str, str], named: str = "") -> WebProxy | None:
    """The proxy that settings or the environment name for https; None if there is none that speaks
    plain HTTP itself.
    """
    url = named or next((environ[name] for name in VARIABLES if environ.get(name)), "")
    parts = urlsplit(url if "//" in url else f"http://{url}")
    user, _, place = parts.netloc.rpartition("@")
    target = parse_target(place, 80) if url and parts.scheme == "http" else None
    if target is None:
        return None
    login = base64.b64encode(unquote(user).encode()).decode()
    direct = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return WebProxy(target, f"Basic {login}" if user else "", direct)
