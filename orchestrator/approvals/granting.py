"""Adding grants, signed with the key that the PIN opens, and revoking them, which needs no key."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from orchestrator.approvals.accounts import split_secret
from orchestrator.approvals.grants import (
    DIRECTORY,
    PACKAGE,
    Flaw,
    Grants,
    find_secret_name,
    render_secret,
)
from orchestrator.errors import LoginInAddress, OrchestratorError
from registry.approvals.grants import GrantTable
from registry.errors import RowNotFound
from registry.models import DocumentationSource, Entry, Grant, GrantKind, Job
from registry.needs import AllowedNeed, SuccessionNeed, list_parts
from registry.secrets.signing import Signer
from registry.servers.bundles import Bundles
from registry.servers.entries import ServerTable
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.model import Bundle
from sandbox.bundle.packages import normalize_name
from sandbox.bundle.permissions import check_path, parse_permission, parse_permissions
from sandbox.credentials.uses import SecretUse, list_secret_uses
from sandbox.errors import BundleInvalid
from sandbox.plain_secrets import has_login
from sandbox.wire.policy import Origin, parse_origin

MAX_ORIGIN = 1_900
PACKAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
HOST_KINDS: tuple[GrantKind, ...] = ("private_host", "host")
# In this order: a job that waits for the first would go on before the second is there.


def add_grant(
    grants: GrantTable, origin: str, kind: GrantKind, by: str, signer: Signer, detail: str = ""
) -> None:
    """Store a signed grant. Raises GrantStale, OrchestratorError for an origin that is too long."""
    if len(origin) > MAX_ORIGIN:
        raise OrchestratorError(f"{origin[:60]}… is longer than {MAX_ORIGIN} characters.")
    serial = grants.get_next_serial(origin, kind)
    unsigned = Grant(origin, kind, by, time.time(), detail, serial)
    grants.add_grant(replace(unsigned, signature=signer.sign(unsigned.to_signed_body())))


def allow_host(grants: GrantTable, host: str, by: str, signer: Signer) -> None:
    """Allow connections to a `host:port`, also where its address is private. Raises
    OrchestratorError for text of another form.
    """
    _check_host(host)
    for kind in HOST_KINDS:
        add_grant(grants, host.lower(), kind, by, signer)


def check_grantable(what: str, private: Iterable[Path]) -> None:
    """Whether a person could allow that host, path or package, before the PIN is asked for. Raises
    as `allow_host`, `allow_file` and `allow_package`.
    """
    if is_path(what):
        check_path(normalize_path(what), private)
    elif what.startswith(PACKAGE):
        _check_package(what)
    else:
        _check_host(what)


def check_source(url: str) -> Origin:
    """The origin of a source's URL. Raises LoginInAddress, OrchestratorError for no URL."""
    if has_login(url):
        raise LoginInAddress("URL")
    origin = parse_origin(url)
    if origin is None:
        raise OrchestratorError(f"{url} is not an http(s) URL. Give one, such as https://host/.")
    return origin


def _check_host(host: str) -> None:
    origin = parse_origin(f"http://{host}")
    if origin is None or f"{origin.host}:{origin.port}" != host.lower():
        raise OrchestratorError(f"{host!r} is not of the form HOST:PORT, such as localhost:8081.")


def allow_public_host(grants: GrantTable, host: str, by: str, signer: Signer) -> None:
    """Allow connections to a `host:port` that a stranger named: at public addresses alone, unless a
    person allowed it otherwise as well. Raises as `allow_host`.
    """
    _check_host(host)
    add_grant(grants, host.lower(), "host", by, signer)


def is_path(text: str) -> bool:
    """Whether what a person allows is a path of this machine, and no host, URL or package."""
    return text.startswith(("/", "./", "../", "~")) or ("/" in text and ":" not in text)


def allow_file(
    grants: GrantTable, path: str, by: str, signer: Signer, private: Iterable[Path]
) -> str:
    """Allow descriptions to be read from a file, or from what is not hidden in a directory, also
    where a client names it; the path that is allowed. `private` are Toolwright's own. Raises
    PathRefused for what no server may be given, as `sandbox.bundle.permissions.check_path`.
    """
    plain = normalize_path(path)
    check_path(plain, private)
    detail = DIRECTORY if os.path.isdir(plain) else ""
    add_grant(grants, plain, "file", by, signer, detail)
    return plain


def normalize_path(text: str) -> str:
    """The absolute path that a text names. Looks at no file."""
    return os.path.abspath(os.path.expanduser(text))


def allow_package(grants: GrantTable, named: str, by: str, signer: Signer) -> None:
    """Allow servers to import a package, `pypi:NAME`. Raises OrchestratorError for other text."""
    name = _check_package(named)
    add_grant(grants, f"{PACKAGE}{normalize_name(name)}", "package", by, signer)


def _check_package(named: str) -> str:
    name = named.removeprefix(PACKAGE)
    if not PACKAGE_NAME.match(name):
        raise OrchestratorError(f"{named[:100]!r} is not of the form {PACKAGE}NAME.")
    return name


def add_source(grants: GrantTable, source: DocumentationSource, by: str, signer: Signer) -> None:
    """Register a source and allow its host; its secret is sent to that URL's origin only."""
    origin = check_source(source.url)
    if source.secret:
        add_grant(grants, source.url, "source", by, signer, render_secret(source))
    grants.add_source(source, time.time())
    allow_host(grants, f"{origin.host}:{origin.port}", by, signer)


def bind_secret(
    grants: GrantTable,
    server: str,
    name: str,
    uses: Iterable[SecretUse],
    by: str,
    signer: Signer,
) -> None:
    """Let a server's secret go to these origins, in these places, and nowhere else. What it was
    bound to before is revoked, so that a copy of that row counts for nothing.
    """
    unbind_secret(grants, server, name, by, time.time())
    detail = "\n".join(sorted(map(str, uses)))
    add_grant(grants, f"{server}.{name}", "secret", by, signer, detail)


def unbind_secret(grants: GrantTable, server: str, name: str, by: str, now: float) -> None:
    """Let a server's secret go nowhere. Needs no key."""
    grants.remove_grant(f"{server}.{name}", "secret", by, now)


def load_registered(servers: ServerTable, shelf: Bundles, server: str) -> Bundle | None:
    """The bundle of a server's registered version; None where there is none that can be read."""
    try:
        return shelf.load_bundle(servers.get(server))
    except (RowNotFound, BundleInvalid):
        return None


def find_declared_uses(
    servers: ServerTable, shelf: Bundles, server: str, name: str
) -> tuple[SecretUse, ...]:
    """Where the registered version of a server would take a secret, of any account of a credential;
    () where there is none such.
    """
    bundle = load_registered(servers, shelf, server)
    if bundle is None:
        return ()
    declared = list_secret_uses(bundle)
    return declared.get(name) or declared.get(split_secret(name)[0], ())


def find_credential_names(servers: ServerTable, shelf: Bundles, server: str) -> tuple[str, ...]:
    """The names of the secrets that the registered version of a server asks for."""
    bundle = load_registered(servers, shelf, server)
    if bundle is None:
        return ()
    return tuple(credential.name for credential in bundle.credentials)


def describe_credential(servers: ServerTable, shelf: Bundles, server: str, name: str) -> str:
    """What the description of a registered server's API says of a credential, cleaned; "" where it
    says nothing.
    """
    bundle = load_registered(servers, shelf, server)
    schemes = bundle.spec.security_schemes if bundle is not None and bundle.spec else ()
    own = split_secret(name)[0]
    return next((scheme.description for scheme in schemes if scheme.name in (name, own)), "")


def find_held_permissions(consents: Grants, entry: Entry) -> tuple[str, ...]:
    """What of its declared permissions a server has, and what it was granted beside these. A host
    that a person allowed is open to each server but those that others wrote.
    """
    given = consents.find_permissions(entry.name)
    hosts = frozenset() if entry.created_by == AUTHOR else consents.find_hosts()
    declared = parse_permissions(entry.permissions)
    open_hosts = {str(p) for p in declared if p.kind == "network" and str(p.target) in hosts}
    return tuple(sorted({*given, *open_hosts}))


def find_confirmable(
    servers: ServerTable,
    shelf: Bundles,
    void: Iterable[tuple[Grant, Flaw]],
    what: str = "",
    waiting: Iterable[Job] = (),
) -> tuple[Grant, ...]:
    """The void grants that a person can confirm as they are; with `what`, only those of that
    server, host or URL. Revoked grants and permissions that no server declares are left out; of
    successions, those that no `waiting` job shows what they change (`find_succession`).
    """
    jobs = tuple(waiting)
    found = (grant for grant, flaw in void if flaw != "revoked")
    named = (g for g in found if what in ("", g.origin, g.origin.partition(" ")[0]))
    return tuple(
        each
        for grant in named
        if (grant.kind != "succession" or find_succession(grant, jobs) is not None)
        and (each := _resolve_declared(servers, shelf, grant))
    )


def find_succession(grant: Grant, waiting: Iterable[Job]) -> SuccessionNeed | None:
    """What a succession's grant changes, as the job shows it that waits for that very change: the
    grant itself has its digest alone.
    """
    needs = (job.needs for job in waiting)
    parts = (p for need in needs if isinstance(need, AllowedNeed) for p in list_parts(need))
    found = (part for part in parts if isinstance(part, SuccessionNeed))
    return next((p for p in found if (p.server, p.digest) == (grant.origin, grant.detail)), None)


def confirm_grants(grants: GrantTable, wanted: Iterable[Grant], by: str, signer: Signer) -> None:
    """Sign these grants again, with the person's key."""
    for each in wanted:
        add_grant(grants, each.origin, each.kind, by, signer, each.detail)


def _resolve_declared(servers: ServerTable, shelf: Bundles, grant: Grant) -> Grant | None:
    """The grant with the secret that its server declares for it; None where it is not declared, or
    is of a kind that says nothing to who only looks at it.
    """
    if grant.kind == "meant":
        return None
    if grant.kind != "permission":
        return grant
    server, _, text = grant.origin.partition(" ")
    try:
        bundle = shelf.load_bundle(servers.get(server))
        wanted = parse_permission(text)
    except (RowNotFound, BundleInvalid, ValueError):
        return None
    if wanted not in parse_permissions(bundle.permissions):
        return None
    return replace(grant, detail=find_secret_name(wanted, bundle))


def remove_grant(grants: GrantTable, what: str, by: str, now: float) -> bool:
    """Revoke the grant of a source's URL, host, path or package; False where there was none."""
    if is_path(what):
        return grants.remove_grant(normalize_path(what), "file", by, now)
    if what.startswith(PACKAGE):
        name = f"{PACKAGE}{normalize_name(what.removeprefix(PACKAGE))}"
        return grants.remove_grant(name, "package", by, now)
    if "://" in what:
        return grants.remove_source(what, now) | grants.remove_grant(what, "source", by, now)
    removed = {kind: grants.remove_grant(what.lower(), kind, by, now) for kind in HOST_KINDS}
    return any(removed.values())


def revoke_permissions(
    grants: GrantTable, server: str, permissions: Iterable[str], by: str, now: float
) -> None:
    """Take permissions, such as `fs:/data:ro`, away from a server."""
    for permission in permissions:
        grants.remove_grant(f"{server} {permission}", "permission", by, now)
