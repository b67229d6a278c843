"""What a person allows, signed with the key that the PIN opens; taking it away needs no key."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import replace

from orchestrator.consents import PACKAGE, REVOKED, secret_of, secret_text
from orchestrator.errors import OrchestratorError
from orchestrator.shelf import Shelf
from registry.errors import Unknown
from registry.records import Grant, GrantKind, Source
from registry.signing import Signer
from registry.store import Store
from sandbox.dependency import normal
from sandbox.errors import BundleInvalid
from sandbox.permissions import parse_permission, permissions_of
from sandbox.policy import origin_of

MAX_ORIGIN = 1_900
PACKAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
HOST_KINDS: tuple[GrantKind, ...] = ("private_host", "host")
# In this order: a job that waits for the first would go on before the second is there.


def grant(
    store: Store, origin: str, kind: GrantKind, by: str, signer: Signer, detail: str = ""
) -> None:
    """Store a signed grant. Raises GrantStale, OrchestratorError for an origin that is too long."""
    if len(origin) > MAX_ORIGIN:
        raise OrchestratorError(f"{origin[:60]}… is longer than {MAX_ORIGIN} characters.")
    serial = store.next_serial(origin, kind)
    unsigned = Grant(origin, kind, by, time.time(), detail, serial)
    store.add_grant(replace(unsigned, signature=signer.sign(unsigned.body())))


def allow_host(store: Store, host: str, by: str, signer: Signer) -> None:
    """Let a `host:port` be talked to, wherever its address is. Raises OrchestratorError for
    anything else.
    """
    origin = origin_of(f"http://{host}")
    if origin is None or f"{origin.host}:{origin.port}" != host.lower():
        raise OrchestratorError(f"{host!r} is not of the form HOST:PORT, such as localhost:8081.")
    for kind in HOST_KINDS:
        grant(store, host.lower(), kind, by, signer)


def allow_package(store: Store, named: str, by: str, signer: Signer) -> None:
    """Let servers have a package, as `pypi:NAME`. Raises OrchestratorError for anything else."""
    name = named.removeprefix(PACKAGE)
    if not PACKAGE_NAME.match(name):
        raise OrchestratorError(f"{named[:100]!r} is not of the form {PACKAGE}NAME.")
    grant(store, f"{PACKAGE}{normal(name)}", "package", by, signer)


def add_source(store: Store, source: Source, by: str, signer: Signer) -> None:
    """Register a source and allow its host; its secret goes there and nowhere else."""
    origin = origin_of(source.url)
    if origin is None:
        raise OrchestratorError(
            f"{source.url} is not an http(s) URL. Give one, such as https://host/."
        )
    if source.secret:
        grant(store, source.url, "source", by, signer, secret_text(source))
    store.add_source(source, time.time())
    allow_host(store, f"{origin.host}:{origin.port}", by, signer)


def confirmable(
    store: Store, shelf: Shelf, void: Iterable[tuple[Grant, str]], what: str = ""
) -> tuple[Grant, ...]:
    """Those of some grants that count for nothing which a person can confirm as they stand, of one
    server, host or URL where `what` names it. Not what was revoked, nor what no server declares.
    """
    found = (grant for grant, problem in void if problem != REVOKED)
    named = (g for g in found if what in ("", g.origin, g.origin.partition(" ")[0]))
    return tuple(each for grant in named if (each := _as_declared(store, shelf, grant)))


def confirm(store: Store, wanted: Iterable[Grant], by: str, signer: Signer) -> None:
    """Sign grants anew."""
    for each in wanted:
        grant(store, each.origin, each.kind, by, signer, each.detail)


def _as_declared(store: Store, shelf: Shelf, grant: Grant) -> Grant | None:
    """A permission as its server declares it, with the secret that it is for; None for none."""
    if grant.kind != "permission":
        return grant
    server, _, text = grant.origin.partition(" ")
    try:
        bundle = shelf.bundle(store.entry(server))
        wanted = parse_permission(text)
    except (Unknown, BundleInvalid, ValueError):
        return None
    if wanted not in permissions_of(bundle.permissions):
        return None
    return replace(grant, detail=secret_of(wanted, bundle))


def forget(store: Store, what: str, by: str, now: float) -> bool:
    """Take a source's URL, a host or a package away; whether there was one."""
    if what.startswith(PACKAGE):
        name = f"{PACKAGE}{normal(what.removeprefix(PACKAGE))}"
        return store.remove_grant(name, "package", by, now)
    if "://" in what:
        return store.remove_source(what, now) | store.remove_grant(what, "source", by, now)
    removed = {kind: store.remove_grant(what.lower(), kind, by, now) for kind in HOST_KINDS}
    return any(removed.values())


def revoke_permissions(
    store: Store, server: str, permissions: Iterable[str], by: str, now: float
) -> None:
    """Take permissions, such as `fs:/data:ro`, away from a server."""
    for permission in permissions:
        store.remove_grant(f"{server} {permission}", "permission", by, now)
