"""`toolwright reprove`: prove registered servers again."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from datetime import datetime

import click

from orchestrator.app import App, open_app
from orchestrator.cli.identifiers import StoredName
from orchestrator.cli.terminal import (
    FAILED,
    json_option,
    print_json,
    print_text,
    report_errors,
    run_coroutine,
)
from orchestrator.errors import OrchestratorError
from orchestrator.forging.order import ForgeStep
from orchestrator.healing.reprove import ReproofResult, Reprover
from orchestrator.server_report import describe_edit
from orchestrator.settings import Settings, load_settings
from registry.models import CALLABLE, Entry

STYLES = {"proved": "green", "renewed": "green", "failed": "red", "skipped": "yellow"}


@click.command("reprove")
@click.argument("names", nargs=-1, metavar="[NAME]…", type=StoredName("server"))
@click.option(
    "--author",
    "model",
    default="",
    help="Have this model (or `client`) write what somebody wrote anew, on the side.",
)
@click.option(
    "--since", default="", help="Only servers made on this day or later, such as 2026-01-31."
)
@json_option
@report_errors
def reprove_command(names: tuple[str, ...], model: str, since: str, as_json: bool) -> None:
    """Prove the servers NAME again, or all in use: with this version's stages, on this base image,
    with their own cases and the calls they answered last. What is proved on another base than
    before becomes a new version; what fails stays as it is.
    """
    found = run_coroutine(
        _reprove_servers(load_settings(), names, model, _parse_day(since), as_json)
    )
    if as_json:
        print_json([asdict(each) for each in found])
    if any(each.verdict == "failed" for each in found):
        raise SystemExit(FAILED)


async def _reprove_servers(
    settings: Settings, names: tuple[str, ...], model: str, since: float, quiet: bool
) -> list[ReproofResult]:
    async with open_app(replace(settings, spares=0), "reprove") as app:
        author = _resolve_author(app, model)
        entries = [app.store.servers.get(name) for name in names] or _find_servers_in_use(
            app, since
        )
        reproving = Reprover(app.store, app.forge)
        found = []
        for entry in entries:
            found.append(await reproving.reprove_server(entry, _ignore_step, author))
            if not quiet:
                _print_result(found[-1])
                await asyncio.to_thread(_print_edit, app, entry.name)
        return found


def _find_servers_in_use(app: App, since: float) -> list[Entry]:
    return [entry for entry in app.store.servers.find(CALLABLE) if entry.created >= since]


def _resolve_author(app: App, model: str) -> str:
    """The author, as `forge` names it: "", `client` or `openai`. Raises OrchestratorError for a
    model that is not configured.
    """
    if model in ("", "client"):
        return model
    known = app.settings.of_model.model
    if model != known:
        raise OrchestratorError(
            f"the model {model} is not the one that is configured ({known or 'none is'}). Set "
            "OPENAI_BASE_URL, OPENAI_MODEL and its key first."
        )
    return "openai"


def _parse_day(day: str) -> float:
    if not day:
        return 0.0
    try:
        return datetime.fromisoformat(day).timestamp()
    except ValueError as error:
        raise OrchestratorError(f"{day!r} is no day such as 2026-01-31.") from error


def _ignore_step(step: ForgeStep) -> None:
    """Ignore progress: the command prints only the result of each server."""


def _print_edit(app: App, name: str) -> None:
    servers = app.store.servers
    edited = describe_edit(app.settings.home, servers, servers.get(name))
    if edited:
        print_text(f"  {edited}", "yellow")


def _print_result(found: ReproofResult) -> None:
    print_text(f"{found.server} version {found.version}: {found.verdict}", STYLES[found.verdict])
    if found.reason:
        print_text(f"  {found.reason}")
    if found.job:
        print_text(f"  job {found.job} writes it anew")
