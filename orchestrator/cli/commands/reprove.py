"""`toolwright reprove`: prove registered servers again."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime

import click

from orchestrator.app import App, open_app
from orchestrator.errors import OrchestratorError
from orchestrator.orders import Step
from orchestrator.reproving import Reproved, Reproving
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import FAILED, json_option, print_json, reported, run, say
from registry.records import CALLABLE, Entry

STYLES = {"proved": "green", "renewed": "green", "failed": "red", "skipped": "yellow"}


@click.command("reprove")
@click.argument("names", nargs=-1, metavar="[NAME]…")
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
@reported
def command(names: tuple[str, ...], model: str, since: str, as_json: bool) -> None:
    """Prove the servers NAME again, or all in use: with this version's stages, on this base image,
    with their own cases and the calls they answered last. What is proved on another base than
    before becomes a new version; what fails stays as it is.
    """
    found = run(_reproved(load_settings(), names, model, _moment(since), as_json))
    if as_json:
        print_json([asdict(each) for each in found])
    if any(each.verdict == "failed" for each in found):
        raise SystemExit(FAILED)


async def _reproved(
    settings: Settings, names: tuple[str, ...], model: str, since: float, quiet: bool
) -> list[Reproved]:
    async with open_app(replace(settings, spares=0), "reprove") as app:
        author = _author(app, model)
        entries = [app.store.entry(name) for name in names] or _in_use(app, since)
        reproving = Reproving(app.store, app.forge)
        found = []
        for entry in entries:
            found.append(await reproving.reprove(entry, _silent, author))
            if not quiet:
                _print(found[-1])
        return found


def _in_use(app: App, since: float) -> list[Entry]:
    return [entry for entry in app.store.entries(CALLABLE) if entry.created >= since]


def _author(app: App, model: str) -> str:
    """Who writes, of those that `forge` knows. Raises OrchestratorError for another model than the
    configured one.
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


def _moment(day: str) -> float:
    if not day:
        return 0.0
    try:
        return datetime.fromisoformat(day).timestamp()
    except ValueError as error:
        raise OrchestratorError(f"{day!r} is no day such as 2026-01-31.") from error


def _silent(step: Step) -> None:
    """The command prints what became of each, not how."""


def _print(found: Reproved) -> None:
    say(f"{found.server} version {found.version}: {found.verdict}", STYLES[found.verdict])
    if found.reason:
        say(f"  {found.reason}")
    if found.job:
        say(f"  job {found.job} writes it anew")
