"""`toolwright archive` and `remove`: take a server out of use; `remove` revokes its grants too."""

from __future__ import annotations

import time

import click

from orchestrator.approvals.granting import revoke_permissions
from orchestrator.approvals.signing_key import sign_audit
from orchestrator.cli.identifiers import StoredName
from orchestrator.cli.terminal import json_option, print_json, print_text, report_errors
from orchestrator.errors import OrchestratorError
from orchestrator.forging.thirdparty.registration import remove_built_image
from orchestrator.frontends.instructions import keep_changed_instructions
from orchestrator.settings import load_settings
from registry.approvals.grants import GrantTable
from registry.models import Entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.permissions import parse_permissions
from sandbox.errors import EngineUnavailable, SandboxError


@click.command("remove")
@click.argument("name", type=StoredName("server"))
@json_option
@report_errors
def remove_command(name: str, as_json: bool) -> None:
    """Take the third-party server NAME out of use: its permissions and its image go, its records
    stay. `toolwright secret remove` removes its secrets.
    """
    settings = load_settings()
    now = time.time()
    with Store.open(settings.database_url) as store:
        entry = store.servers.get(name)
        if entry.created_by != AUTHOR:
            raise OrchestratorError(f"{name} was made by Toolwright: `toolwright archive {name}`.")
        store.servers.archive(name, now, "terminal", "removed")
        revoke_permissions(
            store.grants, name, _find_permissions(store.grants, entry), "terminal", now
        )
        sign_audit(settings, store.audit)
        keep_changed_instructions(settings, store)
        try:
            launch = Bundles(settings.home, store.servers).load_bundle(entry).launch
        except SandboxError:
            launch = None
    if launch is not None and launch.way == "image":
        _remove_image(launch.image)
    if as_json:
        print_json({"server": name, "state": "archived"})
    else:
        print_text(f"{name} is removed. `toolwright add` brings it back.")


def _find_permissions(grants: GrantTable, entry: Entry) -> list[str]:
    """The permissions that a server declares or was granted, signed or not."""
    prefix = f"{entry.name} "
    given = (grant.origin for grant in grants.find_grants("permission"))
    stored = {each.removeprefix(prefix) for each in given if each.startswith(prefix)}
    return sorted(stored | {str(each) for each in parse_permissions(entry.permissions)})


def _remove_image(image: str) -> None:
    try:
        remove_built_image(image)
    except EngineUnavailable as error:
        print_text(f"its image stays: {error}", "yellow")


@click.command("archive")
@click.argument("name", type=StoredName("server"))
@click.option("--reason", default="", help="Kept in the audit log.")
@json_option
@report_errors
def archive_command(name: str, reason: str, as_json: bool) -> None:
    """Take the server NAME out of use. Its files and records stay; forging it again revives it."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        store.servers.archive(name, time.time(), "terminal", reason)
        sign_audit(settings, store.audit)
        keep_changed_instructions(settings, store)
    if as_json:
        print_json({"server": name, "state": "archived"})
    else:
        print_text(f"{name} is archived.")
