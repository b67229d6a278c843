"""`toolwright serve`: the MCP server that a client starts."""

from __future__ import annotations

import click

from orchestrator.app import open_app
from orchestrator.control_process import ensure_control
from orchestrator.server import serve
from orchestrator.settings import load_settings
from orchestrator.terminal import engine_option, reported, run


@click.command("serve")
@click.option("--no-control", is_flag=True, help="Do not start the control plane.")
@engine_option
@reported
def command(no_control: bool, engine: str | None) -> None:
    """Serve MCP over stdin and stdout; an MCP client starts this."""
    run(_serve(not no_control, engine))


async def _serve(with_control: bool, engine: str | None) -> None:
    settings = load_settings(engine=engine)
    async with open_app(settings, "serve", patient=True) as app:
        if with_control:
            ensure_control(settings)
        await serve(app)
