"""The network of a log-in: requests of our own, to the hosts that the person was shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from orchestrator.approvals.grants import Grants
from orchestrator.errors import LoginFailed
from orchestrator.logins.metadata import is_safe_url
from sandbox.broker.live import LiveHttp
from sandbox.credentials.source import CANCELLED, TokenExchange
from sandbox.credentials.token_endpoint import MAX_ANSWER
from sandbox.errors import SandboxError
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import DEFAULT_PORTS, Origin, parse_origin

SECONDS = 30.0
MAX_PATH = 500


class LoginNetwork:
    """Sends a log-in's requests, each an audit row. `search` asks any public host for metadata, and
    a private one that a person allowed; `ask` only the origins of `allow`.
    """

    def __init__(
        self,
        consents: Grants,
        kill_switch: KillSwitch,
        told: Callable[[TokenExchange], None],
        credential: str,
    ) -> None:
        self._consents, self._kill_switch = consents, kill_switch
        self._told, self._credential = told, credential
        self._allowed: frozenset[Origin] = frozenset()
        self._pools: dict[frozenset[Origin], LiveHttp] = {}

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()

    def allow(self, origins: Iterable[Origin]) -> None:
        """Let these origins be asked, also where their addresses are private: a person said so."""
        self._allowed = frozenset(origins)

    async def search(self, request: WireRequest) -> WireResponse:
        """Send a request that carries nothing secret."""
        origin = parse_origin(request.url)
        allowed = {origin} if origin and self._consents.is_private(origin) else set()
        return await self._send(request, frozenset(allowed))

    async def ask(self, request: WireRequest) -> WireResponse:
        """Send a request that may carry codes, tokens and secrets of the client."""
        origin = parse_origin(request.url)
        if origin not in self._allowed or not is_safe_url(request.url):
            raise LoginFailed(f"{origin} is none of the hosts that you were shown; not asked")
        return await self._send(request, self._allowed)

    async def _send(self, request: WireRequest, private: frozenset[Origin]) -> WireResponse:
        self._kill_switch.raise_if_engaged()
        if private not in self._pools:
            self._pools[private] = LiveHttp(private, response_bytes=MAX_ANSWER)
        started, status, failure = time.monotonic(), None, CANCELLED
        try:
            async with asyncio.timeout(SECONDS):
                answer = await self._pools[private].send(request)
            status, failure = answer.status, ""
            return answer
        except (SandboxError, TimeoutError) as error:
            failure = type(error).__name__
            raise
        finally:
            self._told(self._describe(request, status, failure, time.monotonic() - started))

    def _describe(
        self, request: WireRequest, status: int | None, failure: str, seconds: float
    ) -> TokenExchange:
        url = urlsplit(request.url)
        return TokenExchange(
            credential=self._credential,
            host=f"{url.hostname}:{url.port or DEFAULT_PORTS[url.scheme]}",
            method=request.method,
            path=url.path[:MAX_PATH],
            status=status,
            failure=failure,
            elapsed_ms=round(seconds * 1000, 3),
        )
