"""Open read sessions, one per server, version and what of it reads, kept warm while used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.runner import Runner, Session

Key = tuple[str, int, frozenset[str]]


@dataclass
class _Warm:
    session: Session
    stack: AsyncExitStack
    used: float
    busy: int = 0


@dataclass
class ReadSessions:
    """Lends read sessions. An idle one is closed after `idle_seconds`, a broken one at once.

    `broker` makes the broker of a new session. Use `lend` in pairs with `give_back`.
    """

    runner: Runner
    broker: Callable[[Bundle], Broker]
    idle_seconds: float
    _warm: dict[Key, _Warm] = field(default_factory=dict)
    _opening: dict[Key, asyncio.Lock] = field(default_factory=dict)
    _given: dict[str, frozenset[object]] = field(default_factory=dict)

    async def lend(self, bundle: Bundle) -> Session:
        """A running session with the bundle. Raises what `Runner.open` raises."""
        key = _key(bundle)
        async with self._opening.setdefault(key, asyncio.Lock()):
            warm = self._warm.get(key)
            if warm is None:
                warm = self._warm[key] = await self._opened(bundle)
            warm.busy += 1
            return warm.session

    def give_back(self, bundle: Bundle) -> None:
        warm = self._warm.get(_key(bundle))
        if warm:
            warm.busy -= 1
            warm.used = time.monotonic()

    async def keep_only(self, name: str, given: frozenset[object]) -> None:
        """Close the sessions of a server that were opened when it had been given other things."""
        if self._given.setdefault(name, given) != given:
            self._given[name] = given
            await self.drop(name)

    async def drop(self, name: str, session: Session | None = None) -> None:
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
        while self._warm:
            _, warm = self._warm.popitem()
            await warm.stack.aclose()

    @property
    def count(self) -> int:
        return len(self._warm)

    async def _opened(self, bundle: Bundle) -> _Warm:
        stack = AsyncExitStack()
        session = await stack.enter_async_context(self.runner.open(bundle, self.broker(bundle)))
        return _Warm(session, stack, time.monotonic())


def _key(bundle: Bundle) -> Key:
    """A session may send what reads, so another classification needs another session."""
    reads = frozenset(tool.name for tool in bundle.tools if tool.access == "read")
    return bundle.name, bundle.version, reads
