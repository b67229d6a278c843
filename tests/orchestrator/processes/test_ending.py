"""What a process that ends still hears of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from orchestrator.app import open_app
from orchestrator.approvals.sending import TAKERS
from orchestrator.calling import open_caller
from orchestrator.control.console import WORKERS
from orchestrator.gateway.approved_writes import InFlight
from orchestrator.processes.kill import PASSIVE
from orchestrator.settings import Settings
from registry.store import Store
from sandbox.killswitch import KillSwitch

Parts = tuple[InFlight, KillSwitch]


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncIterator[Parts]:
    async with open_app(settings, "serve", patient=True) as app:
        yield app.dispatch.writing, app.kill_switch


@asynccontextmanager
async def open_command(settings: Settings) -> AsyncIterator[Parts]:
    async with open_caller(settings, "call") as caller:
        yield caller.dispatch.writing, caller.kill_switch


@pytest.mark.parametrize("open_process", [open_server, open_command])
def test_a_freeze_stops_a_write_that_a_process_waits_for_at_its_end(
    settings: Settings,
    store: Store,
    open_process: Callable[[Settings], AbstractAsyncContextManager[Parts]],
) -> None:
    async def run() -> tuple[int, list[int]]:
        ending, stopped = asyncio.Event(), asyncio.Event()

        async def write() -> tuple[int, list[int]]:
            await ending.wait()
            epoch = store.processes.freeze(time.time(), "test")
            await stopped.wait()
            return epoch, [each.acknowledged_epoch for each in store.processes.find()]

        with ExitStack() as stack:
            async with open_process(replace(settings, engine="wasm")) as (writing, kill_switch):
                stack.enter_context(kill_switch.on_engage(stopped.set))
                begun = writing.start_work(write())
                ending.set()
            return await begun

    epoch, acknowledged = asyncio.run(run())
    assert acknowledged == [epoch]


def test_who_ends_is_no_worker_that_others_count_on(settings: Settings, store: Store) -> None:
    async def run() -> list[str]:
        ending = asyncio.Event()

        async def write() -> list[str]:
            await ending.wait()
            return [each.kind for each in store.processes.find()]

        async with open_server(replace(settings, engine="wasm")) as (writing, _):
            begun = writing.start_work(write())
            ending.set()
        return await begun

    (kind,) = asyncio.run(run())
    # A freeze waits for it all the same.
    assert kind not in WORKERS | TAKERS | PASSIVE
