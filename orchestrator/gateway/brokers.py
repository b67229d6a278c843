"""Building the brokers of live sessions, from the bundle's policy, the vault's secrets and people's
grants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.approvals.grants import Grants
from orchestrator.gateway.audit_writer import AuditWriter
from registry.models import Grant
from registry.secrets.vault import Secret, Vault
from sandbox.broker.broker import Broker
from sandbox.broker.host.local import LocalAccess
from sandbox.broker.host.network import HostAccess, NetworkAccess
from sandbox.broker.sender import ServerPaces
from sandbox.broker.throttle import Throttle
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.permissions import (
    Permission,
    is_permission_request,
    is_readable,
    parse_permissions,
)
from sandbox.bundle.target import parse_target
from sandbox.credentials.source import CredentialCache, CredentialSource, TokenExchange
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Upstream, WriteMode
from sandbox.wire.policy import (
    Origin,
    build_read_policy,
    build_tool_policy,
    list_token_origins,
    parse_origin,
    parse_template_origin,
)

MAX_KEPT = 64


@dataclass(frozen=True)
class _Given:
    """What sessions with the bundle hold on to while these are the grants that count: `upstream` is
    their way out, `held` changes whenever anything does that a running session would not notice.
    """

    grants: tuple[Grant, ...]
    bundle: Bundle
    upstream: Upstream
    held: frozenset[object]


@dataclass(frozen=True)
class BrokerFactory:
    """Makes the brokers of live sessions, one per session."""

    consents: Grants
    vault: Vault
    upstream: Callable[[frozenset[Origin]], Upstream]
    throttle: Throttle
    kill_switch: KillSwitch
    wallet: CredentialCache = field(default_factory=CredentialCache)
    private: tuple[Path, ...] = ()
    footnotes: AuditWriter | None = None
    _known: dict[str, _Given] = field(default_factory=dict)

    def build_read_broker(self, bundle: Bundle) -> Broker:
        """The broker of a read session: the bundle's read operations, nothing that writes."""
        return Broker(
            build_read_policy(bundle),
            self._load_held_grants(bundle).upstream,
            credentials=self.build_credentials(bundle),
            throttle=self.throttle,
            kill_switch=self.kill_switch,
            local=self._build_host_access(bundle, [t for t in bundle.tools if t.access == "read"]),
            paced=ServerPaces(bundle.name, bundle.paces),
        )

    def build_tool_broker(self, bundle: Bundle, tool: str, writes: WriteMode) -> Broker:
        """The broker of a single-use session for one tool."""
        return Broker(
            build_tool_policy(bundle, tool),
            self._load_held_grants(bundle).upstream,
            credentials=self.build_credentials(bundle),
            throttle=self.throttle,
            kill_switch=self.kill_switch,
            writes=writes,
            local=self._build_host_access(bundle, [bundle.get_tool(tool)]),
            paced=ServerPaces(bundle.name, bundle.paces),
        )

    def _build_host_access(self, bundle: Bundle, tools: Sequence[ToolDefinition]) -> HostAccess:
        """What these tools may ask for besides HTTP."""
        writing = any(tool.access == "write" for tool in tools)

        def granted() -> tuple[Permission, ...]:
            asked = (
                each for tool in tools for each in tool.requests if is_permission_request(each)
            )
            declared = parse_permissions(request.url for request in asked)
            given = self.consents.find_permissions(bundle.name)
            return tuple(each for each in declared if str(each) in given)

        def private() -> frozenset[tuple[str, int]]:
            found = map(parse_target, self.consents.find_private_hosts())
            return frozenset((target.host, target.port) for target in found if target)

        return HostAccess(
            self._build_local_access(bundle, writing), NetworkAccess(granted, private)
        )

    def _build_local_access(self, bundle: Bundle, writing: bool) -> LocalAccess:
        """Files and values of this machine that the bundle declares and a person granted it; where
        its tools take files as arguments, those that a person let it read.
        """

        def granted() -> tuple[Permission, ...]:
            given = self.consents.find_permissions(bundle.name)
            declared = parse_permissions(bundle.permissions)
            allowed = [each for each in declared if str(each) in given]
            if any(tool.files for tool in bundle.tools):
                allowed += filter(is_readable, parse_permissions(given))
            return tuple(each if writing else replace(each, writable=False) for each in allowed)

        def value(name: str) -> str | None:
            secret = self.vault.get(bundle.name, name)
            return secret.reveal() if secret else None

        return LocalAccess(granted, value, self.private)

    def find_held_grants(self, bundle: Bundle) -> frozenset[object]:
        """What of its grants a running session holds on to: once it differs, a new one is due."""
        return self._load_held_grants(bundle).held

    def _load_held_grants(self, bundle: Bundle) -> _Given:
        """Worked out again only where anything was granted or taken away since."""
        grants, known = self.consents.find_grants(), self._known.get(bundle.name)
        if known is None or known.grants is not grants or known.bundle is not bundle:
            private = find_granted_private(bundle, self.consents)
            upstream, held = self.upstream(private), self._held(bundle, private)
            while len(self._known) >= MAX_KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[bundle.name] = _Given(grants, bundle, upstream, held)
        return known

    def _held(self, bundle: Bundle, private: frozenset[Origin]) -> frozenset[object]:
        if bundle.launch is None:
            return frozenset(private)
        named = self.consents.find_private_hosts()
        return private | self.consents.find_permissions(bundle.name).items() | named

    def build_credentials(self, bundle: Bundle) -> CredentialSource:
        """The bundle's credentials: its own secrets, else those of a source on the same origin."""
        declared = {credential.name: credential for credential in bundle.credentials}

        def secret(name: str) -> str | None:
            own = self.vault.get(bundle.name, name)
            if own is not None:
                return own.reveal()
            return self._find_source_secret(bundle, declared[name]) if name in declared else None

        def keep(name: str, value: str) -> None:
            self.vault.put(bundle.name, name, Secret(value))

        def may_ask(origin: Origin) -> bool:
            return f"{origin.host}:{origin.port}" in self.consents.find_hosts()

        def told(asked: TokenExchange) -> None:
            if self.footnotes is not None:
                self.footnotes.add_row("token", bundle.name, vars(asked))

        return CredentialSource(
            declared, secret, bundle.name, self.wallet, keep, may_ask, told=told
        )

    def _find_source_secret(self, bundle: Bundle, credential: Credential) -> str | None:
        origin = parse_origin(bundle.base_url)
        for source in self.consents.find_sources():
            same_place = source.secret and origin is not None and parse_origin(source.url) == origin
            if same_place and source.header.lower() == credential.parameter.lower():
                found = self.vault.get(SOURCES, source.secret)
                if found is not None:
                    return found.reveal()
        return None


SOURCES = "sources"
"""The vault's section for the secrets of sources, which belong to no server yet."""


def find_origins(bundle: Bundle) -> frozenset[Origin]:
    """Every origin that the bundle's tools may ask for."""
    urls = [request.url for tool in bundle.tools for request in tool.requests]
    found = {parse_template_origin(url) for url in {*urls, bundle.base_url}}
    return frozenset(origin for origin in found if origin)


def find_granted_private(bundle: Bundle, consents: Grants) -> frozenset[Origin]:
    """The bundle's origins that a person allowed though their address may be private."""
    return frozenset(
        filter(consents.is_private, find_origins(bundle) | list_token_origins(bundle.credentials))
    )
