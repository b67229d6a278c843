"""The context of a process: its database rows, bundles, vault, grants, catalog, signals and
network.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from orchestrator.approvals.freezing import FreezeWatch
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.gateway.audit_writer import AuditWriter
from orchestrator.gateway.catalog import Catalog
from orchestrator.processes.liveness import register_process
from orchestrator.processes.signals import Signals
from orchestrator.settings import Settings
from registry.models import generate_id
from registry.secrets.vault import Vault, open_vault
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.broker.live import LiveHttp
from sandbox.broker.throttle import Throttle
from sandbox.broker.throttle_stores import FileStore
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Upstream
from sandbox.wire.policy import Origin

RESPONSE_BYTES = 32 * 1024 * 1024


class Network:
    """Connection pools, one per set of private origins that people allowed."""

    def __init__(self) -> None:
        self._pools: dict[frozenset[Origin], LiveHttp] = {}

    def open_upstream(self, private: frozenset[Origin]) -> Upstream:
        if private not in self._pools:
            self._pools[private] = LiveHttp(private, response_bytes=RESPONSE_BYTES)
        return self._pools[private]

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()


@dataclass(frozen=True)
class Context:
    """Made by `open_context`. `process` is the id under which other processes know this one."""

    settings: Settings
    process: str
    store: Store
    vault: Vault
    shelf: Bundles
    kill_switch: KillSwitch
    signed_policy: SignedPolicy
    consents: Grants
    roster: Catalog
    pulse: Signals
    network: Network
    throttle: Throttle
    footnotes: AuditWriter


@asynccontextmanager
async def open_context(settings: Settings) -> AsyncIterator[Context]:
    """Open an installation as a new process, registered as one that is starting."""
    process = generate_id()
    async with AsyncExitStack() as stack:
        store = stack.enter_context(
            Store.open(settings.database_url, process, settings.recordings_mb << 20)
        )
        store.search.bands = settings.bands.build_search_bands()
        vault, shelf = open_vault(settings), Bundles(settings.home, store.servers)
        stack.enter_context(_register_starting(store, process))
        kill_switch, signed_policy = KillSwitch(), SignedPolicy(store, build_authority(settings))
        roster = Catalog(store, shelf, signed_policy)
        network, footnotes = Network(), AuditWriter(store.audit)
        stack.push_async_callback(network.close)
        stack.push_async_callback(footnotes.close)
        yield Context(
            settings,
            process,
            store,
            vault,
            shelf,
            kill_switch,
            signed_policy,
            Grants(store, signed_policy.find_key, signed_policy.trail),
            roster,
            Signals(
                store,
                kill_switch,
                process,
                roster.forget_servers,
                FreezeWatch(signed_policy).judge_freeze,
            ),
            network,
            Throttle(store=FileStore(settings.home)),
            footnotes,
        )


@contextmanager
def _register_starting(store: Store, process: str) -> Iterator[None]:
    register_process(store.processes, process, "starting")
    try:
        yield
    finally:
        # What was begun and not ended is another process's, or nobody's, from now on.
        now = time.time()
        store.calls.settle_unknown((process,), now)
        store.jobs.requeue_orphans((process,), now)
        store.processes.remove(process)
