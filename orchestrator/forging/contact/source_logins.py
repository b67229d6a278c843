"""The headers that go with a source's URL: its secret, or of a log-in an access token."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from orchestrator.approvals.grants import Grants
from orchestrator.gateway.brokers import SOURCES
from registry.models import DocumentationSource
from registry.secrets.vault import Secret, Vault
from sandbox.bundle.credential import Credential
from sandbox.clock import SystemClock
from sandbox.credentials.oauth_secret import carry_account, is_login, parse_oauth_secret
from sandbox.credentials.source import CredentialSource, SigningContext, TokenExchange
from sandbox.credentials.uses import SecretUse
from sandbox.errors import Frozen, SandboxError
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Headers, Upstream, WireRequest, WireResponse
from sandbox.wire.policy import Origin, parse_origin

AUTHORIZATION = "Authorization"
RENEWAL_SECONDS = 20.0


@dataclass(frozen=True)
class SourceLogins:
    """Reads the secrets of sources. `told` receives a record of each request for a token."""

    consents: Grants
    vault: Vault
    kill_switch: KillSwitch
    upstream: Callable[[frozenset[Origin]], Upstream]
    told: Callable[[TokenExchange], None] = lambda exchange: None

    def build_headers(self, source: DocumentationSource) -> Headers:
        """The header of a source, with its secret; of a log-in the access token that it has, which
        may have expired, and nothing else of it.
        """
        text = self._read(source.secret) if source.secret else ""
        if not text:
            return ()
        if not is_login(text):
            return ((source.header, text),)
        token = parse_oauth_secret(text, None).access_token
        return ((AUTHORIZATION, f"Bearer {token}"),) if token else ()

    async def renew_headers(self, source: DocumentationSource) -> Headers:
        """The header of a source, with a token that has not expired where its log-in still gives
        one. Raises Frozen.
        """
        before = await asyncio.to_thread(self.build_headers, source)
        text = await asyncio.to_thread(self._read, source.secret)
        origin = parse_origin(source.url)
        if origin is None or not is_login(text):
            return before
        context = SigningContext(origin, SystemClock(), self._send)
        try:
            async with asyncio.timeout(RENEWAL_SECONDS):
                signed = await self._build_credentials(source).sign_request(
                    WireRequest("GET", source.url), (source.secret,), context
                )
        except Frozen:
            raise
        except (SandboxError, TimeoutError):
            # The API refuses what has expired, and that says how to log in again.
            return before
        token = signed.request.get_header(AUTHORIZATION)
        return ((AUTHORIZATION, token),) if token else before

    def _build_credentials(self, source: DocumentationSource) -> CredentialSource:
        name, origin = source.secret, parse_origin(source.url)
        own = SecretUse(origin, "bearer") if origin else None
        uses = self.consents.find_secret_uses(SOURCES, name)

        def find_obstacle(_: str, use: SecretUse) -> str:
            fits = use == own or str(use) in uses
            return "" if fits else f"the log-in of {source.url} was not let go to {use}"

        return CredentialSource(
            {name: Credential(name, "bearer")},
            self._read,
            SOURCES,
            keep=self._keep,
            may_ask=lambda asked: f"{asked.host}:{asked.port}" in self.consents.find_hosts(),
            told=self.told,
            find_obstacle=find_obstacle,
            hold=partial(self.vault.lock_secret, SOURCES),
        )

    def _read(self, name: str) -> str:
        held = self.vault.get(SOURCES, name)
        return held.reveal() if held is not None else ""

    def _keep(self, name: str, value: str) -> None:
        before = self._read(name)
        if before:
            self.vault.put(SOURCES, name, Secret(carry_account(before, value)))

    async def _send(self, request: WireRequest) -> WireResponse:
        self.kill_switch.raise_if_engaged()
        origin = parse_origin(request.url)
        private = frozenset({origin} if origin and self.consents.is_private(origin) else ())
        return await self.upstream(private).send(request)
