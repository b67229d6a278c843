"""Cleaning up after processes of a home that died."""

from __future__ import annotations

import time
from contextlib import closing, suppress

from orchestrator.processes.liveness import is_alive
from registry.processes import ProcessTable
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.engines.docker.containers import remove_container
from sandbox.engines.docker.engine import LABEL, connect_engine, list_containers
from sandbox.errors import EngineUnavailable


def clean_up_dead(store: Store, shelf: Bundles, instance: str) -> tuple[str, ...]:
    """Clean up after processes that died: their calls, jobs, containers and half-written files.

    Returns the ids of the dead processes.
    """
    dead = tuple(p.id for p in store.processes.find() if not is_alive(p))
    now = time.time()
    store.calls.settle_unknown(dead, now)
    shelf.recover_files()
    store.jobs.requeue_orphans(dead, now)
    with suppress(EngineUnavailable):
        _remove_dead_sandboxes(store.processes, instance)
    for process in dead:
        store.processes.remove(process)
    return dead


def _remove_dead_sandboxes(processes: ProcessTable, instance: str) -> None:
    """Remove the sandboxes of processes that died, or that ended while the engine was away."""
    with closing(connect_engine()) as client:
        # Processes are stored before their first sandbox is made, so these are asked for later.
        found = list_containers(client, instance=instance)
        alive = {process.id for process in processes.find() if is_alive(process)}
        for container in found:
            if container["Labels"][f"{LABEL}.process"] not in alive:
                remove_container(client.api, container["Id"])
