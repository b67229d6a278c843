"""A pool of instances created ahead, and the threads for calls that compute long."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from sandbox import exactjson
from sandbox.engines.wasm.component import LoadedComponent
from sandbox.engines.wasm.guest import (
    STOP_SECONDS,
    Guest,
    GuestFactory,
    GuestTrapped,
    Ticker,
    wait_finished,
)
from sandbox.engines.wasm.memory import MemoryImage
from sandbox.session.interface import Limits
from sandbox.session.recording import LOADING

MAX_PRINTS = 10_000
Lines = tuple[str, ...]
"""The opening lines of a session: `toolwright/load` and `initialize`, as the host writes them."""
_REFUSAL = {"code": -32010, "message": "no such call", "data": {"kind": "unsupported"}}
_NO_CALL = exactjson.dumps({"error": _REFUSAL}).decode()


@dataclass(frozen=True)
class OpenedGuest:
    """A guest that got a server's opening lines, and what it answered and printed."""

    guest: Guest
    answers: tuple[str, ...]
    printed: tuple[str, ...]


class LoadingServices:
    """Services for code that is being loaded: a log, and a refusal of every request."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log, self._prints = log, 0

    async def exchange_request(self, params: str) -> str:
        return _NO_CALL

    def log_text(self, text: str) -> bool:
        self._prints += 1
        if self._prints <= MAX_PRINTS:
            self._log(text)
        return self._prints <= MAX_PRINTS


async def send_opening_lines(
    guest: Guest, lines: Lines, log: Callable[[str], None]
) -> tuple[str, ...]:
    """Send a server's opening lines to a guest; returns its answers. Raises GuestTrapped.

    The guest is closed if any of them fails.
    """
    loading = LoadingServices(log)
    try:
        answers = tuple([await guest.answer_line(line, LOADING, loading) for line in lines])
        guest.note_writes()
        return answers
    except BaseException:
        guest.close()
        raise


def is_loaded(answers: tuple[str, ...]) -> bool:
    """Whether all answers to a server's opening lines are results."""
    try:
        return all("result" in exactjson.loads(answer.encode()) for answer in answers)
    except (ValueError, TypeError, RecursionError):
        return False


async def open_guest(guest: Guest, lines: Lines, limits: Limits) -> OpenedGuest:
    """Load a bundle into a guest for a later session. Raises GuestTrapped."""
    printed: list[str] = []
    left = limits.stderr_bytes

    def keep(text: str) -> None:
        nonlocal left
        if left > 0:
            printed.append(text[:left])
            left -= len(text)

    return OpenedGuest(guest, await send_opening_lines(guest, lines, keep), tuple(printed))


MAX_THREADS = 256
REPLENISH_SECONDS = 0.02
MAX_KNOWN = 8
"""Servers, the latest opened, for which an instance is opened ahead."""
OPENING_SECONDS = 0.5


class GuestPool:
    """Guests with `limits`, `spares` of them created ahead. If `spares` is not 0, one guest is also
    opened ahead for each of the latest servers: it has its bundle and has run no call. A server
    that takes more than `opening_seconds` to load is not opened ahead.

    Use as an async context manager.
    """

    def __init__(
        self,
        loaded: LoadedComponent,
        limits: Limits,
        spares: int,
        opening_seconds: float = OPENING_SECONDS,
    ) -> None:
        self.limits, self.component = limits, loaded.digest
        self._ticker = Ticker(loaded.engine)
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="wasm")
        self._factory = GuestFactory(loaded, self._ticker, self._threads)
        self._wanted, self._opening_seconds = spares, opening_seconds
        self._spares: deque[Guest] = deque()
        self._known: OrderedDict[Lines, OpenedGuest | None] = OrderedDict()
        self._replenishing: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[OpenedGuest] | None = None

    async def __aenter__(self) -> GuestPool:
        self._ticker.start()
        self.replenish_soon(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wanted = 0
        self.forget_servers()
        stopped = False
        try:
            await wait_finished(filter(None, [self._replenishing, self._opening]), STOP_SECONDS)
            self.forget_servers()
        finally:
            while self._spares:
                self._spares.pop().close()
            try:
                stopped = await self._factory.stop()
            finally:
                self._threads.shutdown(wait=False, cancel_futures=True)
                # What did not end in time still needs ticks to end at all.
                if stopped:
                    self._ticker.stop()

    @property
    def computing(self) -> int:
        """The number of calls that compute in threads at the moment."""
        return self._factory.computing

    @property
    def ahead(self) -> int:
        """The number of servers that have a guest opened ahead."""
        return sum(1 for found in self._known.values() if found)

    async def wait_replenished(self) -> None:
        """Wait until all guests are created that are to be ready."""
        self.replenish_soon(0)
        while self._replenishing:
            await self._replenishing

    async def take_guest(self, limits: Limits) -> Guest:
        """Take a fresh guest, a spare if there is one. Raises GuestTrapped."""
        if limits == self.limits and self._spares:
            return self._spares.popleft()
        return await self._factory.make_guest_async(limits)

    @property
    def has_images(self) -> bool:
        """Whether `make_guest` can begin with an image of a server."""
        return self._factory.loaded.memories is not None

    async def make_guest(
        self, limits: Limits, image: MemoryImage, spent: Guest | None = None
    ) -> Guest:
        """Create a guest that goes on where `image` was taken, and before that end `spent`.

        Raises GuestTrapped.
        """
        return await self._factory.make_guest_async(limits, image, spent)

    async def include_writes(self, guest: Guest, image: MemoryImage) -> MemoryImage:
        """Do `Guest.include_writes` in a thread."""
        return await asyncio.wrap_future(self._threads.submit(guest.include_writes, image))

    async def end_guest(self, guest: Guest) -> None:
        """End a guest in a thread; it has ended when this returns or raises CancelledError."""
        ending = asyncio.wrap_future(self._threads.submit(guest.close))
        await wait_finished([ending], STOP_SECONDS)

    def take_opened(self, lines: Lines, limits: Limits) -> OpenedGuest | None:
        """Take the guest opened ahead with exactly these lines; None if there is none."""
        found = self._known.get(lines) if limits == self.limits else None
        if found:
            self._known[lines] = None
        return found

    def remember_server(self, lines: Lines, limits: Limits, seconds: float) -> None:
        """Remember a server that was opened with these lines, in so many seconds."""
        if not self._wanted or limits != self.limits or seconds > self._opening_seconds:
            return
        self._known.setdefault(lines, None)
        self._known.move_to_end(lines)
        while len(self._known) > MAX_KNOWN:
            _close_guest(self._known.popitem(last=False)[1])

    def forget_servers(self) -> None:
        """Close the guests opened ahead, and cancel the one being opened."""
        while self._known:
            _close_guest(self._known.popitem()[1])
        if self._opening:
            self._opening.cancel()

    def replenish_soon(self, seconds: float = REPLENISH_SECONDS) -> None:
        """Schedule the creation of missing guests, delayed so that it takes no CPU from the call
        that used one up.
        """
        if self._replenishing is None and self._wanted:
            self._replenishing = asyncio.create_task(self._replenish_guests(seconds))

    async def _replenish_guests(self, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
            with suppress(GuestTrapped):
                while len(self._spares) < self._wanted:
                    self._spares.append(await self._make_prefaulted())
                while lines := next((k for k, v in reversed(self._known.items()) if not v), None):
                    await self._open_ahead(lines)
        finally:
            self._replenishing = None

    async def _make_prefaulted(self) -> Guest:
        """Create a guest that waits with its memory at hand. Raises GuestTrapped."""
        guest = await self._factory.make_guest_async(self.limits)
        try:
            await asyncio.wrap_future(self._threads.submit(guest.prefault))
        except BaseException:
            guest.close()
            raise
        return guest

    async def _open_ahead(self, lines: Lines) -> None:
        """Open a guest ahead. A server that does not load in time is forgotten."""
        guest = await self._make_prefaulted()
        task = self._opening = asyncio.create_task(open_guest(guest, lines, self.limits))
        try:
            await asyncio.wait([task], timeout=self._opening_seconds)
            if not task.done():
                task.cancel()
                await wait_finished([task], STOP_SECONDS)
        except asyncio.CancelledError:
            task.cancel()
            task.add_done_callback(_close_opened)
            raise
        finally:
            self._opening = None
        failed = not task.done() or task.cancelled() or task.exception() is not None
        if failed or lines not in self._known:
            self._known.pop(lines, None)
            _close_guest(None if failed else task.result())
        else:
            self._known[lines] = task.result()


def _close_opened(opening: asyncio.Task[OpenedGuest]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().guest.close()


def _close_guest(found: OpenedGuest | None) -> None:
    if found:
        found.guest.close()
