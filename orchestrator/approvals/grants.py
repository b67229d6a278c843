"""Effective grants: those that the pinned key signed and that were not revoked since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Literal

from orchestrator.approvals.signed_policy import SignedPolicy
from registry.audit.trail import AuditTrail
from registry.database.audit_chain import SUBJECT
from registry.database.canonical import clean_text, to_canonical_json
from registry.models import DocumentationSource, Grant, GrantKind
from registry.secrets.signing import verify_signature
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import Permission
from sandbox.wire.policy import Origin, parse_origin

CONFIRM = "look at them: `toolwright grant --confirm` signs them with your PIN"
MAX_REMEMBERED = 4096
Flaw = Literal["no_key", "unsigned", "unfitting", "revoked", "doubtful"]
"""Why a grant counts for nothing."""
_FLAWS: Mapping[Flaw, str] = {
    "no_key": "whose signature counts is not known",
    "unsigned": "nobody signed it",
    "unfitting": "the signature does not fit",
    "revoked": "it was revoked",
    "doubtful": "the audit is not whole, so what was revoked is not known",
}
DIRECTORY = "directory"
"""Detail of a file's grant that is for what lies in it."""
PACKAGE = "pypi:"
"""Prefix of the origin of a package's grant."""


@dataclass(frozen=True)
class _Counted:
    """The grants that count at a version of the database, by this key; `stored` is all of them as
    one text.
    """

    version: int
    stored: str
    key: str
    grants: tuple[Grant, ...]


@dataclass
class Grants:
    """Reads grants; those that were written, edited or restored in the database by hand are void.

    `key` returns the person's public key, "" where it is missing or in doubt: then every grant is
    void. So it is where `trail` says that the audit is not whole; it is asked only once something
    was granted or taken away.
    """

    store: Store
    key: Callable[[], str]
    trail: AuditTrail
    _fitting: set[tuple[str, str, str]] = field(default_factory=set)
    _counted: _Counted = field(default_factory=lambda: _Counted(-1, "", "", ()))
    _uses: tuple[tuple[Grant, ...], Mapping[str, frozenset[str]]] = ((), MappingProxyType({}))
    _accounts: tuple[tuple[Grant, ...], Mapping[str, str]] = ((), MappingProxyType({}))

    def find_grants(self, kind: GrantKind | None = None) -> tuple[Grant, ...]:
        """The grants that count, of one kind or of all, by origin; of all the very same tuple while
        none has changed. Costs microseconds while nobody granted anything or took it away.
        """
        known, version = self._counted, self.store.signals.read_data_version()
        if known.version != version:
            known = self._counted = self._judge_stored(version, known)
        if kind is None:
            return known.grants
        return tuple(g for g in known.grants if g.kind == kind)

    def _judge_stored(self, version: int, known: _Counted) -> _Counted:
        """The grants judged again where they, or whose signature counts, are not what they were."""
        stored = self.store.signals.granted()
        key = self.key() if stored else ""
        if (stored, key) == (known.stored, known.key):
            return replace(known, version=version)
        judged = tuple(grant for grant, flaw in self._judge_each(key) if not flaw)
        return _Counted(version, stored, key, judged)

    def _judge_each(self, key: str) -> tuple[tuple[Grant, Flaw | None], ...]:
        """Every stored grant, with why it counts for nothing."""
        found = self.store.grants.find_grants()
        # Also where nothing is granted: what was taken away is remembered from here on.
        whole, revoked = not self.trail.find_problem(), self.trail.read().revoked_grants
        judged = []
        for stored in found:
            of = clean_text(stored.origin, SUBJECT), stored.kind
            grant = replace(stored, revoked=max(stored.revoked, revoked.get(of, 0)))
            judged.append((grant, self._flaw(grant, key) if whole else "doubtful"))
        return tuple(judged)

    def find_void(self) -> tuple[tuple[Grant, Flaw], ...]:
        """The stored grants that count for nothing, and why."""
        judged = self._judge_each(self.key())
        found = tuple(grant for grant, _ in judged)
        void = [(grant, flaw) for grant, flaw in judged if flaw]
        void += [
            (_build_source_grant(source), "unsigned") for source in self._find_undeclared(found)
        ]
        return tuple(void)

    def find_hosts(self) -> frozenset[str]:
        """Every `host:port` that a person allowed."""
        return frozenset(g.origin for g in self.find_grants() if g.kind in ("host", "private_host"))

    def find_private_hosts(self) -> frozenset[str]:
        """The `host:port`s that are allowed also where their address is private."""
        return frozenset(grant.origin for grant in self.find_grants("private_host"))

    def is_private(self, origin: Origin) -> bool:
        return f"{origin.host}:{origin.port}" in self.find_private_hosts()

    def is_readable(self, path: str) -> bool:
        """Whether a person allowed descriptions to be read from an absolute path in its plain form:
        the file itself, or what is not hidden in a directory that holds it.
        """
        wanted = PurePosixPath(path)
        for grant in self.find_grants("file"):
            root = PurePosixPath(grant.origin)
            if wanted == root:
                return True
            if grant.detail == DIRECTORY and root in wanted.parents:
                return not any(part.startswith(".") for part in wanted.relative_to(root).parts)
        return False

    def find_packages(self) -> frozenset[str]:
        """The normalized names of the PyPI packages that servers may import."""
        prefix = PACKAGE
        return frozenset(g.origin.removeprefix(prefix) for g in self.find_grants("package"))

    def find_permissions(self, server: str) -> Mapping[str, str]:
        """The permissions a server was granted: by text, such as `fs:/data:ro`, the vault's name of
        the secret that goes with it, or "".
        """
        prefix = f"{server} "
        return {
            grant.origin.removeprefix(prefix): grant.detail
            for grant in self.find_grants("permission")
            if grant.origin.startswith(prefix)
        }

    def find_secret_uses(self, server: str, name: str) -> frozenset[str]:
        """Where a person let the secret of a server go: each origin and place, as the text of a
        `sandbox.credentials.uses.SecretUse`.
        """
        grants = self.find_grants()
        if self._uses[0] is not grants:
            bound = (grant for grant in grants if grant.kind == "secret")
            self._uses = grants, {g.origin: frozenset(g.detail.split("\n")) for g in bound}
        return self._uses[1].get(f"{server}.{name}", frozenset())

    def find_account(self, server: str, credential: str) -> str:
        """The account that a person made the default of a server's credential; "" for the one
        without a name.
        """
        grants = self.find_grants()
        if self._accounts[0] is not grants:
            chosen = (grant for grant in grants if grant.kind == "account")
            self._accounts = grants, {grant.origin: grant.detail for grant in chosen}
        return self._accounts[1].get(f"{server}.{credential}", "")

    def find_use_origins(self, server: str) -> frozenset[Origin]:
        """Every origin that a person let secrets of a server go to."""
        bound = (g for g in self.find_grants("secret") if g.origin.startswith(f"{server}."))
        urls = (use.partition(" ")[0] for grant in bound for use in grant.detail.split("\n"))
        return frozenset(origin for origin in map(parse_origin, urls) if origin)

    def is_succession_allowed(self, server: str, digest: str) -> bool:
        """Whether a person allowed this one change of a server's version."""
        found = (g for g in self.find_grants("succession") if g.origin == server)
        return any(grant.detail == digest for grant in found)

    def is_source_meant(self, task: str, url: str) -> bool:
        """Whether a person said that the task with this sha256 means that registered source."""
        found = (g for g in self.find_grants("meant") if g.origin == task)
        return any(grant.detail == url for grant in found)

    def find_sources(self) -> tuple[DocumentationSource, ...]:
        """The sources without a secret, and those whose secret has an effective grant."""
        signed = {(grant.origin, grant.detail) for grant in self.find_grants("source")}
        return tuple(
            source
            for source in self.store.grants.find_sources()
            if not source.secret or (source.url, render_secret(source)) in signed
        )

    def _find_undeclared(self, found: tuple[Grant, ...]) -> tuple[DocumentationSource, ...]:
        """Sources whose secret no stored grant names, signed or not."""
        named = {(grant.origin, grant.detail) for grant in found if grant.kind == "source"}
        return tuple(
            source
            for source in self.store.grants.find_sources()
            if source.secret and (source.url, render_secret(source)) not in named
        )

    def _flaw(self, grant: Grant, key: str) -> Flaw | None:
        """Why a grant counts for nothing; None where it counts."""
        if not key:
            return "no_key"
        if not grant.signature:
            return "unsigned"
        if not self._has_valid_signature(grant, key):
            return "unfitting"
        return "revoked" if grant.serial <= grant.revoked else None

    def _has_valid_signature(self, grant: Grant, key: str) -> bool:
        try:
            seen = (key, to_canonical_json(grant.to_signed_body()), grant.signature)
        except (ValueError, TypeError):
            return False
        if seen in self._fitting:
            return True
        if not verify_signature(key, grant.to_signed_body(), grant.signature):
            return False
        if len(self._fitting) >= MAX_REMEMBERED:
            self._fitting.clear()
        self._fitting.add(seen)
        return True


def open_grants(policy: SignedPolicy) -> Grants:
    """The grants of an installation, by its key and audit."""
    return Grants(policy.store, policy.find_key, policy.trail)


def render_flaw(flaw: Flaw) -> str:
    """Why a grant counts for nothing, in words."""
    return _FLAWS[flaw]


def encode_void_grant(grant: Grant, flaw: Flaw) -> Mapping[str, str]:
    """A grant that counts for nothing, as people and scripts see it."""
    reason = render_flaw(flaw)
    return {"what": grant.origin[:300], "kind": grant.kind, "flaw": flaw, "reason": reason}


def find_secret_name(permission: Permission, bundle: Bundle) -> str:
    """The vault's name of the secret that a third-party server gets for an `env:NAME`; else ""."""
    secrets = bundle.launch.secrets if bundle.launch else {}
    return secrets.get(permission.name, "") if permission.kind == "env" else ""


def render_secret(source: DocumentationSource) -> str:
    """`HEADER=@SECRET`, by which a grant names a source's secret; "" where it has none."""
    return f"{source.header}=@{source.secret}" if source.secret else ""


def _build_source_grant(source: DocumentationSource) -> Grant:
    return Grant(source.url, "source", "", 0.0, render_secret(source))
