"""`toolwright run`: one forged server by itself, for any MCP client."""

from __future__ import annotations

import click

from orchestrator.app import open_app
from orchestrator.control_process import ensure_control
from orchestrator.direct import serve_one
from orchestrator.settings import load_settings
from orchestrator.terminal import reported
from orchestrator.terminal import run as run_coroutine


@click.command("run")
@click.argument("name")
@click.option("--no-control", is_flag=True, help="Do not start the control plane.")
@reported
def command(name: str, no_control: bool) -> None:
    """Serve the registered server NAME over stdin and stdout, caged, its writes gated."""
    run_coroutine(_serve(name, not no_control))


async def _serve(name: str, with_control: bool) -> None:
    settings = load_settings()
    async with open_app(settings, "run", patient=True) as app:
        app.store.entry(name)
        if with_control:
            ensure_control(settings)
        await serve_one(app, name)
