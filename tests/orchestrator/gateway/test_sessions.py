"""Warm sessions: lent again while they run and hold what their server is given, and else opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestrator.gateway.sessions import ReadSessions
from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.model import Bundle
from sandbox.session.interface import Limits
from sandbox.session.pipe import PipeSession
from sandbox.wire.policy import Policy
from tests.engine.samples import bundle


class DeadPipe:
    def write(self, data: bytes) -> None:
        pass

    def count_unread(self) -> int:
        return 0

    def kill(self) -> None:
        pass


class Opener:
    """A runner whose sessions have nothing at the far end; it knows which ones are open."""

    def __init__(self) -> None:
        self.open_sessions: list[PipeSession] = []

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[PipeSession]:
        session = PipeSession(bundle, broker, limits or Limits(), DeadPipe())
        self.open_sessions.append(session)
        yield session
        self.open_sessions.remove(session)


class Lending:
    def __init__(self) -> None:
        self.opener, self.given = Opener(), frozenset[object]()
        self.sessions = ReadSessions(
            self.opener, lambda _: Broker(Policy(()), Cassette(())), 0.0, lambda _: self.given
        )


SAMPLE = bundle("", "one", pure=True)


def test_a_session_is_lent_again_and_closed_once_nobody_has_it() -> None:
    async def work() -> None:
        lending = Lending()
        first, second = [await lending.sessions.lend_session(SAMPLE) for _ in range(2)]
        assert first.session is second.session
        first.give_back()
        await lending.sessions.close_idle()
        assert lending.sessions.count == 1
        second.give_back()
        await lending.sessions.close_idle()
        assert lending.opener.open_sessions == []

    asyncio.run(work())


def test_one_that_ended_while_nobody_used_it_is_not_lent() -> None:
    async def work() -> None:
        lending = Lending()
        first = await lending.sessions.lend_session(SAMPLE)
        first.give_back()
        assert isinstance(first.session, PipeSession)
        first.session.end()
        second = await lending.sessions.lend_session(SAMPLE)
        assert lending.opener.open_sessions == [second.session] != [first.session]

    asyncio.run(work())


def test_one_from_before_something_was_granted_is_closed() -> None:
    async def work() -> None:
        lending = Lending()
        first = await lending.sessions.lend_session(SAMPLE)
        lending.given = frozenset({"another host"})
        second = await lending.sessions.lend_session(SAMPLE)
        assert lending.opener.open_sessions == [second.session] != [first.session]
        # What comes back late belongs to a session that is closed, and frees no other one.
        first.give_back()
        assert second.busy == 1

    asyncio.run(work())
