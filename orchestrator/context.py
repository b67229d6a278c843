"""What all work of a process stands on: its rows and files, what people allowed, its way out."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

import psutil

from orchestrator.clearance import Clearance
from orchestrator.consents import Consents
from orchestrator.footnotes import Footnotes
from orchestrator.network import Network
from orchestrator.pin import authority
from orchestrator.pulse import Pulse
from orchestrator.roster import Roster
from orchestrator.settings import Settings
from orchestrator.shelf import Shelf
from orchestrator.vaults import open_vault
from registry.records import Process, new_id
from registry.store import Store
from registry.vault import Vault
from sandbox.brake import Brake
from sandbox.pauses import Pauses
from sandbox.sharedturns import SharedTurns
from sandbox.throttle import MAX_PAUSE, Throttle


@dataclass(frozen=True)
class Ground:
    """Made by `open_ground`. `process` is the id under which other processes know this one."""

    settings: Settings
    process: str
    store: Store
    vault: Vault
    shelf: Shelf
    brake: Brake
    clearance: Clearance
    consents: Consents
    roster: Roster
    pulse: Pulse
    network: Network
    throttle: Throttle
    footnotes: Footnotes


@asynccontextmanager
async def open_ground(settings: Settings) -> AsyncIterator[Ground]:
    """Open an installation as a new process, registered as one that is starting."""
    process = new_id()
    async with AsyncExitStack() as stack:
        store = stack.enter_context(
            Store.open(settings.database_url, process, settings.recordings_mb << 20)
        )
        vault, shelf = open_vault(settings), Shelf(settings.home, store)
        stack.enter_context(_registered(store, process))
        brake, clearance = Brake(), Clearance(store, authority(settings))
        roster = Roster(store, shelf, clearance)
        network, footnotes = Network(), Footnotes(store)
        stack.push_async_callback(network.close)
        stack.push_async_callback(footnotes.close)
        yield Ground(
            settings,
            process,
            store,
            vault,
            shelf,
            brake,
            clearance,
            Consents(store, clearance.key),
            roster,
            Pulse(store, brake, process, roster.forget),
            network,
            Throttle(
                shared=Pauses(settings.home / "pauses", MAX_PAUSE),
                turns=SharedTurns(settings.home / "turns"),
            ),
            footnotes,
        )


def register(store: Store, process: str, kind: str) -> None:
    """Say among the processes of the installation what this one is."""
    now = time.time()
    start = psutil.Process().create_time()
    store.register_process(Process(process, os.getpid(), start, kind, now, now))


@contextmanager
def _registered(store: Store, process: str) -> Iterator[None]:
    register(store, process, "starting")
    try:
        yield
    finally:
        # What was begun and not ended is another process's, or nobody's, from now on.
        now = time.time()
        store.settle_unknown((process,), now)
        store.requeue_orphans((process,), now)
        store.remove_process(process)
