"""Change notification: freezes, jobs, decisions and new servers of other processes, in 20 ms."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import structlog

from registry.database.commits import CommitWait
from registry.errors import RegistryError
from registry.models import Freeze
from registry.processes import SignalSnapshot
from registry.store import Store
from sandbox.killswitch import KillSwitch

PERIOD_SECONDS = 0.015
"""How often it is asked whether the event loop took up a change, and whether to stop."""
Judge = Callable[[Freeze], Freeze]
"""From a freeze's row to the state that counts: `orchestrator.approvals.freezing.FreezeWatch`."""

log = structlog.get_logger()


class Signals:
    """A thread that asks the database for changes when there may be some, and wakes the event loop.

    On a freeze it engages the brake, and acknowledges the epoch once everything registered with the
    brake has run. `judge` says whether what the freeze's row says counts. `on_catalogue` is called
    when a server was published or changed its state.
    """

    def __init__(
        self,
        store: Store,
        kill_switch: KillSwitch,
        process: str,
        on_catalogue: Callable[[], None],
        judge: Judge,
    ) -> None:
        self._store, self._kill_switch, self._process = store, kill_switch, process
        self._judge = judge
        self._on_catalogue = on_catalogue
        self._loop = asyncio.get_running_loop()
        self._stopped = threading.Event()
        self._changed = asyncio.Event()
        self._work = asyncio.Event()
        self._seen: SignalSnapshot | None = None

    @contextmanager
    def watch_signals(self) -> Iterator[None]:
        """Watch until the block ends. The present state is applied before the block begins."""
        # Read first: a commit that comes between the two is seen as a change.
        version = self._store.signals.read_data_version()
        self._apply_signals(self._store.signals.read_signals())
        commits = self._store.signals.open_commit_wait()
        thread = threading.Thread(
            target=self._poll_database, args=(commits, version), name="pulse", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            commits.stop()
            thread.join()
            commits.close()

    async def wait_for_work(self, seconds: float) -> None:
        """Wait until a job or an approval may be ready to take up, at most `seconds`."""
        await _wait_for_event(self._work, seconds)
        self._work.clear()

    async def wait_for_change(self) -> None:
        """Wait for the next change of the database, by any process."""
        await self._changed.wait()

    async def follow_changes(self, seconds: float) -> AsyncIterator[None]:
        """Yield at once and then after every change, until `seconds` have passed. A change that
        comes while the caller works on the one before is not missed.
        """
        end = self._loop.time() + seconds
        changed = self._changed
        yield
        while (left := end - self._loop.time()) > 0 and await _wait_for_event(changed, left):
            changed = self._changed
            yield

    def _poll_database(self, commits: CommitWait, version: int) -> None:
        told = ""
        while commits.wait():
            try:
                current = self._store.signals.read_data_version()
                if current != version:
                    self._notify_loop(self._store.signals.read_signals())
                    version = current
                told = ""
            except RegistryError as error:
                # Asked again at the next turn: who hears nothing hears of no freeze either.
                before, told = told, str(error)
                if told != before:
                    log.error("what changed cannot be read yet", reason=told)

    def _notify_loop(self, signals: SignalSnapshot) -> None:
        applied = threading.Event()

        def on_loop() -> None:
            try:
                self._take_up(signals)
            finally:
                before, self._changed = self._changed, asyncio.Event()
                before.set()
                applied.set()

        try:
            self._loop.call_soon_threadsafe(on_loop)
        except RuntimeError:
            return
        while not applied.wait(PERIOD_SECONDS) and not self._stopped.is_set():
            pass

    def _take_up(self, signals: SignalSnapshot) -> None:
        seen = self._seen
        try:
            self._apply_signals(signals)
        except RegistryError as error:
            # Done again with the next change, which is heard all the same: a freeze that is not
            # acknowledged would else hold this process for good.
            self._seen = seen
            log.error("a change cannot be taken up yet", reason=str(error))

    def _apply_signals(self, signals: SignalSnapshot) -> None:
        before, self._seen = self._seen, signals
        if self._judge(signals.freeze).frozen:
            self._kill_switch.engage()
        else:
            self._kill_switch.release()
        if before is None or signals.catalogue != before.catalogue:
            self._on_catalogue()
        if before is None or _select_work_signals(signals) != _select_work_signals(before):
            self._work.set()
        if before is None or signals.freeze.epoch != before.freeze.epoch:
            epoch = signals.freeze.epoch
            self._store.processes.acknowledge_freeze(self._process, epoch, time.time())


def _select_work_signals(signals: SignalSnapshot) -> tuple[int, int, bool]:
    return signals.queued, signals.approved, signals.freeze.frozen


async def _wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event was set within `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
