"""Pool of warm read sessions, one per server, version and set of reading tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.errors import SandboxError
from sandbox.session.interface import Runner, Session
from sandbox.session.pipe import PipeSession

Key = tuple[str, int, frozenset[str]]


@dataclass
class WarmSession:
    """A session that is lent to `busy` calls at this moment. `is_ahead` until a call has it."""

    session: Session
    stack: AsyncExitStack
    used: float
    busy: int = 0
    is_ahead: bool = False

    def give_back(self) -> None:
        self.busy -= 1
        self.used = time.monotonic()

    @property
    def ended(self) -> bool:
        """Whether it ended while nobody used it: by a freeze, or by itself."""
        return isinstance(self.session, PipeSession) and self.session.ended


@dataclass
class ReadSessions:
    """Lends read sessions. An idle one is closed after `idle_seconds`, a broken one at once.

    `broker` makes the broker of a new session; `given` tells what a server was given that its
    session holds on to. What was lent is to be given back. At most `ahead` sessions that no call
    has used yet are kept, and `most` in all: what was used longest ago is closed for another.
    """

    runner: Runner
    broker: Callable[[Bundle], Broker]
    idle_seconds: float
    given: Callable[[Bundle], frozenset[object]] = lambda bundle: frozenset()
    ahead: int = 0
    most: int = 500
    _warm: dict[Key, WarmSession] = field(default_factory=dict)
    _opening: dict[Key, asyncio.Lock] = field(default_factory=dict)
    _given: dict[str, frozenset[object]] = field(default_factory=dict)
    _keys: dict[str, tuple[Bundle, Key]] = field(default_factory=dict)
    """The bundle of each server that was lent last, with its key."""
    _preparing: dict[Key, asyncio.Task[None]] = field(default_factory=dict)
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    def open_ahead(self, bundle: Bundle) -> None:
        """Begin to open the session that a call will probably want, and return at once.

        The one that has waited longest for its call is closed for it. Where it cannot be opened
        nothing is said: the call that wants it will be told.
        """
        key = self._find_key(bundle)
        warm = self._warm.get(key)
        if warm is not None and not warm.ended:
            return
        if key not in self._preparing and len(self._preparing) < self.ahead:
            task = asyncio.get_running_loop().create_task(self._open_unused(bundle))
            self._preparing[key] = task
            task.add_done_callback(lambda _: self._preparing.pop(key))

    async def lend_session(self, bundle: Bundle) -> WarmSession:
        """A running session with the bundle, never one from before something was granted to its
        server or taken away. Raises what `Runner.open` raises.
        """
        key, given = self._find_key(bundle), self.given(bundle)
        if self._given.setdefault(bundle.name, given) != given:
            self._given[bundle.name] = given
            await self.drop_sessions(bundle.name)
        warm = self._warm.get(key)
        if warm is not None and not warm.ended:
            warm.busy += 1
            warm.is_ahead = False
            return warm
        async with self._opening.setdefault(key, asyncio.Lock()):
            warm = self._warm.get(key)
            if warm is not None and warm.ended:
                await self.drop_sessions(bundle.name, warm.session)
                warm = None
            if warm is None:
                warm = self._warm[key] = await self._open_session(bundle)
            warm.busy += 1
            warm.is_ahead = False
        self._close_oldest(lambda _: True, len(self._warm) - self.most)
        return warm

    async def drop_sessions(self, name: str, session: Session | None = None) -> None:
        """Close the sessions of a server, or only this one."""
        for key in [key for key in self._warm if key[0] == name]:
            if session is None or self._warm[key].session is session:
                await self._warm.pop(key).stack.aclose()

    async def close_idle(self) -> None:
        """Close what nobody has used for `idle_seconds`."""
        limit = time.monotonic() - self.idle_seconds
        for key, warm in tuple(self._warm.items()):
            if not warm.busy and warm.used < limit:
                del self._warm[key]
                await warm.stack.aclose()

    async def close(self) -> None:
        for task in self._preparing.values():
            task.cancel()
        while waited := {*self._preparing.values(), *self._closing}:
            await asyncio.wait(waited)
        while self._warm:
            _, warm = self._warm.popitem()
            await warm.stack.aclose()

    @property
    def count(self) -> int:
        """How many are open or being opened ahead."""
        return len({*self._warm, *self._preparing})

    def _find_key(self, bundle: Bundle) -> Key:
        """Made anew only for another bundle: it takes as long as all else of a warm lending."""
        known = self._keys.get(bundle.name)
        if known is None or known[0] is not bundle:
            known = self._keys[bundle.name] = bundle, _build_key(bundle)
        return known[1]

    async def _open_unused(self, bundle: Bundle) -> None:
        with suppress(SandboxError):
            warm = await self.lend_session(bundle)
            # Not where a call has come for it meanwhile.
            warm.is_ahead = warm.busy == 1
            warm.give_back()
        unused = sum(warm.is_ahead for warm in self._warm.values())
        self._close_oldest(lambda warm: warm.is_ahead, unused - self.ahead)

    def _close_oldest(self, chosen: Callable[[WarmSession], bool], count: int) -> None:
        """Close so many of those chosen that no call has, what was used longest ago first, beside
        other work: nobody waits until a container is gone.
        """
        if count <= 0:
            return
        idle = [key for key, warm in self._warm.items() if chosen(warm) and not warm.busy]
        for key in sorted(idle, key=lambda key: self._warm[key].used)[:count]:
            task = asyncio.create_task(self._warm.pop(key).stack.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _open_session(self, bundle: Bundle) -> WarmSession:
        stack = AsyncExitStack()
        session = await stack.enter_async_context(self.runner.open(bundle, self.broker(bundle)))
        return WarmSession(session, stack, time.monotonic())


def _build_key(bundle: Bundle) -> Key:
    """A session may send what reads, so another classification needs another session."""
    reads = frozenset(tool.name for tool in bundle.tools if tool.access == "read")
    return bundle.name, bundle.version, reads
