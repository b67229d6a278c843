from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

import pytest

from sandbox.broker.broker import Broker
from sandbox.broker.throttle import Throttle
from sandbox.bundle.credential import Credential, TokenEndpoint
from sandbox.clock import VirtualClock
from sandbox.credentials.source import CredentialCache, CredentialSource, carry_account
from sandbox.wire.exchange import Exchange, Release, WireRequest, WireResponse
from sandbox.wire.policy import Origin
from tests.sandbox.scripted import API, Told, answer, broker, get, rule

TOKEN_URL = "https://login.test/token"
ENDPOINT = TokenEndpoint(TOKEN_URL, grants=("client_credentials", "refresh_token"))
PAIR = "my-app:cl13nt-s3cret"
REFRESH = json.dumps({"client_id": "app", "client_secret": "cs-99", "refresh_token": "refresh-0"})
CANARIES = ("cl13nt-s3cret", "cs-99", "refresh-", "access-")


@dataclass
class World:
    """An API whose tokens are had at another host; `good` are those it accepts."""

    good: list[str] = field(default_factory=list)
    forms: list[dict[str, str]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    issue: Callable[[World], dict[str, Any]] = lambda world: {}
    failure: WireResponse | None = None
    echo: bool = False

    def __call__(self, request: WireRequest) -> WireResponse:
        if request.url.startswith(API):
            return self.served(request)
        if request.method == "GET":
            return answer(200, {"token_endpoint": TOKEN_URL})
        self.forms.append({key: v[0] for key, v in parse_qs(request.body.decode()).items()})
        self.heads.append(request.get_header("Authorization") or "")
        if self.failure:
            return self.failure
        self.good = [f"access-{len(self.forms)}"]
        body = {"access_token": self.good[0], "token_type": "Bearer", "expires_in": 600}
        return answer(200, {**body, **self.issue(self)})

    def served(self, request: WireRequest) -> WireResponse:
        sent = (request.get_header("Authorization") or "").removeprefix("Bearer ")
        if sent in self.good:
            return answer(200, sent if self.echo else "fine")
        return answer(401, f"not {sent}")


@dataclass
class Installation:
    """A server that has an oauth2 credential, and its broker."""

    world: World
    secret: str = PAIR
    tokens: TokenEndpoint | None = ENDPOINT
    kind: str = "oauth2"
    clock: VirtualClock = field(default_factory=VirtualClock)
    wallet: CredentialCache = field(default_factory=CredentialCache)
    throttle: Throttle | None = None
    allowed: bool = True

    def __post_init__(self) -> None:
        self.upstream = Told(self.world)

    def keep(self, name: str, secret: str) -> None:
        self.secret = secret
        self.world.kept.append(secret)

    def may_ask(self, origin: Origin) -> bool:
        return self.allowed

    def broker(self, method: str = "GET", read: bool = True, api: str = API) -> Broker:
        source = CredentialSource(
            {"o": Credential("o", self.kind, tokens=self.tokens)},
            lambda name: self.secret,
            "server",
            self.wallet,
            self.keep,
            self.may_ask,
        )
        wanted = rule(method, security=(("o",),), read=read, url=api)
        writes = None if read else Release(None)
        return broker(
            self.upstream,
            wanted,
            credentials=source,
            clock=self.clock,
            throttle=self.throttle,
            writes=writes,
        )

    def get(self) -> Exchange:
        return asyncio.run(self.broker().perform(get()))

    def status(self) -> int:
        exchange = self.get()
        assert exchange.response is not None, exchange.reason
        return exchange.response.status


def test_a_token_is_had_with_the_clients_secret_and_used_until_it_expires() -> None:
    made = Installation(World())
    assert [made.status() for _ in range(3)] == [200, 200, 200]
    assert made.world.forms == [{"grant_type": "client_credentials"}]
    assert base64.b64decode(made.world.heads[0].removeprefix("Basic ")).decode() == PAIR
    asyncio.run(made.clock.sleep(545.0))
    assert (made.status(), len(made.world.forms)) == (200, 2)


def test_the_exchange_shows_the_request_alone_and_neither_token_nor_secret() -> None:
    made = Installation(World(echo=True))
    exchange = made.get()
    assert exchange.response is not None
    assert exchange.response.body == b"[redacted]"
    assert not any(canary in str(exchange) for canary in CANARIES)
    assert TOKEN_URL not in str(exchange)


def test_many_requests_at_once_fetch_one_token() -> None:
    made = Installation(World())

    async def all_at_once() -> list[Exchange]:
        brokers = [made.broker() for _ in range(8)]
        return await asyncio.gather(*(each.perform(get()) for each in brokers))

    assert all(e.response and e.response.status == 200 for e in asyncio.run(all_at_once()))
    assert len(made.world.forms) == 1


def test_a_client_that_must_not_use_basic_is_tried_once_in_the_body() -> None:
    class Picky(World):
        def __call__(self, request: WireRequest) -> WireResponse:
            if request.url == TOKEN_URL and request.get_header("Authorization"):
                self.forms.append({})
                return answer(401, {"error": "invalid_client"})
            return super().__call__(request)

    made = Installation(Picky())
    assert made.status() == 200
    sent = made.world.forms[1]
    assert (sent["client_id"], sent["client_secret"]) == ("my-app", "cl13nt-s3cret")
    made.wallet.tokens.void_token(("server", "o"), made.world.good[0])
    assert (made.status(), len(made.world.forms)) == (200, 3)


def test_a_given_token_is_used_as_it_is() -> None:
    made = Installation(World(good=["given-1"]), secret="given-1")
    assert (made.status(), made.world.forms) == (200, [])


def test_a_given_token_that_is_refused_is_told_and_stays_the_one_to_use() -> None:
    made = Installation(World(), secret="given-1")
    exchange = made.get()
    assert exchange.response is not None
    assert (exchange.response.status, exchange.response.body) == (401, b"not [redacted]")
    made.world.good = ["given-1"]
    assert (made.status(), made.world.forms) == (200, [])


def test_a_given_token_that_is_refused_gives_way_to_a_refreshed_one() -> None:
    secret = json.dumps({**json.loads(REFRESH), "access_token": "given-1"})
    made = Installation(World(), secret=secret)
    assert (made.status(), len(made.upstream.requests)) == (200, 3)
    assert (made.status(), len(made.world.forms)) == (200, 1)


def test_without_a_token_and_a_way_to_one_it_is_said_what_to_set() -> None:
    made = Installation(World(), secret='{"client_id": "only"}')
    assert "client_secret or refresh_token" in made.get().reason
    without = Installation(World(), secret='{"client_id": "only"}', tokens=None)
    assert "no token endpoint is known" in without.get().reason


def test_a_read_that_is_refused_gets_a_new_token_once() -> None:
    made = Installation(World())
    assert made.status() == 200
    made.world.good = []
    assert (made.status(), len(made.world.forms)) == (200, 2)
    made.world.issue = lambda world: {"access_token": "access-of-nobody"}
    made.world.good = []
    assert (made.status(), len(made.world.forms)) == (401, 3)


def test_a_write_that_is_refused_is_not_sent_again_but_the_next_has_a_new_token() -> None:
    made = Installation(World())
    assert made.status() == 200
    made.world.good = []
    post = WireRequest("POST", API + "/things")
    first = asyncio.run(made.broker("POST", read=False).perform(post))
    second = asyncio.run(made.broker("POST", read=False).perform(post))
    assert first.response is not None
    assert second.response is not None
    assert (first.response.status, first.attempts) == (401, 1)
    assert (second.response.status, second.attempts) == (200, 1)


def test_a_refresh_token_is_used_and_a_rotated_one_is_kept_before_the_new_token_is() -> None:
    made = Installation(World(), secret=REFRESH)
    made.world.issue = lambda world: {"refresh_token": f"refresh-{len(world.forms)}"}
    assert made.status() == 200
    assert made.world.forms[0]["refresh_token"] == "refresh-0"
    assert json.loads(made.world.kept[-1]) == {**json.loads(REFRESH), "refresh_token": "refresh-1"}
    made.world.good = []
    assert made.status() == 200
    assert made.world.forms[1]["refresh_token"] == "refresh-1"
    other = replace(made, wallet=CredentialCache())
    made.world.good = []
    assert other.status() == 200
    assert made.world.forms[2]["refresh_token"] == "refresh-2"


def test_a_refresh_token_that_another_process_has_replaced_is_read_anew() -> None:
    made = Installation(World(), secret=REFRESH)

    class Rotated(World):
        def __call__(self, request: WireRequest) -> WireResponse:
            if b"refresh-0" in request.body:
                made.secret = REFRESH.replace("refresh-0", "refresh-7")
                return answer(400, {"error": "invalid_grant"})
            return super().__call__(request)

    made.upstream = Told(world := Rotated())
    assert made.status() == 200
    assert world.forms[0]["refresh_token"] == "refresh-7"


def test_a_refused_refresh_token_falls_back_to_the_clients_own_grant() -> None:
    class Revoked(World):
        def __call__(self, request: WireRequest) -> WireResponse:
            if b"refresh_token" in request.body:
                return answer(400, {"error": "invalid_grant"})
            return super().__call__(request)

    made = Installation(Revoked(), secret=REFRESH)
    assert made.status() == 200
    assert made.world.forms[-1]["grant_type"] == "client_credentials"


def test_a_password_grant_sends_user_and_password() -> None:
    made = Installation(World(), secret='{"username": "me", "password": "pw-1234"}')
    assert made.status() == 200
    assert made.world.forms == [{"grant_type": "password", "username": "me", "password": "pw-1234"}]


def test_scope_and_audience_of_the_secret_and_scopes_of_the_bundle_are_asked_for() -> None:
    secret = '{"client_id": "a", "client_secret": "b", "audience": "https://api.test"}'
    scoped = replace(ENDPOINT, scopes=("read", "write:x"))
    made = Installation(World(), secret=secret, tokens=scoped)
    assert made.status() == 200
    assert made.world.forms[0]["scope"] == "read write:x"
    assert made.world.forms[0]["audience"] == "https://api.test"


@pytest.mark.parametrize(
    "said",
    [
        {"scope": "read"},
        {"expires_in": "soon"},
        {"expires_in": True},
        {"expires_in": [1]},
        {"expires_in": 1e300},
        {"token_type": None},
    ],
)
def test_a_token_is_used_whatever_else_is_said_of_it(said: dict[str, Any]) -> None:
    made = Installation(
        World(issue=lambda world: said), tokens=replace(ENDPOINT, scopes=("r", "w"))
    )
    assert (made.status(), made.status(), len(made.world.forms)) == (200, 200, 1)


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (
            answer(400, {"error": "invalid_grant", "error_description": "no cl13nt-s3cret\x1b[2J"}),
            "the token endpoint answered 400 invalid_grant: no [redacted]",
        ),
        (answer(500, "<h1>oops cl13nt-s3cret</h1>"), "answered 500 with no reason"),
        (answer(302, location="https://evil.test/"), "answered 302"),
        (answer(200, "not json"), "without a usable access_token"),
        (answer(200, "access_token=x&token_type=bearer"), "without a usable access_token"),
        (answer(200, '[{"access_token": "x"}]'), "without a usable access_token"),
        (answer(200, {"access_token": "a b"}), "without a usable access_token"),
        (answer(200, {"access_token": "a\r\nX: 1"}), "without a usable access_token"),
        (answer(200, {"access_token": 7}), "without a usable access_token"),
        (answer(200, {"access_token": "ok", "token_type": "mac"}), "'mac' token"),
        (answer(200, "[" * 100_000), "without a usable access_token"),
        (answer(200, b" " * 300_000 + b'{"access_token":"x"}'), "without a usable access_token"),
    ],
)
def test_a_failure_of_the_token_endpoint_is_told_without_a_secret(
    failure: WireResponse, told: str
) -> None:
    made = Installation(World(failure=failure))
    exchange = made.get()
    assert (exchange.refusal, exchange.attempts) == ("credential", 0)
    assert told in exchange.reason
    assert "cl13nt-s3cret" not in exchange.reason
    assert "\x1b" not in exchange.reason
    assert not [r for r in made.upstream.requests if not r.url.startswith(TOKEN_URL)]


def test_a_failed_token_for_a_write_leaves_the_write_unsent_and_unreleased() -> None:
    made = Installation(World(failure=answer(500)))
    writing = made.broker("POST", read=False)
    exchange = asyncio.run(writing.perform(WireRequest("POST", API + "/things")))
    assert (exchange.refusal, writing.released) == ("credential", False)


def test_a_token_endpoint_that_nobody_allowed_is_not_asked() -> None:
    made = Installation(World(), allowed=False)
    exchange = made.get()
    assert "toolwright source allow login.test:443" in exchange.reason
    assert made.upstream.requests == []


def test_a_secret_goes_in_clear_only_where_the_api_itself_is_in_clear() -> None:
    made = Installation(World(), tokens=TokenEndpoint("http://login.test/token"))
    assert "not https" in made.get().reason
    assert made.upstream.requests == []


def test_a_token_endpoint_that_asks_for_a_pause_is_left_alone_meanwhile() -> None:
    made = Installation(World(failure=answer(429, retry_after="90")), throttle=Throttle())
    assert "answered 429" in made.get().reason
    second = made.get()
    assert (second.refusal, second.retry_after) == ("rate_limited", 90.0)
    assert len(made.upstream.requests) == 1


def test_openid_connect_finds_its_token_endpoint_on_its_own_host_only() -> None:
    found = TokenEndpoint(discovery="https://login.test/.well-known/openid-configuration")
    made = Installation(World(), tokens=found, kind="openIdConnect")
    assert (made.status(), made.status()) == (200, 200)
    assert [r.method for r in made.upstream.requests] == ["GET", "POST", "GET", "GET"]
    elsewhere = TokenEndpoint(discovery="https://other.test/.well-known/openid-configuration")
    strange = Installation(World(), tokens=elsewhere, kind="openIdConnect")
    assert "https://login.test, which is not declared" in strange.get().reason
    assert len(strange.upstream.requests) == 1


def test_openid_connect_without_an_endpoint_takes_a_given_token() -> None:
    made = Installation(World(good=["t:1"]), secret="t:1", tokens=None, kind="openIdConnect")
    assert made.status() == 200


def test_a_new_secret_ends_the_use_of_the_old_ones_token() -> None:
    made = Installation(World())
    assert made.status() == 200
    made.secret = "other-app:other-secret"
    assert (made.status(), len(made.world.forms)) == (200, 2)


def test_two_servers_do_not_share_a_token() -> None:
    made = Installation(World())
    assert made.status() == 200
    assert made.wallet.tokens.list_seen_tokens(("other", "o")) == ()


def account(secret: str) -> str:
    """What tells the account of a secret from others."""
    source = CredentialSource({"auth": Credential("auth", "oauth2")}, lambda name: secret)
    return source.list_accounts((("auth",),))["auth"]


def test_a_renewed_token_is_of_the_same_account_and_another_one_is_not() -> None:
    renewed = json.dumps({**json.loads(REFRESH), "refresh_token": "refresh-1"})
    kept = carry_account(REFRESH, renewed)
    again = carry_account(kept, json.dumps({**json.loads(kept), "refresh_token": "refresh-2"}))
    assert account(kept) == account(again) == account(REFRESH)
    assert account(renewed) != account(REFRESH)
    assert account(json.dumps({**json.loads(kept), "client_id": "else"})) != account(REFRESH)
    assert json.loads(again)["refresh_token"] == "refresh-2"
