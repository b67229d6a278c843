"""Log-ins: what other programs and sites bring to the redirect, what metadata and token endpoints
answer, and where the tokens may go afterwards.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from orchestrator.approvals.accounts import choose_account
from orchestrator.errors import LoginFailed
from orchestrator.gateway.brokers import BrokerFactory
from orchestrator.logins.exchange import Client, TokenClient, Wanted, generate_pkce
from orchestrator.logins.flow import LoginResult, LoginTerminal, log_in
from orchestrator.logins.keeping import build_secret, keep_login, set_default
from orchestrator.logins.loopback import HOST, PATH, listen_for_redirect
from orchestrator.logins.metadata import AuthorizationServer, discover_server
from orchestrator.logins.plan import LoginOrder, LoginPlan, describe_plan, plan_login
from orchestrator.logins.requests import LoginNetwork
from orchestrator.settings import Settings, load_settings
from registry.models import Grant
from registry.secrets.vault import FileVault, Secret
from registry.secrets.vault_key import KeyFile
from registry.store import Store
from sandbox.broker.throttle import Throttle
from sandbox.bundle.credential import Credential, TokenEndpoint
from sandbox.bundle.model import Bundle
from sandbox.clock import VirtualClock
from sandbox.credentials.token_endpoint import GivenTokens
from sandbox.credentials.uses import SecretUse
from sandbox.errors import Frozen, UpstreamUnreachable
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse
from sandbox.wire.policy import parse_origin
from tests.granted import allow, consents, person
from tests.sandbox.scripted import Told, answer
from tests.world.loopback import Answering, served

API, LOGIN, OTHER = "https://api.bank.test", "https://login.bank.test", "https://other.test"
CODE, TOKEN, REFRESH = "code-canary-4713", "access-canary-4714", "refresh-canary-4715"
METADATA = {
    "issuer": LOGIN,
    "authorization_endpoint": f"{LOGIN}/authorize",
    "token_endpoint": f"{LOGIN}/token",
    "device_authorization_endpoint": f"{LOGIN}/device",
    "authorization_response_iss_parameter_supported": True,
}
GIVEN = {"access_token": TOKEN, "refresh_token": REFRESH, "token_type": "Bearer", "expires_in": 600}


@dataclass
class World:
    """Answers by URL; keeps every request."""

    answers: Mapping[str, Any]
    asked: list[WireRequest] = field(default_factory=list)

    async def fetch(self, request: WireRequest) -> WireResponse:
        self.asked.append(request)
        made = self.answers.get(request.url)
        if made is None:
            return answer(404, "")
        return made if isinstance(made, WireResponse) else answer(200, made)

    def heard(self, text: str) -> list[str]:
        """The URLs of the requests that carried a text."""
        sent = [(r.url, r.url + str(r.headers) + r.body.decode("latin-1")) for r in self.asked]
        return [url for url, whole in sent if text in whole]


def build_order(**fields: Any) -> LoginOrder:
    tokens = TokenEndpoint(discovery=f"{LOGIN}/.well-known/openid-configuration")
    given = {"tokens": tokens, "client": Client("app"), "base_url": API, **fields}
    credential = Credential("oauth", "oauth2", tokens=given.pop("tokens"))
    return LoginOrder("bank", credential, uses=(), **given)


def build_world(metadata: Mapping[str, Any] = METADATA, **answers: Any) -> World:
    documents = {f"{LOGIN}/.well-known/openid-configuration": metadata}
    return World({**documents, f"{LOGIN}/token": GIVEN, **answers})


async def bring(port: int, target: str, method: str = "GET", host: str = "") -> str:
    """What a program of this machine gets that connects to a port of the loopback."""
    reader, writer = await asyncio.open_connection(HOST, port)
    head = f"{method} {target} HTTP/1.1\r\nHost: {host or f'{HOST}:{port}'}\r\n\r\n"
    writer.write(head.encode())
    text = (await reader.read()).decode()
    writer.close()
    return text


Visit = Callable[[str, int, str], list[tuple[str, str, str]]]
"""What comes to the redirect, by state, port and issuer: targets, methods and hosts."""


def run_login(
    world: World, visit: Visit, seconds: float = 60.0, order: LoginOrder | None = None
) -> LoginResult:
    """A log-in by the browser, where these requests come to the redirect one after the other."""

    async def scenario() -> LoginResult:
        plan = await plan_login(order or build_order(), world.fetch)
        loop = asyncio.get_running_loop()

        def open_page(url: str) -> bool:
            query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
            port = urlsplit(query["redirect_uri"]).port
            assert port is not None

            async def come() -> None:
                for target, method, host in visit(query["state"], port, LOGIN):
                    await bring(port, target, method, host)

            asyncio.run_coroutine_threadsafe(come(), loop).result(60)
            return True

        return await log_in(
            plan, world.fetch, LoginTerminal(lambda line: None, open_page, True, seconds)
        )

    return asyncio.run(scenario())


def redirect(**query: str) -> str:
    return f"{PATH}?{urlencode(query)}"


def test_the_answer_of_the_server_that_was_asked_ends_the_log_in() -> None:
    world = build_world()
    result = run_login(world, lambda s, p, i: [(redirect(code=CODE, state=s, iss=i), "GET", "")])
    assert result.tokens.access_token == TOKEN
    assert world.heard(CODE) == [f"{LOGIN}/token"]


FORGED: dict[str, Visit] = {
    "another state": lambda s, p, i: [(redirect(code="forged", state="x", iss=i), "GET", "")],
    "no state": lambda s, p, i: [(redirect(code="forged", iss=i), "GET", "")],
    "state twice": lambda s, p, i: [
        (f"{redirect(code='forged', state=s, iss=i)}&state=x", "GET", "")
    ],
    "code twice": lambda s, p, i: [
        (f"{redirect(code='forged', state=s, iss=i)}&code=y", "GET", "")
    ],
    "another method": lambda s, p, i: [(redirect(code="forged", state=s, iss=i), "POST", "")],
    "another path": lambda s, p, i: [
        (redirect(code="forged", state=s, iss=i).replace(PATH, PATH + "/x"), "GET", "")
    ],
    "an absolute target": lambda s, p, i: [
        (f"http://{HOST}:{p}" + redirect(code="forged", state=s, iss=i), "GET", "")
    ],
    "a rebound name": lambda s, p, i: [
        (redirect(code="forged", state=s, iss=i), "GET", f"evil.test:{p}")
    ],
    "localhost by name": lambda s, p, i: [
        (redirect(code="forged", state=s, iss=i), "GET", f"localhost:{p}")
    ],
    "an error with another state": lambda s, p, i: [
        (redirect(error="access_denied", state="x"), "GET", "")
    ],
    "no HTTP": lambda s, p, i: [("\x00\x00", "\x16\x03", "")],
}


@pytest.mark.parametrize("visit", FORGED.values(), ids=list(FORGED))
def test_what_another_program_or_page_brings_to_the_redirect_changes_nothing(visit: Visit) -> None:
    world = build_world()

    def both(state: str, port: int, issuer: str) -> list[tuple[str, str, str]]:
        right = (redirect(code=CODE, state=state, iss=issuer), "GET", "")
        return [*visit(state, port, issuer), right]

    assert run_login(world, both).tokens.access_token == TOKEN
    assert world.heard("forged") == []


def test_a_second_redirect_is_not_taken() -> None:
    async def scenario() -> tuple[str, str]:
        async with listen_for_redirect("s" * 20) as listener:
            first = await bring(listener.port, redirect(code=CODE, state="s" * 20))
            second = await bring(listener.port, redirect(code="forged", state="s" * 20))
            assert (await listener.wait_for_redirect(60)).code == CODE
            return first, second

    first, second = asyncio.run(scenario())
    assert "may be closed" in first
    assert second.startswith("HTTP/1.1 404")
    assert CODE not in first


@pytest.mark.parametrize("issuer", [OTHER, f"{LOGIN}/", ""], ids=["other", "longer", "none"])
def test_a_code_that_came_from_another_server_is_given_to_nobody(issuer: str) -> None:
    world = build_world()
    with pytest.raises(LoginFailed):
        run_login(world, lambda s, p, i: [(redirect(code=CODE, state=s, iss=issuer), "GET", "")])
    assert world.heard(CODE) == []


NAMED = TokenEndpoint(f"{LOGIN}/token", authorization_url=f"{LOGIN}/authorize")
"""Endpoints of which nothing but a description tells."""


@pytest.mark.parametrize("issuer", [OTHER, "login.bank.test", "null"], ids=["other", "host", "no"])
def test_a_page_that_a_description_names_cannot_send_the_browser_on_for_anothers_code(
    issuer: str,
) -> None:
    world, order = World({f"{LOGIN}/token": GIVEN}), build_order(tokens=NAMED)
    with pytest.raises(LoginFailed, match="none of the hosts that you were shown"):
        run_login(
            world,
            lambda s, p, i: [(redirect(code=CODE, state=s, iss=issuer), "GET", "")],
            order=order,
        )
    assert world.heard(CODE) == []


@pytest.mark.parametrize("said", [{"iss": f"{LOGIN}/tenant/7"}, {}], ids=["its own", "none"])
def test_a_log_in_that_a_description_alone_names_ends_with_its_own_answer(
    said: dict[str, str],
) -> None:
    world, order = World({f"{LOGIN}/token": GIVEN}), build_order(tokens=NAMED)
    result = run_login(
        world, lambda s, p, i: [(redirect(code=CODE, state=s, **said), "GET", "")], order=order
    )
    assert result.tokens.access_token == TOKEN
    assert world.heard(CODE) == [f"{LOGIN}/token"]


def test_nobody_who_logs_in_ends_the_wait_and_closes_the_port() -> None:
    ports: list[int] = []

    def stay_away(state: str, port: int, issuer: str) -> list[tuple[str, str, str]]:
        ports.append(port)
        return []

    with pytest.raises(LoginFailed, match="nobody logged in"):
        run_login(build_world(), stay_away, seconds=0.2)
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(bring(ports[0], "/"))


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": OTHER},
        {"issuer": None},
        {"authorization_endpoint": "javascript:alert(1)//"},
        {"authorization_endpoint": "file:///etc/passwd"},
        {"authorization_endpoint": "http://login.bank.test/authorize"},
        {"authorization_endpoint": "https://login.bank.test@other.test/authorize"},
        {"token_endpoint": "http://login.bank.test/token"},
        {"token_endpoint": "https://login.bank.test/token#x"},
        {"token_endpoint": "https://login.bank.test/to\nken"},
        {"token_endpoint": ["https://login.bank.test/token"]},
        {"token_endpoint": "https://login.bank.test/" + "x" * 3000},
        {"code_challenge_methods_supported": ["plain"]},
    ],
    ids=str,
)
def test_metadata_that_says_what_it_may_not_is_not_believed(change: dict[str, Any]) -> None:
    world = build_world({**METADATA, **change})
    with pytest.raises(LoginFailed):
        asyncio.run(plan_login(build_order(), world.fetch))


def test_the_metadata_of_another_issuer_does_not_speak_for_this_one() -> None:
    document = {**METADATA, "issuer": LOGIN}
    world = World({f"{OTHER}/.well-known/oauth-authorization-server": document})
    with pytest.raises(LoginFailed, match="not of"):
        asyncio.run(discover_server(OTHER, world.fetch))
    own = World({f"{LOGIN}/.well-known/oauth-authorization-server": document})
    assert asyncio.run(discover_server(LOGIN, own.fetch)).token_url == f"{LOGIN}/token"


def test_endpoints_on_other_hosts_are_shown_before_a_person_says_yes() -> None:
    moved = {**METADATA, "token_endpoint": f"{OTHER}/token"}
    plan = asyncio.run(plan_login(build_order(), build_world(moved).fetch))
    shown = list(describe_plan(plan, ["other.test:443"]))
    assert ("tokens", f"{OTHER}/token") in shown
    assert ("is to go to", "https://other.test:443 token-request") in shown
    assert ("is to be allowed", "other.test:443") in shown
    assert [str(origin) for origin in plan.list_origins()] == [LOGIN, OTHER]


@pytest.mark.parametrize("named", [OTHER, f"{API}/other"], ids=["host", "path"])
def test_an_api_cannot_name_the_log_in_of_another_one(named: str) -> None:
    document = {"resource": named, "authorization_servers": [LOGIN]}
    world = World({f"{API}/.well-known/oauth-protected-resource": document})
    with pytest.raises(LoginFailed, match="speaks for"):
        asyncio.run(plan_login(build_order(tokens=None), world.fetch))


def test_an_api_names_its_own_log_in_and_its_tokens_are_for_it() -> None:
    challenge = f'Bearer error="x", resource_metadata="{API}/about"'
    world = World(
        {
            API: answer(401, "", **{"WWW-Authenticate": challenge}),
            f"{API}/about": {"resource": API, "authorization_servers": [LOGIN]},
            f"{LOGIN}/.well-known/oauth-authorization-server": METADATA,
        }
    )
    plan = asyncio.run(plan_login(build_order(tokens=None), world.fetch))
    assert plan.wanted.resource == API


@pytest.mark.parametrize(
    "page",
    [
        "http://login.bank.test/authorize",
        f"{LOGIN}/authorize?redirect_uri=https://other.test",
        f"{LOGIN}/authorize?x=1&state=known",
    ],
    ids=["clear", "redirect", "state"],
)
def test_a_description_cannot_decide_where_the_code_goes(page: str) -> None:
    def plan(url: str) -> LoginPlan:
        tokens = TokenEndpoint(f"{LOGIN}/token", authorization_url=url)
        return asyncio.run(plan_login(build_order(tokens=tokens), World({}).fetch))

    with pytest.raises(LoginFailed, match="log-in page"):
        plan(page)
    assert plan(f"{LOGIN}/authorize?tenant=1").server.token_url == f"{LOGIN}/token"


@pytest.mark.parametrize("name", ["redirect_uri", "state", "code_challenge", "client_id"])
def test_a_parameter_that_decides_who_gets_the_code_cannot_be_given(name: str) -> None:
    order = build_order(parameters=((name, "x"),))
    with pytest.raises(LoginFailed, match=name):
        asyncio.run(plan_login(order, build_world().fetch))
    fine = build_order(parameters=(("access_type", "offline"),))
    assert asyncio.run(plan_login(fine, build_world().fetch)).wanted.parameters == fine.parameters


GARBAGE: dict[str, WireResponse] = {
    "no JSON": answer(200, "<html>"),
    "a list": answer(200, []),
    "nothing": answer(200, ""),
    "no token": answer(200, {"token_type": "bearer"}),
    "a token with a line end": answer(200, {"access_token": f"{TOKEN}\r\nX-Evil: 1"}),
    "a token of another type": answer(200, {"access_token": TOKEN, "token_type": "mac"}),
    "an endless token": answer(200, {"access_token": "x" * 20_000}),
    "a redirect": answer(302, "", Location=f"{OTHER}/token"),
    "an error with status 200": answer(200, {"error": "bad_code", "error_description": CODE}),
    "an error that paints": answer(
        400,
        {"error": "\x1b[2J\x1b[31minvalid", "error_description": f"{CODE} \u202egnp" + "y" * 5000},
    ),
    "deep": answer(200, "[" * 100_000),
}


@pytest.mark.parametrize("said", GARBAGE.values(), ids=list(GARBAGE))
def test_what_a_token_endpoint_answers_is_bounded_and_tells_no_code(said: WireResponse) -> None:
    world = build_world(**{f"{LOGIN}/token": said})
    with pytest.raises(LoginFailed) as failed:
        run_login(world, lambda s, p, i: [(redirect(code=CODE, state=s, iss=i), "GET", "")])
    told = str(failed.value)
    assert CODE not in told
    assert TOKEN not in told
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert len(told) < 500
    assert not any(OTHER in request.url for request in world.asked)


DEVICES: dict[str, dict[str, Any]] = {
    "a page of another scheme": {"verification_uri": "javascript:alert(1)"},
    "a page without TLS": {"verification_uri": "http://login.bank.test/device"},
    "a code that paints": {"user_code": "\x1b[31mAB-CD"},
    "a code as long as a page": {"user_code": "A" * 500},
    "no device code": {"device_code": 5},
}
DEVICE = {
    "device_code": "device-canary-4716",
    "user_code": "AB-CD",
    "verification_uri": f"{LOGIN}/device",
}


def run_device(world: World) -> tuple[GivenTokens, list[float]]:
    async def scenario() -> tuple[GivenTokens, list[float]]:
        server = AuthorizationServer(token_url=f"{LOGIN}/token", device_url=f"{LOGIN}/device")
        asking, clock = TokenClient(server, Client("app"), world.fetch), VirtualClock()
        device = await asking.request_device_code(Wanted())
        tokens = await asking.poll_device(device, clock)
        return tokens, [clock.now()]

    return asyncio.run(scenario())


@pytest.mark.parametrize("change", DEVICES.values(), ids=list(DEVICES))
def test_a_device_endpoint_shows_a_person_nothing_but_a_code_and_a_page(
    change: dict[str, Any],
) -> None:
    world = build_world(**{f"{LOGIN}/device": {**DEVICE, **change}})
    with pytest.raises(LoginFailed):
        run_device(world)


def test_a_device_that_is_told_to_slow_down_does_and_one_that_expires_ends() -> None:
    says = iter(["authorization_pending", "slow_down", "authorization_pending", ""])

    class Slow(World):
        async def fetch(self, request: WireRequest) -> WireResponse:
            if request.url != f"{LOGIN}/token":
                return await super().fetch(request)
            error = next(says)
            return answer(400, {"error": error}) if error else answer(200, GIVEN)

    tokens, waited = run_device(Slow({f"{LOGIN}/device": {**DEVICE, "interval": 2}}))
    assert tokens.access_token == TOKEN
    assert waited == [2 + 2 + 7 + 7]
    endless = {
        f"{LOGIN}/device": {**DEVICE, "expires_in": 60},
        f"{LOGIN}/token": answer(400, {"error": "authorization_pending"}),
    }
    with pytest.raises(LoginFailed, match="expired"):
        run_device(World(endless))


class _Silent(Answering):
    def do_GET(self) -> None:
        self.world.append(self.path)
        self.answer_json(200, {})

    do_POST = do_GET


def test_no_host_is_asked_that_the_person_was_not_shown(tmp_path: Path, store: Store) -> None:
    settings, kill_switch = load_settings(home=tmp_path), KillSwitch()
    told: list[Any] = []

    async def scenario(url: str) -> None:
        network = LoginNetwork(consents(settings, store), kill_switch, told.append, "oauth")
        try:
            with pytest.raises(LoginFailed, match="none of the hosts"):
                await network.ask(WireRequest("POST", f"{url}/token"))
            with pytest.raises(UpstreamUnreachable, match="private"):
                await network.search(WireRequest("GET", f"{url}/metadata"))
            origin = parse_origin(url)
            assert origin is not None
            network.allow((origin,))
            await network.ask(WireRequest("POST", f"{url}/token?code=x"))
            kill_switch.engage()
            with pytest.raises(Frozen):
                await network.ask(WireRequest("POST", f"{url}/frozen"))
        finally:
            await network.close()

    with served(_Silent, lambda url: _Heard(url)) as heard:
        asyncio.run(scenario(heard.url))
    assert heard.paths == ["/token?code=x"]
    assert [(row.path, row.status) for row in told] == [("/metadata", None), ("/token", 200)]


@dataclass
class _Heard:
    url: str
    paths: list[str] = field(default_factory=list)

    def append(self, path: str) -> None:
        self.paths.append(path)


@dataclass
class Till:
    """A home with the server `bank`, logged in to by a person."""

    settings: Settings
    store: Store
    vault: FileVault
    world: Told
    brokers: BrokerFactory
    bundle: Bundle

    def get(self, bundle: Bundle | None = None, url: str = f"{API}/balance") -> Exchange:
        broker = self.brokers.build_read_broker(bundle or self.bundle)
        return asyncio.run(broker.perform(WireRequest("GET", url)))

    def change(self, name: str = "oauth", **fields: Any) -> None:
        """Write other fields into the secret, as who can write the vault could."""
        held = self.vault.get("bank", name)
        assert held is not None
        self.vault.put("bank", name, Secret(json.dumps({**json.loads(held.reveal()), **fields})))

    def heard(self, text: str) -> set[str]:
        """The hosts that a text was sent to."""
        sent = [(r.url, str(r.headers) + r.body.decode()) for r in self.world.requests]
        return {str(urlsplit(url).hostname) for url, whole in sent if text in whole}


def compile_bank(url: str = API) -> Bundle:
    flow = {"authorizationUrl": f"{LOGIN}/authorize", "tokenUrl": f"{LOGIN}/token"}
    scopes = {"scopes": {"read": "", "write": ""}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Bank", "version": "1"},
        "servers": [{"url": url}],
        "security": [{"oauth": ["read"]}],
        "components": {
            "securitySchemes": {
                "oauth": {"type": "oauth2", "flows": {"authorizationCode": {**flow, **scopes}}}
            }
        },
        "paths": {
            "/balance": {
                "get": {"operationId": "getBalance", "responses": {"200": {"description": "ok"}}}
            }
        },
    }
    content = json.dumps(document).encode()
    return compile_document(parse_document(content, "bank.json", url=f"{API}/openapi.json")).bundle


def tokens_of(number: int) -> GivenTokens:
    return GivenTokens(f"{TOKEN}-{number}", f"{REFRESH}-{number}", "", 600.0)


@pytest.fixture
def till(tmp_path: Path, store: Store) -> Till:
    settings = load_settings(home=tmp_path)
    vault = FileVault(tmp_path / "vault.json", key=KeyFile(tmp_path / "key"))
    allow(settings, store, "https://api.bank.test:443/")

    def world(request: WireRequest) -> WireResponse:
        if urlsplit(request.url).path.endswith("token"):
            return answer(200, {**GIVEN, "access_token": f"{TOKEN}-renewed"})
        return answer(200, {})

    told, given, bundle = Told(world), consents(settings, store), compile_bank()
    parts = (given, vault, lambda _: told, Throttle(), KillSwitch())
    made = Till(settings, store, vault, told, BrokerFactory(*parts), bundle)
    signer = person(settings.pin)
    for number, account in enumerate(("", "work")):
        order = build_order(account=account, tokens=bundle.credentials[0].tokens)
        order = replace(order, uses=(SecretUse(parse_origin(API), "oauth2"),))  # type: ignore[arg-type]
        plan = asyncio.run(plan_login(order, World({}).fetch))
        result = LoginResult(tokens_of(number), Client("app"), "authorization_code", False)
        keep_login(store, vault, given, plan, result, signer, default=False)
    return made


def test_a_log_ins_token_goes_to_its_api_and_its_refresh_token_to_its_token_endpoint(
    till: Till,
) -> None:
    assert till.get().response is not None
    till.change(expires_at=time.time() - 1)
    assert till.get().response is not None
    assert till.heard(f"{TOKEN}-0") == {"api.bank.test"}
    assert till.heard(f"{REFRESH}-0") == {"login.bank.test"}
    assert till.heard(f"{TOKEN}-renewed") == {"api.bank.test"}


def test_a_version_on_another_origin_does_not_get_the_token(till: Till) -> None:
    moved = replace(compile_bank(OTHER), version=2)
    exchange = till.get(moved, f"{OTHER}/balance")
    assert exchange.refusal == "credential"
    assert till.world.requests == []


@pytest.mark.parametrize(
    "url", [f"{OTHER}/token", "http://login.bank.test/token", f"{LOGIN}:8443/token"]
)
def test_a_token_endpoint_that_nobody_was_shown_gets_no_refresh_token(till: Till, url: str) -> None:
    allow(till.settings, till.store, f"{OTHER}:443/")
    till.change(expires_at=time.time() - 1, token_url=url)
    assert till.get().refusal == "credential"
    assert till.heard(REFRESH) == set()


def test_a_call_goes_out_with_the_account_that_was_chosen_and_with_no_other(till: Till) -> None:
    with choose_account("bank", "work"):
        assert till.get().response is not None
    assert (till.heard(f"{TOKEN}-1"), till.heard(f"{TOKEN}-0")) == ({"api.bank.test"}, set())
    with choose_account("bank", "wrok"):
        assert till.get().refusal == "credential"
    assert till.heard(f"{TOKEN}-0") == set()
    assert till.get().response is not None
    assert till.heard(f"{TOKEN}-0") == {"api.bank.test"}


def test_a_default_account_that_no_person_signed_does_not_count(till: Till) -> None:
    serial = till.store.grants.get_next_serial("bank.oauth", "account")
    till.store.grants.add_grant(Grant("bank.oauth", "account", "x", 1.0, "work", serial))
    till.get()
    assert (till.heard(f"{TOKEN}-0"), till.heard(f"{TOKEN}-1")) == ({"api.bank.test"}, set())


def test_the_default_account_that_a_person_chose_does(till: Till) -> None:
    set_default(till.store, "bank", "oauth", "work", person(till.settings.pin))
    till.get()
    assert (till.heard(f"{TOKEN}-0"), till.heard(f"{TOKEN}-1")) == (set(), {"api.bank.test"})


def test_a_secret_of_a_log_in_shows_no_token(till: Till) -> None:
    result = LoginResult(tokens_of(3), Client("app", "client-canary"), "device_code", False)
    plan = LoginPlan(build_order(), AuthorizationServer(), Wanted(), None, (), ())
    shown = repr((result, generate_pkce(), till.vault.get("bank", "oauth")))
    for canary in (TOKEN, REFRESH, "client-canary"):
        assert canary not in shown
        assert canary in build_secret(plan, result, 0.0)
