"""Background work of long-lived processes: jobs, edits, descriptions, idle sessions, signed audit
heads, and cleaning up after dead processes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

import structlog

from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.forging.edits import EditWatcher
from orchestrator.gateway.sessions import ReadSessions
from orchestrator.healing.monitor import Healing
from orchestrator.jobs.runner import JobRunner
from orchestrator.processes.memory import return_freed_memory
from orchestrator.processes.signals import Signals
from orchestrator.processes.watchdog import LoopWatchdog
from orchestrator.recovery import clean_up_dead
from registry.audit.heads import HeadSigner
from registry.errors import RegistryError
from registry.health.repairs import DAY
from registry.search.encoder import is_installed
from registry.secrets.signing import compute_fingerprint
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.errors import SandboxError
from sandbox.killswitch import KillSwitch

if TYPE_CHECKING:
    from orchestrator.healing.drift import Drift

CHORE_SECONDS = 5.0
CHORES_PER_MINUTE = 12
EDIT_SECONDS = 1.0
AHEAD_SECONDS = 3.0
SWEEP_SECONDS = 30.0
DRIFT_SECONDS = 20.0
ENCODE_SECONDS = 5.0
ENCODED_AT_ONCE = 16
ENCODE_PAUSE_SECONDS = 0.2

log = structlog.get_logger()


async def load_ahead(
    loads: Iterable[Callable[[], Awaitable[object]]], is_calling: Callable[[], bool]
) -> None:
    """Load in turn what the first job and the first task take before they come, but after what a
    client asks at first, and while no call runs, which would wait for the interpreter.
    """
    for load in loads:
        await asyncio.sleep(AHEAD_SECONDS)
        while is_calling():
            await asyncio.sleep(AHEAD_SECONDS)
        await load()


async def take_up_work(
    jobs: JobRunner,
    carry_out: Callable[[], Awaitable[None]],
    pulse: Signals,
    kill_switch: KillSwitch,
) -> None:
    """Jobs and approvals, as they come."""
    while True:
        if not kill_switch.engaged:
            with _log_errors("taking up work"):
                jobs.start_queued()
                await carry_out()
        await pulse.wait_for_work(1.0)


async def take_up_edits(edits: EditWatcher, kill_switch: KillSwitch) -> None:
    """Bundles that people change."""
    while True:
        await asyncio.sleep(EDIT_SECONDS)
        if not kill_switch.engaged:
            with _log_errors("looking for edited bundles"):
                await edits.publish_edits()


async def watch_descriptions(
    store: Store, healing: Healing, load_drift: Callable[[], Drift], kill_switch: KillSwitch
) -> None:
    """Descriptions of APIs, each once a day; and repairs that are to be tried again. What looks at
    them is loaded when there is one to be looked at.
    """
    while True:
        await asyncio.sleep(DRIFT_SECONDS)
        if not kill_switch.engaged:
            with _log_errors("looking at an API's description"):
                if await asyncio.to_thread(
                    store.descriptions.find_due_servers, time.time(), DAY, 1
                ):
                    drift = await asyncio.to_thread(load_drift)
                    await drift.check_due()
                await asyncio.to_thread(healing.retry_repair)


async def encode_tools(store: Store, wanted: bool) -> None:
    """Vectors of newly registered tools, a few at a time. Without the extra `semantic` none are
    made; where they are not `wanted`, those that are there go.
    """
    await asyncio.sleep(ENCODE_SECONDS)
    if not wanted:
        with _log_errors("removing vectors"):
            await asyncio.to_thread(store.search.clear_vectors)
    while wanted and await asyncio.to_thread(is_installed):
        with _log_errors("encoding tools"):
            while await asyncio.to_thread(store.search.fill_vectors, ENCODED_AT_ONCE):
                await asyncio.sleep(ENCODE_PAUSE_SECONDS)
        await asyncio.sleep(ENCODE_SECONDS)


async def run_chores(
    store: Store,
    sessions: ReadSessions,
    notary: HeadSigner,
    signed_policy: SignedPolicy,
    watchdog: LoopWatchdog,
    is_calling: Callable[[], bool],
    forget_sealed: Callable[[], None],
) -> None:
    """Close idle sessions, expire approvals and kept results, report what held up the event loop,
    give back memory; every minute forget what was sealed for approvals that have ended, and sign
    the audit's heads.

    Memory is given back while no call runs, and every minute at the latest: a call that allocates
    would wait for it.
    """
    for turn in count():
        minute = turn % CHORES_PER_MINUTE == 0
        with _log_errors("chores"):
            await sessions.close_idle()
            await watchdog.report()
            await asyncio.to_thread(_drop_overdue, store, minute or not is_calling())
            if minute:
                await asyncio.to_thread(forget_sealed)
                # Here, so that no call waits for many rows to be checked.
                await asyncio.to_thread(signed_policy.trail.read)
                key = signed_policy.find_key()
                named = compute_fingerprint(key) if key else ""
                await asyncio.to_thread(notary.sign_heads, store.audit, time.time(), named)
        await asyncio.sleep(CHORE_SECONDS)


def _drop_overdue(store: Store, give_back: bool) -> None:
    """In one thread: to wake it takes longer than all that it does on most turns."""
    store.approvals.expire_overdue(time.time())
    store.kept_results.drop_expired(time.time())
    if give_back:
        return_freed_memory()


async def sweep_dead(store: Store, shelf: Bundles, instance: str) -> None:
    """Clean up after other processes that die while this one lives."""
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        with _log_errors("sweeping"):
            await asyncio.to_thread(clean_up_dead, store, shelf, instance)


@contextmanager
def _log_errors(what: str) -> Iterator[None]:
    """Let a long-lived process go on after trouble with its disk, and say so."""
    try:
        yield
    # Also where it came in a group, as out of what is done several at a time.
    except* (RegistryError, SandboxError, OSError) as group:
        reason = "; ".join(map(str, group.exceptions))
        log.error(f"{what} failed, to be tried again", reason=reason)
