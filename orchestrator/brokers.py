"""Brokers for live sessions: policy from the bundle, secrets from the vault, grants from people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from registry.records import Grant
from registry.store import Store
from registry.vault import Vault
from sandbox.brake import Brake
from sandbox.broker import Broker, WriteMode
from sandbox.bundle import Bundle, Credential
from sandbox.credentials import CredentialSource
from sandbox.exchange import Upstream
from sandbox.policy import Origin, origin_of, read_policy, tool_policy
from sandbox.throttle import Throttle


@dataclass(frozen=True)
class Brokers:
    """Makes the brokers of live sessions, one per session."""

    store: Store
    vault: Vault
    upstream: Callable[[frozenset[Origin]], Upstream]
    throttle: Throttle
    brake: Brake

    def reading(self, bundle: Bundle) -> Broker:
        """The broker of a read session: the bundle's read operations, nothing that writes."""
        return Broker(
            read_policy(bundle),
            self.upstream(self._private(bundle)),
            credentials=self.credentials(bundle),
            throttle=self.throttle,
            brake=self.brake,
        )

    def for_tool(self, bundle: Bundle, tool: str, writes: WriteMode) -> Broker:
        """The broker of a single-use session for one tool."""
        return Broker(
            tool_policy(bundle, tool),
            self.upstream(self._private(bundle)),
            credentials=self.credentials(bundle),
            throttle=self.throttle,
            brake=self.brake,
            writes=writes,
        )

    def credentials(self, bundle: Bundle) -> CredentialSource:
        """The bundle's credentials: its own secrets, else those of a source on the same origin."""
        declared = {credential.name: credential for credential in bundle.credentials}

        def secret(name: str) -> str | None:
            own = self.vault.get(bundle.name, name)
            if own is not None:
                return own.reveal()
            return self._of_source(bundle, declared[name]) if name in declared else None

        return CredentialSource(declared, secret)

    def _of_source(self, bundle: Bundle, credential: Credential) -> str | None:
        origin = origin_of(bundle.base_url)
        for source in self.store.sources():
            same_place = source.secret and origin is not None and origin_of(source.url) == origin
            if same_place and source.header.lower() == credential.parameter.lower():
                found = self.vault.get(SOURCES, source.secret)
                if found is not None:
                    return found.reveal()
        return None

    def _private(self, bundle: Bundle) -> frozenset[Origin]:
        return granted_private(bundle, self.store.grants())


SOURCES = "sources"
"""The vault's section for the secrets of sources, which belong to no server yet."""


def origins(bundle: Bundle) -> frozenset[Origin]:
    """Every origin that the bundle's tools may ask for."""
    urls = [request.url for tool in bundle.tools for request in tool.requests]
    found = {origin_of(url.split("{", 1)[0]) for url in {*urls, bundle.base_url}}
    return frozenset(origin for origin in found if origin)


def granted_private(bundle: Bundle, grants: Iterable[Grant]) -> frozenset[Origin]:
    """The bundle's origins that a person allowed though their address may be private."""
    named = {grant.origin for grant in grants if grant.kind == "private_host"}
    return frozenset(o for o in origins(bundle) if f"{o.host}:{o.port}" in named)
