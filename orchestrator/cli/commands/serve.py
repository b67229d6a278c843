"""`toolwright serve`: serve MCP over stdio, or over streamable HTTP."""

from __future__ import annotations

import importlib

import click

from orchestrator.cli.options import engine_option
from orchestrator.frontends.early import find_front_greeter, start_early_answers

PORT = 8970


@click.command("serve")
@click.option("--no-control", is_flag=True, help="Do not start the control plane.")
@click.option("--http", is_flag=True, help="Serve over streamable HTTP instead, with a token.")
@click.option("--port", default=PORT, show_default=True, help="With --http: the port; 0 is any.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on."
)
@click.option("--name", "names", multiple=True, help="With --http: another name of this host.")
@click.option("--url", "show", is_flag=True, help="With --http: print URL and token, then end.")
@engine_option
def serve_command(
    no_control: bool,
    http: bool,
    port: int,
    host: str,
    names: tuple[str, ...],
    show: bool,
    engine: str | None,
) -> None:
    """Serve MCP over stdin and stdout; an MCP client starts this. With --http over HTTP, for
    clients that cannot start a process.
    """
    if not http and (names or show):
        raise click.UsageError("--name and --url go with --http")
    early = None if http else start_early_answers(find_front_greeter)
    # Loaded by name, and after that: a client that starts us waits for its first answer.
    process = importlib.import_module("orchestrator.cli.commands.serve_process")
    if not http:
        process.serve_stdio_process(engine, early, not no_control)
        return
    place = process.ListenAddress(host, port, names)
    if show:
        process.show_address(engine, place)
    else:
        process.serve_http_process(engine, place, not no_control)
