"""`toolwright forge`: make, prove and register a server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from orchestrator.app import App, open_app
from orchestrator.granting import allow_host
from orchestrator.progress import Progress
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import (
    FAILED,
    WAITING,
    ask_pin,
    engine_option,
    json_option,
    pin_option,
    print_json,
    reported,
    run,
    say,
)
from registry.records import Job


@click.command("forge")
@click.argument("task")
@click.option("--source", default="", help="Path or URL of an API description, or the API's host.")
@click.option("--name", default="", help="A name for the server.")
@click.option("--base-url", default="", help="Replaces the server that the document names.")
@click.option("--allow", multiple=True, help="Allow this HOST:PORT as well. Asks for the PIN.")
@click.option("--experimental", is_flag=True, help="Register even where a stage fails.")
@pin_option
@json_option
@engine_option
@reported
def command(
    task: str,
    source: str,
    name: str,
    base_url: str,
    allow: tuple[str, ...],
    experimental: bool,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """Make a server that can do TASK from an API description, prove it and register it."""
    settings = load_settings(engine=engine)
    if allow or experimental:
        ask_pin(settings, pin_file)
    request = {
        "task": task,
        "source": _absolute(source),
        "name": name,
        "base_url": base_url,
        "experimental": experimental,
    }
    job = run(_forged(settings, request, allow, as_json))
    if as_json:
        print_json(
            {"job": job.id, "state": job.state, "message": job.message, "result": job.result}
        )
    elif job.state == "done":
        _print(job.result)
    else:
        say(job.message, "red")
    if job.state != "done":
        raise SystemExit(WAITING if isinstance(job.result, dict) else FAILED)


def _absolute(source: str) -> str:
    """A path that is there as an absolute one: a job may be carried out elsewhere."""
    path = Path(source).expanduser()
    return str(path.absolute()) if source and path.exists() else source


async def _forged(
    settings: Settings, request: dict[str, Any], allow: tuple[str, ...], quiet: bool
) -> Job:
    async with open_app(settings, "forge") as app:
        for host in allow:
            allow_host(app.store, host, "terminal")
        return await _run(app, request, quiet)


async def _run(app: App, request: dict[str, Any], quiet: bool) -> Job:
    job = app.jobs.create("forge", request)
    claimed = app.store.claim_job(job.id, app.process, time.time())
    assert claimed is not None
    with Progress(app.store, job.id, quiet):
        await app.jobs.run(claimed)
    return app.store.job(job.id)


def _print(result: dict[str, Any]) -> None:
    say(f"{result['server']} version {result['version']} is {result['state']}.", "bold green")
    say(f"{len(result['tools'])} tools; try: toolwright show {result['server']}")
    for problem in result["problems"]:
        say(f"left out: {problem}", "yellow")
