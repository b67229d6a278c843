"""What people granted, as it counts: what the known key signed and nobody took away since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from registry.jsontext import canonical
from registry.records import Grant, GrantKind, Source
from registry.signing import fits
from registry.store import Store
from sandbox.bundle import Bundle
from sandbox.permissions import Permission
from sandbox.policy import Origin

CONFIRM = "look at them: `toolwright grant --confirm` signs them with your PIN"
REVOKED = "it was revoked"
MAX_REMEMBERED = 4096
PACKAGE = "pypi:"
"""How the grant of a package begins."""


@dataclass
class Consents:
    """Reads the grants and leaves out those that were written, edited or put back by hand.

    `key` tells the public key of the person, "" where it is missing or in doubt: then nothing is
    granted.
    """

    store: Store
    key: Callable[[], str]
    _fitting: set[tuple[str, str, str]] = field(default_factory=set)
    _counted: tuple[int, tuple[Grant, ...]] = (-1, ())

    def grants(self, kind: GrantKind | None = None) -> tuple[Grant, ...]:
        """The grants that count, of one kind or of all, by origin. Costs microseconds while nobody
        has written to the database since.
        """
        version = self.store.data_version()
        if self._counted[0] != version:
            found = self.store.grants()
            key = self.key() if found else ""
            self._counted = version, tuple(g for g in found if not self._problem(g, key))
        return tuple(g for g in self._counted[1] if kind is None or g.kind == kind)

    def void(self) -> tuple[tuple[Grant, str], ...]:
        """The stored grants that count for nothing, and why."""
        found = self.store.grants()
        key = self.key() if found else ""
        judged = ((grant, self._problem(grant, key)) for grant in found)
        unsigned = [(grant, problem) for grant, problem in judged if problem]
        unsigned += [(_wanted(source), "nobody signed it") for source in self._undeclared(found)]
        return tuple(unsigned)

    def hosts(self) -> frozenset[str]:
        """Every `host:port` that a person named."""
        return frozenset(g.origin for g in self.grants() if g.kind in ("host", "private_host"))

    def private_hosts(self) -> frozenset[str]:
        """Those that may be talked to also where their address is private."""
        return frozenset(grant.origin for grant in self.grants("private_host"))

    def is_private(self, origin: Origin) -> bool:
        return f"{origin.host}:{origin.port}" in self.private_hosts()

    def packages(self) -> frozenset[str]:
        """The packages of PyPI, by their normal names, that servers may have."""
        prefix = PACKAGE
        return frozenset(g.origin.removeprefix(prefix) for g in self.grants("package"))

    def permissions(self, server: str) -> Mapping[str, str]:
        """What a server was granted: the texts of permissions, such as `fs:/data:ro`, and by each
        the vault's name of the secret that it is for, or "".
        """
        prefix = f"{server} "
        return {
            grant.origin.removeprefix(prefix): grant.detail
            for grant in self.grants("permission")
            if grant.origin.startswith(prefix)
        }

    def sources(self) -> tuple[Source, ...]:
        """The sources; those whose secret a person let go there, and those without one."""
        signed = {(grant.origin, grant.detail) for grant in self.grants("source")}
        return tuple(
            source
            for source in self.store.sources()
            if not source.secret or (source.url, secret_text(source)) in signed
        )

    def _undeclared(self, found: tuple[Grant, ...]) -> tuple[Source, ...]:
        """Sources whose secret no grant names, well or badly signed."""
        named = {(grant.origin, grant.detail) for grant in found if grant.kind == "source"}
        return tuple(
            source
            for source in self.store.sources()
            if source.secret and (source.url, secret_text(source)) not in named
        )

    def _problem(self, grant: Grant, key: str) -> str:
        """Why a grant counts for nothing; "" where it counts."""
        if not key:
            return "whose signature counts is not known"
        if not grant.signature:
            return "nobody signed it"
        if not self._fits(grant, key):
            return "the signature does not fit"
        return REVOKED if grant.serial <= grant.revoked else ""

    def _fits(self, grant: Grant, key: str) -> bool:
        try:
            seen = (key, canonical(grant.body()), grant.signature)
        except (ValueError, TypeError):
            return False
        if seen in self._fitting:
            return True
        if not fits(key, grant.body(), grant.signature):
            return False
        if len(self._fitting) >= MAX_REMEMBERED:
            self._fitting.clear()
        self._fitting.add(seen)
        return True


def void_json(grant: Grant, problem: str) -> Mapping[str, str]:
    """A grant that counts for nothing, as people and scripts see it."""
    return {"what": grant.origin[:300], "kind": grant.kind, "reason": problem}


def secret_of(permission: Permission, bundle: Bundle) -> str:
    """The vault's name of the secret that a third-party server gets for an `env:NAME`; else ""."""
    secrets = bundle.launch.secrets if bundle.launch else {}
    return secrets.get(permission.name, "") if permission.kind == "env" else ""


def secret_text(source: Source) -> str:
    """How a grant names the secret of a source and where it goes; "" where it has none."""
    return f"{source.header}=@{source.secret}" if source.secret else ""


def _wanted(source: Source) -> Grant:
    return Grant(source.url, "source", "", 0.0, secret_text(source))
