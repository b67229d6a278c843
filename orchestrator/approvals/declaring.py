"""What a third-party server declares: it says nothing itself, so a person says it for it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from orchestrator.approvals.granting import add_grant, load_registered
from orchestrator.approvals.grants import find_secret_name
from registry.approvals.grants import GrantTable
from registry.models import Entry, build_entry
from registry.secrets.signing import Signer
from registry.servers.bundles import Bundles
from registry.servers.entries import ServerTable
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import Permission, check_nesting, parse_permissions

DECLARED_LATER = ("network", "env", "fs")
"""Kinds of permissions that `toolwright add` takes."""


@dataclass(frozen=True)
class Declaration:
    """A permission that a third-party server is to have, and all that it declares with it."""

    entry: Entry
    bundle: Bundle
    wanted: Permission
    permissions: tuple[Permission, ...]


def plan_declaration(
    servers: ServerTable, shelf: Bundles, name: str, wanted: Permission
) -> Declaration | None:
    """The declaration that a grant of this permission needs first; None where it needs none, or
    where the server is none that a person may declare something for. Changes nothing.

    Raises Unknown, BundleInvalid, and PathRefused for paths that contain each other.
    """
    entry = servers.get(name)
    declared = parse_permissions(entry.permissions)
    if entry.created_by != AUTHOR or wanted.kind not in DECLARED_LATER or wanted in declared:
        return None
    # A path is there once: to be read, or to be written as well.
    others = (each for each in declared if (each.kind, each.name) != (wanted.kind, wanted.name))
    permissions = (*others, wanted)
    check_nesting(permissions)
    return Declaration(entry, shelf.load_bundle(entry), wanted, permissions)


def declare_permission(
    servers: ServerTable,
    shelf: Bundles,
    grants: GrantTable,
    made: Declaration,
    by: str,
    signer: Signer,
) -> Entry:
    """Register the same program as a new version that declares the permission, and grant it. A
    variable is the secret of its own name. Raises RegistryError, DiskUnusable.
    """
    bundle, wanted = made.bundle, made.wanted
    name, launch = bundle.name, bundle.launch
    assert launch is not None
    if wanted.kind == "env":
        launch = replace(launch, secrets={**launch.secrets, wanted.name: wanted.name})
    newest = max(entry.version for entry in servers.find_versions(name))
    permissions = tuple(map(str, made.permissions))
    wider = replace(bundle, version=newest + 1, permissions=permissions, launch=launch)
    # What was fetched and listed is the same, and so is what was found in it.
    reports = servers.get_reports(name, made.entry.version)
    entry = build_entry(wider, time.time(), made.entry.state, AUTHOR)
    published = shelf.publish_bundle(wider, entry, reports, None)
    secret = find_secret_name(wanted, wider)
    add_grant(grants, f"{name} {wanted}", "permission", by, signer, secret)
    return published


def describe_variable(servers: ServerTable, shelf: Bundles, name: str, secret: str) -> str:
    """As which variable a third-party server gets a secret, or what gives it; "" for others."""
    bundle = load_registered(servers, shelf, name)
    launch = bundle.launch if bundle is not None else None
    if launch is None:
        return ""
    variables = [variable for variable, given in launch.secrets.items() if given == secret]
    if variables:
        return f"{name} gets it as its variable {', '.join(variables)}."
    return f"`toolwright grant {name} env:{secret}` gives it to {name} as a variable."
