"""`toolwright remove`: take a third-party server out of use, with all that it was given."""

from __future__ import annotations

import time
from contextlib import closing

import click

from orchestrator.errors import OrchestratorError
from orchestrator.granting import revoke_permissions
from orchestrator.settings import load_settings
from orchestrator.shelf import Shelf
from orchestrator.terminal import json_option, print_json, reported, say
from registry.records import Entry
from registry.store import Store
from sandbox.docker_engine import connect
from sandbox.errors import EngineUnavailable, SandboxError
from sandbox.launch import AUTHOR
from sandbox.layers import remove_layer
from sandbox.permissions import permissions_of


@click.command("remove")
@click.argument("name")
@json_option
@reported
def command(name: str, as_json: bool) -> None:
    """Take the third-party server NAME out of use: its permissions and its image go, its records
    stay. Its secrets are yours to remove: `toolwright secret remove`.
    """
    settings = load_settings()
    now = time.time()
    with Store.open(settings.database_url) as store:
        entry = store.entry(name)
        if entry.created_by != AUTHOR:
            raise OrchestratorError(f"{name} was made by Toolwright: `toolwright archive {name}`.")
        store.archive(name, now, "terminal", "removed")
        revoke_permissions(store, name, _permissions(store, entry), "terminal", now)
        try:
            launch = Shelf(settings.home, store).bundle(entry).launch
        except SandboxError:
            launch = None
    if launch is not None and launch.way == "image":
        _remove_image(launch.image)
    if as_json:
        print_json({"server": name, "state": "archived"})
    else:
        say(f"{name} is removed. `toolwright add` brings it back.")


def _permissions(store: Store, entry: Entry) -> list[str]:
    """What a server declares or was granted, signed or not."""
    prefix = f"{entry.name} "
    given = (grant.origin for grant in store.grants("permission"))
    stored = {each.removeprefix(prefix) for each in given if each.startswith(prefix)}
    return sorted(stored | {str(each) for each in permissions_of(entry.permissions)})


def _remove_image(image: str) -> None:
    try:
        with closing(connect()) as client:
            remove_layer(client, image)
    except EngineUnavailable as error:
        say(f"its image stays: {error}", "yellow")
