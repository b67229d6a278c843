"""`toolwright forge`: make, prove and register a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forge.selection import credential
from orchestrator.app import App, open_app
from orchestrator.authorship import WRITERS
from orchestrator.granting import allow_host
from orchestrator.jobreport import tell
from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.resuming import carried_out
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import (
    auth_option,
    engine_option,
    json_option,
    reported,
    run,
)
from registry.records import Job
from registry.signing import Signer


@click.command("forge")
@click.argument("task")
@click.option(
    "--source", default="", help="Where the API's description or documentation is, or `none`."
)
@click.option("--parent", default="", help="A registered server that your code is to change.")
@click.option("--name", default="", help="A name; the parent's own for its next version.")
@click.option("--base-url", default="", help="Replaces the server that the document names.")
@auth_option
@click.option("--allow", multiple=True, help="Allow this HOST:PORT as well. Asks for the PIN.")
@click.option(
    "--author",
    type=click.Choice(WRITERS),
    default=None,
    help="Who writes code where it is needed; by default the configured endpoint, else a client.",
)
@click.option("--experimental", is_flag=True, help="Register even where a stage fails.")
@click.option("--brief", is_flag=True, help="Print the whole brief where the job waits for code.")
@pin_option
@json_option
@engine_option
@reported
def command(
    task: str,
    source: str,
    parent: str,
    name: str,
    base_url: str,
    auth: tuple[str, ...],
    allow: tuple[str, ...],
    author: str | None,
    experimental: bool,
    brief: bool,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """Make a server that can do TASK from an API description, prove it and register it.

    Where no API is named, or with --parent, code is needed. The endpoint of OPENAI_MODEL writes it
    where one is configured (docs/authors.md). Else the job waits, with a brief for whoever writes:
    --brief prints it. What was written is handed in with `toolwright submit` or by an MCP client.
    """
    for written in auth:
        credential(written)
    settings = load_settings(engine=engine)
    signer = ask_pin(settings, pin_file) if allow or experimental else None
    request = {
        "task": task,
        "source": _absolute(source),
        "parent": parent,
        "name": name,
        "base_url": base_url,
        "auth": list(auth),
        "author": author or "",
        "experimental": experimental,
    }
    job = run(_forged(settings, request, allow, signer, as_json))
    tell(job, as_json, brief)


def _absolute(source: str) -> str:
    """A path that is there as an absolute one: a job may be carried out elsewhere."""
    path = Path(source).expanduser()
    return str(path.absolute()) if source and path.exists() else source


async def _forged(
    settings: Settings,
    request: dict[str, Any],
    allow: tuple[str, ...],
    signer: Signer | None,
    quiet: bool,
) -> Job:
    async with open_app(settings, "forge") as app:
        if signer is not None:
            for host in allow:
                allow_host(app.store, host, "terminal", signer)
        return await _run(app, request, quiet)


async def _run(app: App, request: dict[str, Any], quiet: bool) -> Job:
    return await carried_out(app, app.jobs.create("forge", request), quiet)
