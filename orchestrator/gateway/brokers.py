"""Brokers for live sessions: policy from the bundle, secrets from the vault, grants from people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.consents import Consents
from orchestrator.footnotes import Footnotes
from registry.vault import Secret, Vault
from sandbox.asked import is_asked
from sandbox.brake import Brake
from sandbox.broker import Broker, WriteMode
from sandbox.bundle import Bundle, Credential, ToolDefinition
from sandbox.credentials import CredentialSource, TokenExchange, Wallet
from sandbox.exchange import Upstream
from sandbox.hostaccess import HostAccess
from sandbox.localaccess import LocalAccess
from sandbox.netaccess import NetworkAccess
from sandbox.permissions import Permission, is_readable, permissions_of
from sandbox.policy import Origin, origin_of, read_policy, token_origins, tool_policy
from sandbox.sender import Paced
from sandbox.target import parse_target
from sandbox.throttle import Throttle


@dataclass(frozen=True)
class Brokers:
    """Makes the brokers of live sessions, one per session."""

    consents: Consents
    vault: Vault
    upstream: Callable[[frozenset[Origin]], Upstream]
    throttle: Throttle
    brake: Brake
    wallet: Wallet = field(default_factory=Wallet)
    private: tuple[Path, ...] = ()
    footnotes: Footnotes | None = None

    def reading(self, bundle: Bundle) -> Broker:
        """The broker of a read session: the bundle's read operations, nothing that writes."""
        return Broker(
            read_policy(bundle),
            self.upstream(self._private(bundle)),
            credentials=self.credentials(bundle),
            throttle=self.throttle,
            brake=self.brake,
            local=self._host(bundle, [t for t in bundle.tools if t.access == "read"]),
            paced=Paced(bundle.name, bundle.paces),
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
            local=self._host(bundle, [bundle.tool(tool)]),
            paced=Paced(bundle.name, bundle.paces),
        )

    def _host(self, bundle: Bundle, tools: Sequence[ToolDefinition]) -> HostAccess:
        """What these tools may ask for besides HTTP."""
        writing = any(tool.access == "write" for tool in tools)
        declared = permissions_of(
            request.url for tool in tools for request in tool.requests if is_asked(request)
        )

        def granted() -> tuple[Permission, ...]:
            given = self.consents.permissions(bundle.name)
            return tuple(each for each in declared if str(each) in given)

        def private() -> frozenset[tuple[str, int]]:
            found = map(parse_target, self.consents.private_hosts())
            return frozenset((target.host, target.port) for target in found if target)

        return HostAccess(self._local(bundle, writing), NetworkAccess(granted, private))

    def _local(self, bundle: Bundle, writing: bool) -> LocalAccess:
        """Files and values of this machine that the bundle declares and a person granted it; where
        its tools take files as arguments, those that a person let it read.
        """
        declared = permissions_of(bundle.permissions)

        def granted() -> tuple[Permission, ...]:
            given = self.consents.permissions(bundle.name)
            allowed = [each for each in declared if str(each) in given]
            if any(tool.files for tool in bundle.tools):
                allowed += filter(is_readable, permissions_of(given))
            return tuple(each if writing else replace(each, writable=False) for each in allowed)

        def value(name: str) -> str | None:
            secret = self.vault.get(bundle.name, name)
            return secret.reveal() if secret else None

        return LocalAccess(granted, value, self.private)

    def given(self, bundle: Bundle) -> frozenset[object]:
        """What of its grants a running session holds on to: once it differs, a new one is due."""
        private = frozenset[object](self._private(bundle))
        if bundle.launch is None:
            return private
        named = self.consents.private_hosts()
        return private | self.consents.permissions(bundle.name).items() | named

    def credentials(self, bundle: Bundle) -> CredentialSource:
        """The bundle's credentials: its own secrets, else those of a source on the same origin."""
        declared = {credential.name: credential for credential in bundle.credentials}

        def secret(name: str) -> str | None:
            own = self.vault.get(bundle.name, name)
            if own is not None:
                return own.reveal()
            return self._of_source(bundle, declared[name]) if name in declared else None

        def keep(name: str, value: str) -> None:
            self.vault.put(bundle.name, name, Secret(value))

        def may_ask(origin: Origin) -> bool:
            return f"{origin.host}:{origin.port}" in self.consents.hosts()

        def told(asked: TokenExchange) -> None:
            if self.footnotes is not None:
                self.footnotes.add("token", bundle.name, vars(asked))

        return CredentialSource(
            declared, secret, bundle.name, self.wallet, keep, may_ask, told=told
        )

    def _of_source(self, bundle: Bundle, credential: Credential) -> str | None:
        origin = origin_of(bundle.base_url)
        for source in self.consents.sources():
            same_place = source.secret and origin is not None and origin_of(source.url) == origin
            if same_place and source.header.lower() == credential.parameter.lower():
                found = self.vault.get(SOURCES, source.secret)
                if found is not None:
                    return found.reveal()
        return None

    def _private(self, bundle: Bundle) -> frozenset[Origin]:
        return granted_private(bundle, self.consents)


SOURCES = "sources"
"""The vault's section for the secrets of sources, which belong to no server yet."""


def origins(bundle: Bundle) -> frozenset[Origin]:
    """Every origin that the bundle's tools may ask for."""
    urls = [request.url for tool in bundle.tools for request in tool.requests]
    found = {origin_of(url.split("{", 1)[0]) for url in {*urls, bundle.base_url}}
    return frozenset(origin for origin in found if origin)


def granted_private(bundle: Bundle, consents: Consents) -> frozenset[Origin]:
    """The bundle's origins that a person allowed though their address may be private."""
    return frozenset(
        filter(consents.is_private, origins(bundle) | token_origins(bundle.credentials))
    )
