"""Tokens of a log-in: used while they last, renewed once for all, kept whatever happens."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import pytest

from sandbox.broker.broker import Broker
from sandbox.bundle.credential import Credential, TokenEndpoint
from sandbox.clock import VirtualClock
from sandbox.credentials.source import CredentialCache, CredentialSource
from sandbox.wire.exchange import WireRequest, WireResponse
from tests.sandbox.scripted import API, answer, broker, get, rule

TOKEN_URL = "https://login.test/token"
EPOCH = VirtualClock().get_wall_time()
LOGIN = {
    "grant": "authorization_code",
    "token_url": TOKEN_URL,
    "client_id": "app",
    "refresh_token": "refresh-0",
    "access_token": "access-0",
    "expires_at": EPOCH + 100,
    "resource": API,
}


@dataclass
class World:
    """An API and its token endpoint, which takes each refresh token once. `secret` is the vault's,
    `lock` that of the secret.
    """

    secret: str
    forms: list[dict[str, str]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    refused: tuple[str, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)
    answering: asyncio.Event | None = None
    asked: asyncio.Event | None = None

    async def send(self, request: WireRequest) -> WireResponse:
        if request.url != TOKEN_URL:
            sent = (request.get_header("Authorization") or "").removeprefix("Bearer ")
            self.seen.append(sent)
            return answer(401 if sent in self.refused else 200, "")
        form = {key: values[0] for key, values in parse_qs(request.body.decode()).items()}
        self.forms.append(form)
        if self.asked and self.answering:
            self.asked.set()
            await self.answering.wait()
        number = len(self.forms)
        if form.get("refresh_token") != f"refresh-{number - 1}":
            return answer(400, {"error": "invalid_grant"})
        given = {"access_token": f"access-{number}", "refresh_token": f"refresh-{number}"}
        return answer(200, {**given, "expires_in": 600})

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        with self.lock:
            yield

    def keep(self, name: str, secret: str) -> None:
        self.secret = secret

    def kept(self, name: str) -> Any:
        return json.loads(self.secret)[name]


def process(world: World, clock: VirtualClock, credential: Credential | None = None) -> Broker:
    """The broker of a process of its own."""
    source = CredentialSource(
        {"o": credential or Credential("o", "oauth2")},
        lambda name: world.secret,
        "server",
        CredentialCache(),
        world.keep,
        hold=world.hold,
        again=lambda name: "toolwright login server",
    )
    return broker(world, rule(security=(("o",),)), credentials=source, clock=clock)  # type: ignore[arg-type]


def logged_in(**changes: Any) -> World:
    return World(json.dumps({**LOGIN, **changes}))


def test_a_token_is_used_until_its_time_and_then_renewed_with_its_resource() -> None:
    world, clock = logged_in(), VirtualClock()
    one = process(world, clock)
    asyncio.run(one.perform(get()))
    asyncio.run(clock.sleep(101))
    asyncio.run(one.perform(get()))
    assert world.seen == ["access-0", "access-1"]
    assert world.forms == [
        {
            "grant_type": "refresh_token",
            "refresh_token": "refresh-0",
            "resource": API,
            "client_id": "app",
        }
    ]
    assert (world.kept("refresh_token"), world.kept("access_token")) == ("refresh-1", "access-1")


def test_processes_that_need_a_token_at_once_ask_for_one() -> None:
    world = logged_in(expires_at=EPOCH - 1)

    async def scenario() -> None:
        brokers = [process(world, VirtualClock()) for _ in range(8)]
        await asyncio.gather(*(each.perform(get()) for each in brokers))

    asyncio.run(scenario())
    assert len(world.forms) == 1
    assert world.seen == ["access-1"] * 8


def test_a_token_that_is_refused_is_renewed_and_other_processes_take_that_one() -> None:
    world, clock = logged_in(), VirtualClock()
    world.refused = ("access-0",)
    first, second = process(world, clock), process(world, clock)
    for each in (first, second):
        asyncio.run(each.perform(get()))
    assert len(world.forms) == 1
    assert world.seen == ["access-0", "access-1", "access-1"]


def test_a_call_that_is_cut_off_while_its_token_is_renewed_leaves_the_new_one_kept() -> None:
    world = logged_in(expires_at=EPOCH - 1)

    async def scenario() -> None:
        world.asked, world.answering = asyncio.Event(), asyncio.Event()
        call = asyncio.create_task(process(world, VirtualClock()).perform(get()))
        await world.asked.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        world.answering.set()
        # Whoever comes next waits for the renewal that goes on, and takes what it gave.
        await process(world, VirtualClock()).perform(get())

    asyncio.run(scenario())
    assert world.kept("refresh_token") == "refresh-1"
    assert (len(world.forms), world.seen) == (1, ["access-1"])


def test_a_call_that_is_cut_off_while_it_waits_for_the_lock_does_not_keep_it() -> None:
    world = logged_in(expires_at=EPOCH - 1)

    async def scenario() -> None:
        with world.lock:
            call = asyncio.create_task(process(world, VirtualClock()).perform(get()))
            await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        await process(world, VirtualClock()).perform(get())

    asyncio.run(scenario())
    assert world.seen == ["access-1"]


def test_a_log_in_that_has_ended_says_how_to_log_in_again_and_asks_for_nothing_else() -> None:
    secret = {"client_secret": "client-canary", "refresh_token": "gone", "expires_at": EPOCH - 1}
    world = logged_in(**secret)
    endpoint = TokenEndpoint(TOKEN_URL, grants=("client_credentials",))
    made = process(world, VirtualClock(), Credential("o", "oauth2", tokens=endpoint))
    exchange = asyncio.run(made.perform(get()))
    assert exchange.refusal == "credential"
    assert "log in again: `toolwright login server`" in exchange.reason
    assert {form["grant_type"] for form in world.forms} == {"refresh_token"}


def test_without_a_refresh_token_the_end_of_a_token_says_so() -> None:
    world = logged_in(refresh_token="", expires_at=EPOCH - 1)
    exchange = asyncio.run(process(world, VirtualClock()).perform(get()))
    assert "`toolwright login server`" in exchange.reason
    assert world.forms == []


@pytest.mark.parametrize(
    "credential",
    [Credential("o", "bearer"), Credential("o", "apiKey", "header", "authorization")],
    ids=["bearer", "header"],
)
def test_a_log_in_serves_a_scheme_that_is_not_called_oauth(credential: Credential) -> None:
    world = logged_in(expires_at=EPOCH - 1)
    asyncio.run(process(world, VirtualClock(), credential).perform(get()))
    assert world.seen == ["access-1"]


def test_a_key_that_only_looks_like_a_log_in_is_sent_as_it_is() -> None:
    world = World('{"grant": "none", "access_token": "x"}')
    asyncio.run(process(world, VirtualClock(), Credential("o", "bearer")).perform(get()))
    assert world.seen == [world.secret]
