"""`toolwright control`: run the control plane, open its page, stop it."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
import webbrowser
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
import uvicorn

from orchestrator.cli.terminal import (
    ask_pin,
    json_option,
    pin_option,
    print_done,
    print_text,
    report_errors,
    run_coroutine,
)
from orchestrator.cli.weekly import rebuild_weekly
from orchestrator.control.notify.announcer import Announcer
from orchestrator.control.notify.links import OneTimeLinks
from orchestrator.control.notify.targets import (
    Deputy,
    PushTarget,
    create_deputy,
    open_sealed_targets,
)
from orchestrator.control.process import disable_dumping, write_address
from orchestrator.control.server import ControlPlane, keep_heartbeat
from orchestrator.errors import ControlRunning, ControlUnreachable
from orchestrator.processes.control_client import (
    ControlAddress,
    find_control,
    post_to_control,
    stop_control,
)
from orchestrator.processes.http_server import QuietServer
from orchestrator.processes.kill import PASSIVE
from orchestrator.processes.listening import open_listener
from orchestrator.processes.liveness import is_alive, register_process
from orchestrator.settings import Settings, load_settings
from registry.database.files import lock_file
from registry.models import generate_id
from registry.secrets.signing import Signer
from registry.secrets.vault import open_vault
from registry.store import Store
from sandbox.engines.docker.engine import kill_instance

IDLE_SECONDS = 600.0
CHECK_SECONDS = 10.0


@click.command("control")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--open", "show", is_flag=True, help="Open the page of the running control plane.")
@click.option("--url", "tell", is_flag=True, help="Print a link to the page that logs in once.")
@click.option("--plain", is_flag=True, help="With --open or --url: a page that needs no script.")
@click.option("--stop", is_flag=True, help="Stop the running control plane.")
@click.option(
    "--push", is_flag=True, help="Let messages carry links that decide. Asks for the PIN."
)
@pin_option
@click.option("--until-idle", is_flag=True, help="End by itself when nobody needs it any more.")
@json_option
@report_errors
def control_command(
    host: str,
    port: int,
    show: bool,
    tell: bool,
    plain: bool,
    stop: bool,
    push: bool,
    pin_file: Path | None,
    until_idle: bool,
    as_json: bool,
) -> None:
    """Run the control plane: page, approvals, messages, kill switch, metrics."""
    settings = load_settings()
    if show or tell:
        _show_page(settings, show, plain, as_json)
    elif stop:
        stopped = stop_control(settings)
        print_done(as_json, "Stopped." if stopped else "None is running.", stopped=stopped)
    else:
        signer = ask_pin(settings, pin_file) if push else None
        unlocked = _unlock_push(settings, signer) if signer else UnlockedPush()
        run_coroutine(_serve_control(settings, host, port, until_idle, unlocked))


@dataclass(frozen=True)
class UnlockedPush:
    """What the PIN opens for a control plane: the targets of links, and the key that signs."""

    targets: tuple[PushTarget, ...] = ()
    deputy: Deputy | None = None


def _unlock_push(settings: Settings, signer: Signer) -> UnlockedPush:
    return UnlockedPush(
        open_sealed_targets(settings.push, signer), create_deputy(signer, time.time())
    )


def _show_page(settings: Settings, show: bool, plain: bool, as_json: bool) -> None:
    address = find_control(settings)
    if address is None:
        raise ControlUnreachable("none is running")
    url = post_to_control(settings, "/login", {"plain": plain})["url"]
    print_done(as_json, url, url=url)
    if show:
        webbrowser.open(url)


async def _serve_control(
    settings: Settings, host: str, port: int, until_idle: bool, unlocked: UnlockedPush
) -> None:
    # PINs come through its memory.
    disable_dumping()
    token = secrets.token_urlsafe(24)
    with ExitStack() as opened:
        with lock_file(settings.control):
            running = find_control(settings)
            if running is not None:
                if until_idle:
                    return
                raise ControlRunning(running.url, running.pid)
            listener = opened.enter_context(open_listener(host, port))
            address = _build_address(listener, host, token, unlocked)
            write_address(settings.control, address)
            process = generate_id()
            # Until it is open: another one that starts while the database is busy would take an
            # address that does not answer yet for a dead process's, and run beside this one.
            store = opened.enter_context(Store.open(settings.database_url, process))
        print_text(f"control plane at {address.url}")
        register_process(store.processes, process, "control")
        try:
            announcer = Announcer(
                store,
                open_vault(settings),
                OneTimeLinks(),
                settings.public_url or address.url,
                unlocked.targets,
                unlocked.deputy,
            )
            control = ControlPlane(
                settings,
                store,
                token,
                lambda: kill_instance(settings.instance),
                announcer=announcer,
            )
            await _run_server(control, announcer, process, listener, until_idle)
        finally:
            store.processes.remove(process)


def _build_address(
    listener: socket.socket, host: str, token: str, unlocked: UnlockedPush
) -> ControlAddress:
    """Where the socket listens; connections wait there until the server is up."""
    everywhere = "0.0.0.0"  # nosec B104 # only compared
    name = "127.0.0.1" if host == everywhere else host
    until = unlocked.deputy.until if unlocked.deputy else 0.0
    return ControlAddress(f"http://{name}:{listener.getsockname()[1]}", token, os.getpid(), until)


async def _run_server(
    control: ControlPlane,
    announcer: Announcer,
    process: str,
    listener: socket.socket,
    until_idle: bool,
) -> None:
    application = control.build_application()
    server = QuietServer(application)
    async with keep_heartbeat(control.store.processes, process):
        idle = asyncio.create_task(_end_when_idle(server, control.store)) if until_idle else None
        announcing = asyncio.create_task(announcer.watch_approvals())
        rebuilding = asyncio.create_task(rebuild_weekly(control.settings, control.store.processes))
        await server.serve(sockets=[listener])
        announcing.cancel()
        rebuilding.cancel()
        if idle:
            idle.cancel()


async def _end_when_idle(server: uvicorn.Server, store: Store) -> None:
    """Stop the server when no active process has been alive for 10 minutes."""
    seen = time.monotonic()
    while time.monotonic() - seen < IDLE_SECONDS:
        await asyncio.sleep(CHECK_SECONDS)
        processes = await asyncio.to_thread(store.processes.find)
        if any(p.kind not in PASSIVE and is_alive(p) for p in processes):
            seen = time.monotonic()
    server.should_exit = True
