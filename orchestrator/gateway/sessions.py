"""Pool of warm read sessions, one per server, version, set of reading tools and accounts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.errors import SandboxError
from sandbox.session.interface import Runner, Session
from sandbox.session.pipe import PipeSession

Key = tuple[str, int, frozenset[str]]
Accounts = tuple[tuple[str, str], ...]
"""Credentials, each with the vault's name of the secret that it is taken from."""
Place = tuple[Key, Accounts]


@dataclass(frozen=True)
class HeldGrants:
    """What a session holds on to from its opening on."""

    grants: frozenset[object] = frozenset()
    accounts: Accounts = ()


@dataclass
class WarmSession:
    """A session that is lent to `busy` calls at this moment. `is_ahead` until a call has it."""

    session: Session
    stack: AsyncExitStack
    held: HeldGrants
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

    `broker` makes the broker of a new session; `given` tells what a session of a server would hold
    on to if the present call opened it. What was lent is to be given back. At most
    `ahead` sessions that no call has used yet are kept, and `most` in all: what was used longest
    ago is closed for another.
    """

    runner: Runner
    broker: Callable[[Bundle], Broker]
    idle_seconds: float
    given: Callable[[Bundle], HeldGrants] = lambda bundle: HeldGrants()
    ahead: int = 0
    most: int = 500
    _warm: dict[Place, WarmSession] = field(default_factory=dict)
    _opening: dict[Place, asyncio.Lock] = field(default_factory=dict)
    _keys: dict[str, tuple[Bundle, Key]] = field(default_factory=dict)
    """The bundle of each server that was lent last, with its key."""
    _preparing: dict[Key, asyncio.Task[None]] = field(default_factory=dict)
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def has_room_ahead(self) -> bool:
        """Whether `open_ahead` would open a session now."""
        return len(self._preparing) < self.ahead

    def open_ahead(self, bundle: Bundle) -> None:
        """Begin to open the session that a call will probably want, and return at once.

        The one that has waited longest for its call is closed for it. Where it cannot be opened
        nothing is said: the call that wants it will be told.
        """
        key = self._find_key(bundle)
        if not self.has_room_ahead or key in self._preparing:
            return
        if self._find_session(bundle) is None:
            task = asyncio.get_running_loop().create_task(self._open_unused(bundle))
            self._preparing[key] = task
            task.add_done_callback(lambda _: self._preparing.pop(key))

    async def lend_session(self, bundle: Bundle) -> WarmSession:
        """A running session with the bundle, which goes out with the accounts of the present call;
        never one from before something was granted to its server or taken away. Raises what
        `Runner.open` raises.
        """
        warm = self._find_session(bundle)
        while warm is None:
            place = self._find_key(bundle), self.given(bundle).accounts
            async with self._opening.setdefault(place, asyncio.Lock()):
                # Another call may have opened it, or had it opened before something was granted.
                warm = self._find_session(bundle) or await self._open_session(bundle, place)
        warm.busy += 1
        warm.is_ahead = False
        if len(self._warm) > self.most:
            self._close_oldest(lambda _: True, len(self._warm) - self.most)
        return warm

    async def drop_sessions(self, name: str, session: Session | None = None) -> None:
        """Close the sessions of a server, or only this one."""
        await self._close_sessions(
            place
            for place, warm in self._warm.items()
            if place[0][0] == name and (session is None or warm.session is session)
        )

    async def close_idle(self) -> None:
        """Close what nobody has used for `idle_seconds`."""
        limit = time.monotonic() - self.idle_seconds
        for place, warm in tuple(self._warm.items()):
            # Another one may have its place since the one before was closed.
            if not warm.busy and warm.used < limit and self._warm.get(place) is warm:
                del self._warm[place]
                await warm.stack.aclose()

    async def close(self) -> None:
        for task in self._preparing.values():
            task.cancel()
        while waited := {*self._preparing.values(), *self._closing}:
            await asyncio.wait(waited)
        while self._warm:
            await self._close_sessions(self._warm)

    @property
    def count(self) -> int:
        """How many are open or being opened ahead."""
        return len(self._warm) + len({*self._preparing} - {key for key, _ in self._warm})

    def _find_key(self, bundle: Bundle) -> Key:
        """Made anew only for another bundle: it takes as long as all else of a warm lending."""
        known = self._keys.get(bundle.name)
        if known is None or known[0] is not bundle:
            known = self._keys[bundle.name] = bundle, _build_key(bundle)
        return known[1]

    def _find_session(self, bundle: Bundle) -> WarmSession | None:
        """The session that a call may have at this moment, if there is one."""
        held = self.given(bundle)
        warm = self._warm.get((self._find_key(bundle), held.accounts))
        return warm if warm is not None and not warm.ended and warm.held == held else None

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
        idle = [place for place, warm in self._warm.items() if chosen(warm) and not warm.busy]
        idle.sort(key=lambda place: self._warm[place].used)
        for place in idle[: max(0, count)]:
            task = asyncio.create_task(self._warm.pop(place).stack.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _open_session(self, bundle: Bundle, place: Place) -> WarmSession | None:
        """Open a session in the place of those that may be lent no more; None where the accounts
        changed meanwhile, so that it belongs in another one.
        """
        grants = self.given(bundle).grants
        await self._close_sessions(
            at
            for at, warm in self._warm.items()
            if at == place or (at[0][0] == bundle.name and warm.held.grants != grants)
        )
        # From here on up to its broker nothing else runs: it holds on to just that.
        held = self.given(bundle)
        if held.accounts != place[1]:
            return None
        stack = AsyncExitStack()
        session = await stack.enter_async_context(self.runner.open(bundle, self.broker(bundle)))
        warm = self._warm[place] = WarmSession(session, stack, held, time.monotonic())
        return warm

    async def _close_sessions(self, places: Iterable[Place]) -> None:
        for place in tuple(places):
            if warm := self._warm.pop(place, None):
                await warm.stack.aclose()


def _build_key(bundle: Bundle) -> Key:
    """A session may send what reads, so another classification needs another session."""
    reads = frozenset(tool.name for tool in bundle.tools if tool.access == "read")
    return bundle.name, bundle.version, reads
