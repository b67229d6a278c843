"""`toolwright serve`: the MCP server that a client starts, or that one reaches over HTTP."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import click

from orchestrator.app import open_app
from orchestrator.control_process import ensure_control
from orchestrator.server import front_server, serve
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import engine_option, reported, run, say

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
@reported
def command(
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
        run(_serve(settings, not no_control))
        return
    place = Place(host, port, names)
    if show:
        _show(settings, place)
    else:
        run(_serve_http(settings, place, not no_control))


@dataclass(frozen=True)
class Place:
    """Where to listen over HTTP, and under which names besides the loopback's."""

    host: str
    port: int
    names: tuple[str, ...]

    @property
    def is_local(self) -> bool:
        return self.host in ("127.0.0.1", "::1", "localhost")


async def _serve(settings: Settings, with_control: bool) -> None:
    async with open_app(settings, "serve", patient=True) as app:
        if with_control:
            ensure_control(settings)
        await serve(app)


async def _serve_http(settings: Settings, place: Place, with_control: bool) -> None:
    # Loaded by name: a client that starts us waits for what is imported.
    http_front = importlib.import_module("orchestrator.http_front")
    token, is_new = http_front.kept_token(settings.http_token)
    with http_front.listening(place.host, place.port) as listener:
        say(f"MCP at {http_front.url_of(place.host, listener.getsockname()[1])}")
        if is_new:
            say(f"Authorization: Bearer {token}")
        else:
            say("the token is shown by `toolwright serve --http --url`")
        if not place.is_local:
            say(NO_TLS, "yellow")
        async with open_app(settings, "serve", patient=True) as app:
            if with_control:
                ensure_control(settings)
            own = () if place.is_local else (place.host,)
            await http_front.serve_http(front_server(app), listener, token, (*own, *place.names))


def _show(settings: Settings, place: Place) -> None:
    http_front = importlib.import_module("orchestrator.http_front")
    token, _ = http_front.kept_token(settings.http_token)
    click.echo(http_front.url_of(place.host, place.port))
    click.echo(f"Authorization: Bearer {token}")
