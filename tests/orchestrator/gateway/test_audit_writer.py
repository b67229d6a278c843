"""When the records of calls are written, and what begins meanwhile."""

from __future__ import annotations

import asyncio
import selectors
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.gateway.audit_writer import GROUP_SECONDS, MAX_BEHIND, CallWriter
from registry.models import Invocation
from registry.store import Store
from tests.registry.samples import entry, invocation


class SkippingSelector(selectors.DefaultSelector):
    """Waits for files and threads as others do; for a time it does not wait, but skips it."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(timeout if timeout is None else 0)
        if not ready:
            self.skipped += timeout or 0
        return ready


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop on which time passes only while nothing else is to be done."""

    def __init__(self) -> None:
        self._skipping = SkippingSelector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.skipped


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "registry.db", "main") as opened:
        opened.servers.publish(entry(), now=10.0)
        yield opened


@contextmanager
def unusable(path: Path) -> Iterator[None]:
    """A database that takes no rows of calls."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE invocations RENAME TO elsewhere")
        yield
        connection.execute("ALTER TABLE elsewhere RENAME TO invocations")


def test_a_read_waits_at_most_20_ms_for_its_rows_to_be_begun(store: Store) -> None:
    """That and the time of one transaction is what a SIGKILL may cost."""
    assert GROUP_SECONDS <= 0.02
    stored: dict[str, float] = {}

    async def call_every_8_ms() -> None:
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def note(call: Invocation) -> None:
            stored[call.id] = loop.time()
            if len(stored) in (3, 5):
                done.set()

        writer = CallWriter(store, lambda name, standing: None, note)
        for group in (("c1", "c2", "c3"), ("c4", "c5")):
            for name in group:
                call = invocation(name, started=loop.time())
                writer.queue_call(replace(call, serial=writer.count_call()))
                await asyncio.sleep(0.008 if name != group[-1] else 0)
            await done.wait()
            done.clear()

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(call_every_8_ms())
    assert list(stored) == ["c1", "c2", "c3", "c4", "c5"]
    for call in store.calls.find():
        assert stored[call.id] <= call.started + GROUP_SECONDS + 1e-9


def test_no_read_begins_while_the_one_before_cannot_be_stored(store: Store, tmp_path: Path) -> None:
    async def scenario() -> None:
        stored = asyncio.Event()
        writer = CallWriter(store, lambda name, standing: None, lambda call: stored.set())
        assert writer.find_backlog() == ""
        with unusable(tmp_path / "registry.db"):
            writer.queue_call(replace(invocation("c1"), serial=writer.count_call()))
            while not writer.find_backlog():
                await asyncio.sleep(GROUP_SECONDS)
            assert "no such table" in writer.find_backlog()
        await stored.wait()
        await writer.wait_written()
        assert writer.find_backlog() == ""

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(scenario())
    assert [call.id for call in store.calls.find()] == ["c1"]


def test_no_read_begins_behind_too_many_that_wait(store: Store) -> None:
    async def scenario() -> None:
        writer = CallWriter(store, lambda name, standing: None)
        for number in range(MAX_BEHIND):
            assert writer.find_backlog() == ""
            writer.queue_call(invocation(f"c{number}"))
        assert f"{MAX_BEHIND} earlier calls" in writer.find_backlog()

    asyncio.run(scenario())
