"""`toolwright serve`: serve MCP over stdio, or over streamable HTTP."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import click

from orchestrator.app import open_app
from orchestrator.cli.terminal import engine_option, print_text, report_errors, run_coroutine
from orchestrator.frontends.server import build_front_server, serve_stdio
from orchestrator.processes.control_client import ensure_control
from orchestrator.processes.listening import open_listener
from orchestrator.settings import Settings, load_settings

PORT = 8970
NO_TLS = (
    "This is plain HTTP: what passes over the network, the token too, can be read there. Put a "
    "proxy with TLS in front."
)


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
@report_errors
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
    settings = load_settings(engine=engine)
    if not http:
        if names or show:
            raise click.UsageError("--name and --url go with --http")
        run_coroutine(_serve_stdio(settings, not no_control))
        return
    place = ListenAddress(host, port, names)
    if show:
        _print_address(settings, place)
    else:
        run_coroutine(_serve_http(settings, place, not no_control))


@dataclass(frozen=True)
class ListenAddress:
    """The address to listen on over HTTP; `names` are accepted as Host besides the loopback's."""

    host: str
    port: int
    names: tuple[str, ...]

    @property
    def is_local(self) -> bool:
        return self.host in ("127.0.0.1", "::1", "localhost")


async def _serve_stdio(settings: Settings, with_control: bool) -> None:
    async with open_app(settings, "serve", patient=True) as app:
        if with_control:
            ensure_control(settings)
        await serve_stdio(app)


async def _serve_http(settings: Settings, place: ListenAddress, with_control: bool) -> None:
    # Loaded by name: a client that starts us waits for what is imported.
    http_front = importlib.import_module("orchestrator.frontends.http")
    token, is_new = http_front.load_token(settings.http_token)
    with open_listener(place.host, place.port) as listener:
        print_text(f"MCP at {http_front.build_url(place.host, listener.getsockname()[1])}")
        if is_new:
            print_text(f"Authorization: Bearer {token}")
        else:
            print_text("the token is shown by `toolwright serve --http --url`")
        if not place.is_local:
            print_text(NO_TLS, "yellow")
        async with open_app(settings, "serve", patient=True) as app:
            if with_control:
                ensure_control(settings)
            own = () if place.is_local else (place.host,)
            await http_front.serve_http(
                build_front_server(app), listener, token, (*own, *place.names)
            )


def _print_address(settings: Settings, place: ListenAddress) -> None:
    http_front = importlib.import_module("orchestrator.frontends.http")
    token, _ = http_front.load_token(settings.http_token)
    click.echo(http_front.build_url(place.host, place.port))
    click.echo(f"Authorization: Bearer {token}")
