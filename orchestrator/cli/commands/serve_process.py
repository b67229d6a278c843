"""The process of `toolwright serve`, over stdio or streamable HTTP."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import click

from orchestrator.app import open_app
from orchestrator.cli.terminal import print_text, report_errors, run_coroutine
from orchestrator.frontends.early import EarlyAnswers
from orchestrator.frontends.stdio import serve_stdio
from orchestrator.processes.control_client import ensure_control
from orchestrator.processes.listening import open_listener
from orchestrator.processes.termination import TERMINATED, cancel_at_sigterm, ignore_sigterm
from orchestrator.settings import Settings, load_settings

SWITCH_SECONDS = 0.0005
"""How long a thread may keep the event loop waiting for the interpreter."""
NO_TLS = (
    "This is plain HTTP: what passes over the network, the token too, can be read there. Put a "
    "proxy with TLS in front."
)


@dataclass(frozen=True)
class ListenAddress:
    """The address to listen on over HTTP; `names` are accepted as Host besides the loopback's."""

    host: str
    port: int
    names: tuple[str, ...]

    @property
    def is_local(self) -> bool:
        return self.host in ("127.0.0.1", "::1", "localhost")


@report_errors
def serve_stdio_process(engine: str | None, early: EarlyAnswers | None, with_control: bool) -> None:
    """Serve stdin and stdout until end of file, where `early` has answered until now."""
    _run_until_told(_serve_stdio(load_settings(engine=engine), early, with_control))


@report_errors
def serve_http_process(engine: str | None, place: ListenAddress, with_control: bool) -> None:
    """Serve streamable HTTP at that address until the process is told to end."""
    _run_until_told(_serve_http(load_settings(engine=engine), place, with_control))


@report_errors
def show_address(engine: str | None, place: ListenAddress) -> None:
    """Print the URL and the token that a client needs."""
    http_front = importlib.import_module("orchestrator.frontends.http")
    token, _ = http_front.load_token(load_settings(engine=engine).http_token)
    click.echo(http_front.build_url(place.host, place.port))
    click.echo(f"Authorization: Bearer {token}")


def _run_until_told(serving: Coroutine[Any, Any, None]) -> None:
    """Serve; SIGTERM ends it as the end of its input does, with every call recorded."""

    async def serve() -> None:
        cancel_at_sigterm()
        # Python's own would add its 5 ms to each call that comes while records are written.
        sys.setswitchinterval(SWITCH_SECONDS)
        await serving

    try:
        run_coroutine(serve())
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None


async def _serve_stdio(settings: Settings, early: EarlyAnswers | None, with_control: bool) -> None:
    async with open_app(settings, "serve", patient=True) as app:
        if with_control:
            ensure_control(settings)
        try:
            await serve_stdio(app, early)
        finally:
            ignore_sigterm()


async def _serve_http(settings: Settings, place: ListenAddress, with_control: bool) -> None:
    # Loaded by name: over stdio nothing of it is needed at first.
    http_front = importlib.import_module("orchestrator.frontends.http")
    build_server = importlib.import_module("orchestrator.frontends.server").build_front_server
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
            await http_front.serve_http(build_server(app), listener, token, (*own, *place.names))
