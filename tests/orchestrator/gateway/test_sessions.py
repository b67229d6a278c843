"""Warm sessions: lent again while they run and hold what their server is given, and else opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace

import pytest

from orchestrator.gateway.sessions import HeldGrants, ReadSessions, WarmSession
from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.model import Bundle
from sandbox.errors import EngineUnavailable
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
        self.gone = False
        self.ready = asyncio.Event()
        """Until then, nothing that is opened is open."""
        self.ready.set()
        self.slow, self.over = "", asyncio.Event()
        """The server whose sessions are closed only then."""

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[PipeSession]:
        if self.gone:
            raise EngineUnavailable("it does not answer")
        session = PipeSession(bundle, broker, limits or Limits(), DeadPipe())
        await self.ready.wait()
        self.open_sessions.append(session)
        yield session
        if bundle.name == self.slow:
            await self.over.wait()
        self.open_sessions.remove(session)


class Lending:
    def __init__(self, ahead: int = 0, most: int = 500) -> None:
        self.opener, self.grants = Opener(), frozenset[object]()
        self.sessions = ReadSessions(self.opener, build_broker, 0.0, self.given, ahead, most)

    async def open_ahead(self, *servers: str) -> None:
        for name in servers:
            self.sessions.open_ahead(replace(SAMPLE, name=name))
            for _ in range(5):
                await asyncio.sleep(0)

    @property
    def servers(self) -> list[str]:
        return [session.bundle.name for session in self.opener.open_sessions]

    def given(self, _: Bundle) -> HeldGrants:
        return HeldGrants(self.grants, (("oauth", ACCOUNT.get()),))

    async def lend_as(self, account: str) -> WarmSession:
        """A session for a call that goes out with that account."""
        token = ACCOUNT.set(account)
        try:
            return await self.sessions.lend_session(SAMPLE)
        finally:
            ACCOUNT.reset(token)


ACCOUNT: ContextVar[str] = ContextVar("account", default="oauth")


class AccountBroker(Broker):
    """A broker that knows the account that it goes out with."""

    account = ""


def build_broker(_: Bundle) -> Broker:
    broker = AccountBroker(Policy(()), Cassette(()))
    broker.account = ACCOUNT.get()
    return broker


def get_account(lent: WarmSession) -> str:
    assert isinstance(lent.session, PipeSession)
    assert isinstance(lent.session.broker, AccountBroker)
    return lent.session.broker.account


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


@pytest.mark.parametrize("comes", [True, False])
def test_one_that_took_the_place_of_an_idle_one_meanwhile_stays(comes: bool) -> None:
    """The second of two idle ones is closed, for a call that comes or not, while the first is."""

    async def work() -> None:
        lending = Lending()
        one, two = [replace(SAMPLE, name=name) for name in ("one", "two")]
        for each in one, two:
            (await lending.sessions.lend_session(each)).give_back()
        lending.opener.slow = "one"
        chore = asyncio.create_task(lending.sessions.close_idle())
        await asyncio.sleep(0)
        await lending.sessions.drop_sessions("two")
        lent = [(await lending.sessions.lend_session(two)).session] if comes else []
        lending.opener.over.set()
        await chore
        assert lending.opener.open_sessions == lent
        await lending.sessions.close()
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
        lending.grants = frozenset({"another host"})
        second = await lending.sessions.lend_session(SAMPLE)
        assert lending.opener.open_sessions == [second.session] != [first.session]
        # What comes back late belongs to a session that is closed, and frees no other one.
        first.give_back()
        assert second.busy == 1

    asyncio.run(work())


def test_one_opened_ahead_is_lent_to_the_call_that_comes_and_stays_when_others_are_opened() -> None:
    async def work() -> None:
        lending = Lending(ahead=2)
        await lending.open_ahead("one", "one")
        assert lending.servers == ["one"]
        lent = await lending.sessions.lend_session(replace(SAMPLE, name="one"))
        assert lending.opener.open_sessions == [lent.session]
        lent.give_back()
        await lending.open_ahead("two", "three", "four")
        assert lending.servers == ["one", "three", "four"]

    asyncio.run(work())


def test_none_is_opened_ahead_where_none_is_wanted_and_an_engine_that_is_gone_is_no_error() -> None:
    async def work() -> None:
        lending = Lending()
        await lending.open_ahead("one")
        assert lending.servers == []
        lending = Lending(ahead=2)
        lending.opener.gone = True
        await lending.open_ahead("one")
        assert lending.sessions.count == 0
        lending.opener.gone = False
        await lending.open_ahead("one")
        assert lending.servers == ["one"]

    asyncio.run(work())


def test_calls_that_come_at_once_each_go_out_with_their_own_account() -> None:
    """Whoever waits while the session of one account is opened, or closed, is not lent it."""

    async def work() -> None:
        lending = Lending()
        lending.opener.ready.clear()
        names = ["oauth@home", "oauth@work", "oauth@home", "oauth@work", "oauth"]
        calls = [asyncio.create_task(lending.lend_as(name)) for name in names]
        await asyncio.sleep(0)
        lending.opener.ready.set()
        lent = await asyncio.gather(*calls)
        assert list(map(get_account, lent)) == names
        # None has taken another one's session away.
        assert len(lending.opener.open_sessions) == lending.sessions.count == 3

    asyncio.run(work())


def test_one_that_is_being_opened_ahead_is_closed_at_the_end() -> None:
    async def work() -> None:
        lending = Lending(ahead=1)
        lending.sessions.open_ahead(SAMPLE)
        await lending.sessions.close()
        assert lending.sessions.count == 0
        assert lending.servers == []

    asyncio.run(work())


def test_a_grant_closes_the_sessions_of_every_account() -> None:
    async def work() -> None:
        lending = Lending()
        before = await lending.lend_as("oauth@home")
        lending.grants = frozenset({"another host"})
        lending.opener.ready.clear()
        first, second = [asyncio.create_task(lending.lend_as(n)) for n in ("oauth@home", "oauth")]
        await asyncio.sleep(0)
        lending.opener.ready.set()
        assert get_account(await first) == "oauth@home"
        assert get_account(await second) == "oauth"
        assert before.session not in lending.opener.open_sessions

    asyncio.run(work())


def test_what_was_used_longest_ago_is_closed_for_another_and_never_what_a_call_has() -> None:
    async def work() -> None:
        lending = Lending(most=2)
        lent = [
            await lending.sessions.lend_session(replace(SAMPLE, name=name))
            for name in ("one", "two", "three")
        ]
        assert lending.servers == ["one", "two", "three"]
        for each in lent[1], lent[0]:
            each.give_back()
        (await lending.sessions.lend_session(replace(SAMPLE, name="four"))).give_back()
        while len(lending.servers) > 2:
            await asyncio.sleep(0)
        assert lending.servers == ["three", "four"]

    asyncio.run(work())


def test_one_that_was_being_opened_when_something_was_granted_is_not_lent_after_that() -> None:
    async def work() -> None:
        lending = Lending()
        lending.opener.ready.clear()
        early = asyncio.create_task(lending.lend_as("oauth"))
        await asyncio.sleep(0)
        lending.grants = frozenset({"another host"})
        late = asyncio.create_task(lending.lend_as("oauth"))
        await asyncio.sleep(0)
        lending.opener.ready.set()
        first, second = await asyncio.gather(early, late)
        assert first.session is not second.session
        assert lending.opener.open_sessions == [second.session]

    asyncio.run(work())
