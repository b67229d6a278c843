"""What a long-lived process does beside answering, and cleaning up after those that died."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count

import structlog

from orchestrator.clearance import Clearance
from orchestrator.drift import Drift
from orchestrator.edits import Edits
from orchestrator.freeze import is_alive
from orchestrator.jobs import Jobs
from orchestrator.pulse import Pulse
from orchestrator.sessions import ReadSessions
from orchestrator.shelf import Shelf
from registry.errors import RegistryError
from registry.notary import Notary
from registry.signing import fingerprint
from registry.store import Store
from sandbox.brake import Brake
from sandbox.containers import remove_container
from sandbox.docker_engine import LABEL, connect, list_containers
from sandbox.errors import EngineUnavailable, SandboxError

CHORE_SECONDS = 5.0
CHORES_PER_SIGNATURE = 12
EDIT_SECONDS = 1.0
SWEEP_SECONDS = 30.0
DRIFT_SECONDS = 20.0

log = structlog.get_logger()


def recover(store: Store, shelf: Shelf, instance: str) -> tuple[str, ...]:
    """Clean up after processes that died: their calls, jobs, containers and half-written files.

    Returns the ids of the dead processes.
    """
    dead = tuple(p.id for p in store.processes() if not is_alive(p))
    now = time.time()
    store.settle_unknown(dead, now)
    shelf.recover()
    store.requeue_orphans(dead, now)
    with suppress(EngineUnavailable):
        _sweep(store, instance)
    for process in dead:
        store.remove_process(process)
    return dead


def _sweep(store: Store, instance: str) -> None:
    """Remove the sandboxes of processes that died, or that ended while the engine was away."""
    with closing(connect()) as client:
        # Processes are stored before their first sandbox is made, so these are asked for later.
        found = list_containers(client, instance=instance)
        alive = {process.id for process in store.processes() if is_alive(process)}
        for container in found:
            if container["Labels"][f"{LABEL}.process"] not in alive:
                remove_container(client.api, container["Id"])


async def take_up_work(
    jobs: Jobs, carry_out: Callable[[], Awaitable[None]], pulse: Pulse, brake: Brake
) -> None:
    """Jobs and approvals, as they come."""
    while True:
        if not brake.engaged:
            with _reported("taking up work"):
                jobs.advance()
                await carry_out()
        await pulse.work(1.0)


async def take_up_edits(edits: Edits, brake: Brake) -> None:
    """Bundles that people change."""
    while True:
        await asyncio.sleep(EDIT_SECONDS)
        if not brake.engaged:
            with _reported("looking for edited bundles"):
                await edits.take_up()


async def watch_descriptions(drift: Drift, brake: Brake) -> None:
    """Descriptions of APIs, one at a time, each once a day."""
    while True:
        await asyncio.sleep(DRIFT_SECONDS)
        if not brake.engaged:
            with _reported("looking at an API's description"):
                await drift.look()


async def do_chores(
    store: Store, sessions: ReadSessions, notary: Notary, clearance: Clearance
) -> None:
    """Close idle sessions, expire approvals, sign the audit's heads every minute."""
    for turn in count():
        with _reported("chores"):
            await sessions.close_idle()
            await asyncio.to_thread(store.expire, time.time())
            if turn % CHORES_PER_SIGNATURE == 0:
                key = clearance.key()
                named = fingerprint(key) if key else ""
                await asyncio.to_thread(notary.sign_heads, store, time.time(), named)
        await asyncio.sleep(CHORE_SECONDS)


async def sweep_dead(store: Store, shelf: Shelf, instance: str) -> None:
    """Clean up after other processes that die while this one lives."""
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        with _reported("sweeping"):
            await asyncio.to_thread(recover, store, shelf, instance)


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """Let a long-lived process go on after trouble with its disk, and say so."""
    try:
        yield
    except (RegistryError, SandboxError, OSError) as error:
        log.error(f"{what} failed, to be tried again", reason=str(error))
