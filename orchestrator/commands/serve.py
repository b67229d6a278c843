"""`toolwright serve`: the MCP server that a client starts."""

from __future__ import annotations

import click

from orchestrator.app import open_app
from orchestrator.control_process import ensure_control
from orchestrator.server import serve
from orchestrator.settings import load_settings
from orchestrator.terminal import reported, run


@click.command("serve")
@click.option("--no-control", is_flag=True, help="Do not start the control plane.")
@reported
def command(no_control: bool) -> None:
    """Serve MCP over stdin and stdout; an MCP client starts this."""
    run(_serve(not no_control))


async def _serve(with_control: bool) -> None:
    settings = load_settings()
    async with open_app(settings, "serve", patient=True) as app:
        if with_control:
            ensure_control(settings)
        await serve(app)
