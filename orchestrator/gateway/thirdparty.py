"""What a third-party server may have: what it declares, a person granted, and the vault holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from orchestrator.brokers import SOURCES
from orchestrator.consents import Consents, secret_of
from orchestrator.footnotes import Footnotes
from registry.vault import Vault
from sandbox.brake import Brake
from sandbox.bundle import Bundle
from sandbox.egress import Exit, Tunnel
from sandbox.errors import PermissionMissing
from sandbox.exchange import Upstream
from sandbox.outfit import Outfit
from sandbox.permissions import Permission, permissions_of
from sandbox.policy import Origin
from sandbox.target import Target
from sandbox.throttle import Throttle


@dataclass
class Outfitting:
    """Outfits sessions of third-party servers; their connections go into the audit, one row each.

    A permission counts where the bundle declares it and a person granted it, or where the server is
    on `trial`: while a person adds it.
    """

    consents: Consents
    vault: Vault
    upstream: Callable[[frozenset[Origin]], Upstream]
    throttle: Throttle
    brake: Brake
    footnotes: Footnotes
    _trials: set[str] = field(default_factory=set)

    def __call__(self, bundle: Bundle) -> Outfit:
        """Raises PermissionMissing, for a secret that is not in the vault."""
        allowed = self._allowed(bundle)
        targets = frozenset(each.target for each in allowed if each.kind == "network")
        return Outfit(
            environment=self._environment(bundle, allowed),
            paths=tuple(each for each in allowed if each.kind == "fs"),
            exit=self._exit(bundle.name, targets) if targets else None,
        )

    @contextmanager
    def trial(self, name: str) -> Iterator[None]:
        """Let a server have all it declares, for the time of the block."""
        self._trials.add(name)
        try:
            yield
        finally:
            self._trials.discard(name)

    def _allowed(self, bundle: Bundle) -> tuple[Permission, ...]:
        declared = permissions_of(bundle.permissions)
        if bundle.name in self._trials:
            return declared
        granted = self.consents.permissions(bundle.name)
        return tuple(each for each in declared if granted.get(str(each)) == secret_of(each, bundle))

    def _environment(self, bundle: Bundle, allowed: tuple[Permission, ...]) -> dict[str, str]:
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

    def _exit(self, server: str, targets: frozenset[Target]) -> Exit:
        named = self.consents.private_hosts()
        private = frozenset(target for target in targets if str(target) in named)
        origins = frozenset(Origin("http", each.host, each.port) for each in private)
        return Exit(
            targets,
            self.upstream(origins),
            private=private,
            told=lambda tunnel: self._note(server, tunnel),
            brake=self.brake,
            throttle=self.throttle,
        )

    def _note(self, server: str, tunnel: Tunnel) -> None:
        told = {**vars(tunnel), "seconds": round(tunnel.seconds, 3)}
        self.footnotes.add("tunnel", server, told)
