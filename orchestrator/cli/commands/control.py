"""`toolwright control`: run the control plane, open its page, stop it."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
import webbrowser
from dataclasses import dataclass
from pathlib import Path

import click
import psutil
import uvicorn
from starlette.applications import Starlette

from orchestrator.announcer import Announcer
from orchestrator.control import Control, keeping_heartbeat
from orchestrator.control_process import (
    Address,
    answering,
    post,
    stop_control,
    write_address,
)
from orchestrator.errors import ControlUnreachable
from orchestrator.freeze import PASSIVE, is_alive
from orchestrator.links import Links
from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.push import Deputy, Target, appoint, open_sealed
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import reported, run, say
from orchestrator.undumpable import be_undumpable
from orchestrator.vaults import open_vault
from orchestrator.weekly import weekly
from registry.files import locked
from registry.records import Process, new_id
from registry.signing import Signer
from registry.store import Store
from sandbox.docker_engine import kill_instance

IDLE_SECONDS = 600.0
CHECK_SECONDS = 10.0


@click.command("control")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, help="Port to listen on; 0 takes a free one.")
@click.option("--open", "show", is_flag=True, help="Open the page of the running control plane.")
@click.option("--url", "tell", is_flag=True, help="Print a link to the page that logs in once.")
@click.option("--stop", is_flag=True, help="Stop the running control plane.")
@click.option("--push", is_flag=True, help="Let messages carry links that decide; wants the PIN.")
@pin_option
@click.option("--until-idle", is_flag=True, help="End by itself when nobody needs it any more.")
@reported
def command(
    host: str,
    port: int,
    show: bool,
    tell: bool,
    stop: bool,
    push: bool,
    pin_file: Path | None,
    until_idle: bool,
) -> None:
    """Run the control plane: page, approvals, messages, kill switch, metrics."""
    settings = load_settings()
    if show or tell:
        _page(settings, show)
    elif stop:
        say("Stopped." if stop_control(settings) else "None is running.")
    else:
        signer = ask_pin(settings, pin_file) if push else None
        unlocked = _unlocked(settings, signer) if signer else Unlocked()
        run(_serve(settings, host, port, until_idle, unlocked))


@dataclass(frozen=True)
class Unlocked:
    """What the PIN opens for a control plane: where links go, and who signs for them."""

    targets: tuple[Target, ...] = ()
    deputy: Deputy | None = None


def _unlocked(settings: Settings, signer: Signer) -> Unlocked:
    be_undumpable()
    return Unlocked(open_sealed(settings.push, signer), appoint(signer, time.time()))


def _page(settings: Settings, show: bool) -> None:
    address = answering(settings)
    if address is None:
        raise ControlUnreachable("none is running")
    url = address.url + post(settings, "/login", {})["path"]
    say(url)
    if show:
        webbrowser.open(url)


async def _serve(
    settings: Settings, host: str, port: int, until_idle: bool, unlocked: Unlocked
) -> None:
    token = secrets.token_urlsafe(24)
    with socket.socket() as listener:
        with locked(settings.control):
            if until_idle and answering(settings) is not None:
                return
            address = _listening(listener, host, port, token)
            write_address(settings.control, address)
        say(f"control plane at {address.url}")
        process = new_id()
        with Store.open(settings.database_url, process) as store:
            now = time.time()
            start = psutil.Process().create_time()
            store.register_process(Process(process, os.getpid(), start, "control", now, now))
            try:
                announcer = Announcer(
                    store,
                    open_vault(settings),
                    Links(),
                    settings.public_url or address.url,
                    unlocked.targets,
                    unlocked.deputy,
                )
                control = Control(
                    settings,
                    store,
                    token,
                    lambda: kill_instance(settings.instance),
                    announcer=announcer,
                )
                await _answer(control, announcer, process, listener, until_idle)
            finally:
                store.remove_process(process)


def _listening(listener: socket.socket, host: str, port: int, token: str) -> Address:
    """Listen; who asks from now on waits until the server is up."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen()
    name = "127.0.0.1" if host == "0.0.0.0" else host
    return Address(f"http://{name}:{listener.getsockname()[1]}", token, os.getpid())


async def _answer(
    control: Control,
    announcer: Announcer,
    process: str,
    listener: socket.socket,
    until_idle: bool,
) -> None:
    application = control.application()
    server = uvicorn.Server(_server_config(application))
    async with keeping_heartbeat(control.store, process):
        idle = asyncio.create_task(_end_when_idle(server, control.store)) if until_idle else None
        announcing = asyncio.create_task(announcer.run())
        rebuilding = asyncio.create_task(weekly(control.settings, control.store))
        await server.serve(sockets=[listener])
        announcing.cancel()
        rebuilding.cancel()
        if idle:
            idle.cancel()


def _server_config(application: Starlette) -> uvicorn.Config:
    # Open pages listen to events without end; they do not hold up the end of the process.
    return uvicorn.Config(
        application, log_level="warning", access_log=False, timeout_graceful_shutdown=1
    )


async def _end_when_idle(server: uvicorn.Server, store: Store) -> None:
    """End the server when no process that it could stop has been alive for a while."""
    seen = time.monotonic()
    while time.monotonic() - seen < IDLE_SECONDS:
        await asyncio.sleep(CHECK_SECONDS)
        processes = await asyncio.to_thread(store.processes)
        if any(p.kind not in PASSIVE and is_alive(p) for p in processes):
            seen = time.monotonic()
    server.should_exit = True
