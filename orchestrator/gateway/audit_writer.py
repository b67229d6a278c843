"""Writing call records and audit rows: reads by group commit, at most 20 ms late, rows without
blocking the caller.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from orchestrator.calls import Call
from registry.audit.search import AuditTable
from registry.calls.invocations import bound_results
from registry.calls.record_process import RecordOffload
from registry.database.audit_chain import ACCOUNTED, COUNTED
from registry.errors import DatabaseUnusable
from registry.models import Invocation
from registry.store import Store
from registry.trust import Standing
from sandbox.offload import has_many_values

GROUP_SECONDS = 0.02
HOLD_SECONDS = 0.5
"""How long calls are held by the process that stores them: it does so beside the next call, which a
group of many disturbs no more than one of few.
"""
MAX_HELD, HELD_BYTES = 1_000, 4 << 20
"""It holds no more calls, nor more bytes of them."""
RETRY_SECONDS = 1.0
CLOSE_SECONDS = 5.0
MAX_BEHIND = 1_000
"""Ended calls that wait for their rows; no read begins beyond them."""
MAX_WAITING = 10_000
MAX_REASON = 300

log = structlog.get_logger()


@dataclass
class CallWriter:
    """Writes finished reads in groups, in their order. 20 ms after its answer at the latest a read
    has rows begun, or is held by the process that stores them while calls are many; until then,
    and while a transaction goes on, a SIGKILL may lose it. No read begins while what ended before
    cannot be stored (`find_backlog`).

    `recorded` is told each server's new standing, `stored` each call once it is on disk. Every call
    that begins is numbered, and the audit's rows say up to which number all have one: `audit
    verify` finds a call without a row. One row that cannot be stored takes no other with it; it is
    stored marked, and where even that fails everything is frozen.
    """

    store: Store
    recorded: Callable[[str, Standing], None]
    stored: Callable[[Invocation], None] = lambda invocation: None
    offload: RecordOffload | None = None
    _waiting: list[Invocation] = field(default_factory=list)
    _held: list[Invocation] = field(default_factory=list)
    """Those that `offload` holds."""
    _held_since: float = 0.0
    _accounts: list[tuple[Invocation, str]] = field(default_factory=list)
    _unwritten: set[int] = field(default_factory=set)
    """Serials of all these, and of what is being written."""
    _wanted: bool = False
    """Whether somebody waits for what is held."""
    _written: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and cleared at once, whenever some were written."""
    _flush: asyncio.Task[None] | None = None
    _oldest: float = 0.0
    """When the first of those that wait ended, on the event loop's clock."""
    _unusable: str = ""
    """Why the last group could not be stored."""
    _begun: int = 0
    _without_row: dict[int, None] = field(default_factory=dict)
    """Serials of calls that have begun and have no row yet, in ascending order."""

    def count_call(self) -> int:
        """The serial of a call that begins. It is to be given to a method that stores it."""
        self._begun += 1
        self._without_row[self._begun] = None
        return self._begun

    def find_backlog(self) -> str:
        """Why no read may begin now: what ended before is not stored. "" where one may."""
        if self._unusable:
            return f"earlier calls could not be recorded yet: {self._unusable}"
        if len(self._waiting) >= MAX_BEHIND:
            return f"{len(self._waiting)} earlier calls wait to be recorded; call again in a moment"
        return ""

    def queue_call(self, invocation: Invocation) -> None:
        if not self._waiting:
            self._oldest = asyncio.get_running_loop().time()
        self._waiting.append(invocation)
        self._unwritten.add(invocation.serial)
        self._start_flush()

    def account_call(self, invocation: Invocation, became: str) -> None:
        """Note that a call that began has no record of its own: `became` says what it has instead.
        Nothing where it has been taken up already.
        """
        if invocation.serial in self._without_row and invocation.serial not in self._unwritten:
            self._accounts.append((invocation, became))
            self._unwritten.add(invocation.serial)
            self._start_flush()

    async def store_call(self, invocation: Invocation) -> None:
        """Store a finished call; when this returns it is on disk. Raises DatabaseUnusable."""
        await self._store_single(invocation)

    def note_refusal(self, kind: str, call: Call, reason: str) -> None:
        """An audit row for a call that did not run."""
        payload = {"tool": call.name, "reason": reason, "task": call.task, "session": call.session}
        self.store.audit.add_note(kind, call.name, payload, time.time())

    async def wait_written(self) -> None:
        """Return when every call that has ended is on disk, or could not be for a while."""
        ended = frozenset(self._unwritten)
        self._wanted = bool(ended)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while not self._unwritten.isdisjoint(ended):
                    await self._written.wait()

    async def close(self) -> None:
        """Return when everything is written, or could not be for a while."""
        self._wanted = True
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._flush and not self._flush.done():
                    await self._flush
        except TimeoutError:
            log.error("calls were not recorded", calls=len(self._waiting))

    async def write_count(self) -> None:
        """Note at the end of the process how far its calls have rows, so that the last are not
        missed either. One that still ends may yet get its row after that.
        """
        await self.wait_written()
        if self._begun:
            await self._add_note(COUNTED, "calls", {"complete": self._complete})

    @property
    def _complete(self) -> int:
        """The lowest serial that has no row yet."""
        return next(iter(self._without_row), self._begun + 1)

    def _start_flush(self) -> None:
        if self._flush is None or self._flush.done():
            self._flush = asyncio.get_running_loop().create_task(self._flush_groups())

    async def _flush_groups(self) -> None:
        while self._waiting or self._held or self._accounts:
            age = asyncio.get_running_loop().time() - self._oldest
            await asyncio.sleep(GROUP_SECONDS - age if self._waiting else GROUP_SECONDS)
            if self._accounts:
                await self._flush_accounts()
            group, self._waiting = self._waiting, []
            try:
                if any(has_many_values(call.result) for call in group):
                    group = await asyncio.to_thread(bound_results, group)
            except Exception as error:
                # As they are: a row that cannot be stored takes no other with it.
                log.error("results are handed on whole", reason=repr(error)[:MAX_REASON])
            if await self._hold_group(group):
                continue
            group, self._held = [*self._held, *group], []
            self._wanted = False
            left = await self._store_group(group) if group else []
            if not left:
                self._unusable = ""
            if left or self._accounts:
                # A full disk may have room again; what was called must not be lost meanwhile. What
                # the calls took in is too much to hold in memory for so long.
                lightened = [replace(invocation, recording=None) for invocation in left]
                waiting = [*lightened, *self._waiting]
                self._waiting = waiting[:MAX_WAITING]
                for lost in waiting[MAX_WAITING:]:
                    await self._lose_call(lost, "too many calls wait for a disk that takes them")
                await asyncio.sleep(RETRY_SECONDS)

    async def _hold_group(self, group: Sequence[Invocation]) -> bool:
        """Have a group held by the process that stores; whether it, and what is held already, can
        wait for more. A call that failed cannot: what its server may do next can depend on it.
        """
        now = asyncio.get_running_loop().time()
        if not self._held:
            self._held_since = now
        held = len(self._held) + len(group)
        if self._wanted or not 0 < held < MAX_HELD or now - self._held_since >= HOLD_SECONDS:
            return False
        if self.offload is None or any(call.failure for call in group):
            return False
        if group and not await self.offload.hold_calls(group, time.time(), self._complete):
            return False
        self._held += group
        return self.offload.held_bytes < HELD_BYTES

    async def _store_group(self, group: list[Invocation]) -> list[Invocation]:
        """Store a group. Returns the calls that the database cannot take at present."""
        try:
            standings = await self._record_group(group)
        except DatabaseUnusable as error:
            self._unusable = str(error)
            log.error("calls not recorded yet", reason=self._unusable, calls=len(group))
            return group
        except Exception as error:
            log.error("a group of calls cannot be stored", reason=repr(error)[:MAX_REASON])
            for number, invocation in enumerate(group):
                try:
                    await self._store_single(invocation)
                except DatabaseUnusable as unusable:
                    self._unusable = str(unusable)
                    return group[number:]
            return []
        # They are those after the group: each server's is told once.
        last = dict(zip((invocation.entry for invocation in group), standings, strict=True))
        for invocation in group:
            self._tell_stored(invocation, last.pop(invocation.entry, None))
        return []

    async def _record_group(self, group: list[Invocation]) -> tuple[Standing, ...]:
        if self.offload is not None:
            stored = await self.offload.store_group(group, time.time(), self._complete)
            if stored is not None:
                return stored
        return await asyncio.to_thread(
            self.store.calls.record_many, group, time.time(), self._complete
        )

    async def _store_single(self, invocation: Invocation) -> None:
        """Store one call: as it is, or marked where that cannot be. Raises DatabaseUnusable."""
        try:
            standing = await asyncio.to_thread(
                self.store.calls.record, invocation, time.time(), self._complete
            )
        except DatabaseUnusable:
            raise
        except Exception as error:
            reason = repr(error)[:MAX_REASON]
            log.error("a call cannot be stored as it is", call=invocation.id, reason=reason)
            try:
                standing = await asyncio.to_thread(
                    self.store.calls.record_marked, invocation, reason, time.time(), self._complete
                )
            except DatabaseUnusable:
                raise
            except Exception as again:
                await self._lose_call(invocation, repr(again)[:MAX_REASON])
                return
        self._tell_stored(invocation, standing)

    def _tell_stored(self, invocation: Invocation, standing: Standing | None) -> None:
        self._note_written(invocation)
        try:
            if standing is not None:
                self.recorded(invocation.entry, standing)
            self.stored(invocation)
        except Exception as error:
            # Whoever is told must not keep the next calls from being stored.
            log.error("nobody took up a stored call", call=invocation.id, reason=repr(error))

    async def _flush_accounts(self) -> None:
        accounts, self._accounts = self._accounts, []
        for invocation, became in accounts:
            payload = {"serial": invocation.serial, "became": became, "complete": self._complete}
            if await self._add_note(ACCOUNTED, invocation.id, payload):
                self._note_written(invocation)
            else:
                self._accounts.append((invocation, became))

    def _note_written(self, invocation: Invocation) -> None:
        self._without_row.pop(invocation.serial, None)
        self._unwritten.discard(invocation.serial)
        self._written.set()
        self._written.clear()

    async def _lose_call(self, invocation: Invocation, reason: str) -> None:
        """A call that has no row is our own failure: it is told, and nothing more is sent."""
        log.error("a call is not in the audit", call=invocation.id, reason=reason)
        # It counts as complete, so that `audit verify` names it.
        self._note_written(invocation)
        await self._add_note("call.lost", invocation.id, {"reason": reason})
        try:
            why = f"the call {invocation.id} could not be recorded: {reason}"
            await asyncio.to_thread(self.store.processes.freeze, time.time(), "the audit", why)
        except Exception as error:
            log.error("not frozen", reason=repr(error))

    async def _add_note(self, kind: str, subject: str, payload: Mapping[str, Any]) -> bool:
        try:
            await asyncio.to_thread(self.store.audit.add_note, kind, subject, payload, time.time())
        except Exception as error:
            log.error("not in the audit", row=kind, subject=subject, reason=repr(error))
            return False
        return True


@dataclass
class AuditWriter:
    """Writes audit rows without holding up whoever asks for one."""

    audit: AuditTable
    _writing: set[asyncio.Task[None]] = field(default_factory=set)

    def add_row(self, kind: str, subject: str, payload: Mapping[str, Any]) -> None:
        """A row of that kind, of this moment. Needs a running event loop."""
        task = asyncio.get_running_loop().create_task(
            self._write_row(kind, subject, payload, time.time())
        )
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def close(self) -> None:
        """Return when every row is in the audit, or was logged because it could not be."""
        while self._writing:
            await asyncio.gather(*self._writing)

    async def _write_row(
        self, kind: str, subject: str, payload: Mapping[str, Any], now: float
    ) -> None:
        try:
            await asyncio.to_thread(self.audit.add_note, kind, subject, payload, now)
        except Exception as error:
            log.error(
                "not in the audit", row=kind, subject=subject, reason=repr(error), payload=payload
            )
