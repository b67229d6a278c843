"""Environment of third-party servers' sessions: the permissions that they declare and a person
granted, with secrets of the vault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from orchestrator.approvals.grants import Grants, find_secret_name
from orchestrator.gateway.audit_writer import AuditWriter
from orchestrator.gateway.brokers import SOURCES
from registry.secrets.vault import Vault
from sandbox.broker.throttle import Throttle
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import Permission, parse_permissions
from sandbox.bundle.target import NetworkTarget
from sandbox.errors import PermissionMissing
from sandbox.killswitch import KillSwitch
from sandbox.thirdparty.egress import EgressProxy, Tunnel
from sandbox.thirdparty.environment import LaunchEnvironment
from sandbox.wire.exchange import Upstream
from sandbox.wire.policy import Origin


@dataclass
class GrantedEnvironmentProvider:
    """Outfits sessions of third-party servers; their connections go into the audit, one row each.

    A permission counts where the bundle declares it and a person granted it, or where the server is
    on `trial`: while a person adds it.
    """

    consents: Grants
    vault: Vault
    upstream: Callable[[frozenset[Origin]], Upstream]
    throttle: Throttle
    kill_switch: KillSwitch
    footnotes: AuditWriter
    _trials: set[str] = field(default_factory=set)

    def __call__(self, bundle: Bundle) -> LaunchEnvironment:
        """Raises PermissionMissing, for a secret that is not in the vault."""
        allowed = self._find_allowed(bundle)
        targets = frozenset(each.target for each in allowed if each.kind == "network")
        return LaunchEnvironment(
            environment=self._build_environment(bundle, allowed),
            paths=tuple(each for each in allowed if each.kind == "fs"),
            exit=self._build_exit(bundle.name, targets) if targets else None,
        )

    @contextmanager
    def allow_declared(self, name: str) -> Iterator[None]:
        """Let a server have all it declares, for the time of the block."""
        self._trials.add(name)
        try:
            yield
        finally:
            self._trials.discard(name)

    def _find_allowed(self, bundle: Bundle) -> tuple[Permission, ...]:
        declared = parse_permissions(bundle.permissions)
        if bundle.name in self._trials:
            return declared
        granted = self.consents.find_permissions(bundle.name)
        return tuple(
            each for each in declared if granted.get(str(each)) == find_secret_name(each, bundle)
        )

    def _build_environment(self, bundle: Bundle, allowed: tuple[Permission, ...]) -> dict[str, str]:
        names = {each.name for each in allowed if each.kind == "env"}
        given = {}
        for variable, name in (bundle.launch.secrets if bundle.launch else {}).items():
            if variable not in names:
                continue
            secret = self.vault.get(bundle.name, name) or self.vault.get(SOURCES, name)
            if secret is None:
                reason = (
                    f"the vault has no {name}. Run `toolwright secret set {bundle.name}.{name}`."
                )
                raise PermissionMissing(bundle.name, f"env:{variable}", reason)
            given[variable] = secret.reveal()
        return given

    def _build_exit(self, server: str, targets: frozenset[NetworkTarget]) -> EgressProxy:
        named = self.consents.find_private_hosts()
        private = frozenset(target for target in targets if str(target) in named)
        origins = frozenset(Origin("http", each.host, each.port) for each in private)
        return EgressProxy(
            targets,
            self.upstream(origins),
            private=private,
            told=lambda tunnel: self._note_tunnel(server, tunnel),
            kill_switch=self.kill_switch,
            throttle=self.throttle,
            server=server,
        )

    def _note_tunnel(self, server: str, tunnel: Tunnel) -> None:
        told = {**vars(tunnel), "seconds": round(tunnel.seconds, 3)}
        self.footnotes.add_row("tunnel", server, told)
