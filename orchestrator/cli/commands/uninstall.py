"""`toolwright uninstall`: remove a home and all that Toolwright made for it on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from forge.text import render_count
from orchestrator.cli.clients.clients import (
    CLIENTS,
    SERVER,
    build_start_command,
    describe_machine,
    update_config,
)
from orchestrator.cli.clients.takeover import read_records
from orchestrator.cli.terminal import (
    json_option,
    print_json,
    print_text,
    report_errors,
    tell_beside,
)
from orchestrator.errors import HomeForeign, HomeInUse, OrchestratorError
from orchestrator.forging.thirdparty.registration import remove_built_image
from orchestrator.processes.control_client import stop_control
from orchestrator.processes.liveness import is_alive
from orchestrator.processes.resident import stop_resident
from orchestrator.settings import Settings, load_settings
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.engines.docker.engine import kill_instance
from sandbox.errors import EngineUnavailable, SandboxError

OWN_FILES = frozenset({"instance", "toolwright.db"})
"""What a directory holds that is a home of ours."""


@click.command("uninstall")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@report_errors
def uninstall_command(yes: bool, as_json: bool) -> None:
    """Remove this home with its servers, secrets and audit log, its containers and images, and its
    entries in the configurations of clients. Says first what goes and what stays.
    """
    settings = load_settings()
    if not all((settings.home / name).exists() for name in OWN_FILES):
        raise HomeForeign(str(settings.home))
    with tell_beside(as_json):
        removed = _uninstall(settings, yes)
    if as_json:
        print_json({"home": str(settings.home), "removed": removed})


def _uninstall(settings: Settings, yes: bool) -> bool:
    """Whether the home was removed; False where the person said no."""
    names, images = _find_servers(settings)
    _tell_plan(settings, names, images)
    if not yes and not click.confirm("Remove all that?", err=True):
        print_text("Nothing was removed.")
        return False
    _end_processes(settings)
    for line in _remove_entries(settings, names):
        print_text(line)
    _remove_from_engine(settings, images)
    shutil.rmtree(settings.home)
    print_text(f"{settings.home} is removed.", "bold")
    return True


def _find_servers(settings: Settings) -> tuple[list[str], list[str]]:
    """The names of the registered servers, and the images that were built for them."""
    images = []
    with Store.open(settings.database_url) as store:
        entries = store.servers.find()
        shelf = Bundles(settings.home, store.servers)
        for entry in entries:
            try:
                launch = shelf.load_bundle(entry).launch
            except SandboxError:
                continue
            if launch is not None and launch.way == "image":
                images.append(launch.image)
    return [entry.name for entry in entries], images


def _tell_plan(settings: Settings, names: list[str], images: list[str]) -> None:
    print_text(
        f"Goes: {settings.home}: {render_count(len(names), 'server')}, all secrets, the audit log."
    )
    built = render_count(len(images), "image")
    print_text(f"Goes: its containers, {built}, its entries in clients' files.")
    if read_records(settings):
        print_text(
            "Goes: what clients had before `import-clients`. `toolwright import-clients --undo` "
            "first puts it back.",
            "yellow",
        )
    print_text(f"Stays: the vault's key {settings.vault_key}, for backups that you made.")
    print_text(f"Stays: {settings.cache} and the images toolwright-base, which other homes use.")
    print_text("Stays: copies of clients' files beside them, and the command itself.")


def _end_processes(settings: Settings) -> None:
    """Stop the control plane and the resident process. Raises HomeInUse where a client still uses
    the home.
    """
    stop_control(settings)
    stop_resident(settings.home)
    with Store.open(settings.database_url) as store:
        used = [each for each in store.processes.find() if each.pid != os.getpid()]
    alive = [f"{each.kind} (process {each.pid})" for each in used if is_alive(each)]
    if alive:
        raise HomeInUse(alive)


def _remove_entries(settings: Settings, names: list[str]) -> Iterator[str]:
    """Take out every entry that starts this home; what was done, a line each."""
    machine = describe_machine(os.environ)
    for client in CLIENTS.values():
        path = client.path(machine)
        if not _names_home(path, settings.home):
            continue
        for server in ("", *names):
            try:
                backup = update_config(
                    client, path, build_start_command(settings.home, server), remove=True
                )
            except OrchestratorError as error:
                yield str(error)
                continue
            if backup:
                yield f"{path}: {server or SERVER} is removed; what was there is kept in {backup}"


def _names_home(path: Path, home: Path) -> bool:
    try:
        return str(home) in path.read_text()
    except (OSError, UnicodeDecodeError):
        return False


def _remove_from_engine(settings: Settings, images: list[str]) -> None:
    try:
        kill_instance(settings.instance)
        for image in images:
            remove_built_image(image)
    except EngineUnavailable:
        print_text("Docker does not answer: containers and images that it has stay.", "yellow")
