"""A secret goes to the origin that a person let it go to, in the place that they saw, and nowhere
else: whatever a next version, a path's own server, a redirect or a token endpoint says.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from orchestrator.approvals.granting import add_source, bind_secret, unbind_secret
from orchestrator.gateway.brokers import SOURCES, BrokerFactory
from orchestrator.logins.sources import name_login
from orchestrator.settings import Settings, load_settings
from registry.models import DocumentationSource
from registry.secrets.vault import FileVault, Secret
from registry.secrets.vault_key import KeyFile
from registry.store import Store
from sandbox.broker.throttle import Throttle
from sandbox.bundle.credential import (
    Credential,
    CredentialPlace,
    CredentialValue,
    TokenEndpoint,
)
from sandbox.bundle.model import Bundle
from sandbox.credentials.uses import (
    TOKEN_REQUEST,
    SecretUse,
    describe_place,
    list_secret_uses,
)
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Exchange, Release, WireRequest, WireResponse
from sandbox.wire.policy import parse_origin
from tests.granted import allow, bind, consents, person
from tests.sandbox.scripted import Told, answer

OWN, OTHER = "https://api.bank.test", "https://other.test"
CANARY, SOURCES_CANARY = "bank-key-canary-4711", "source-key-canary-4712"
READ = {"responses": {"200": {"description": "ok"}}}
KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}


def compiled(scheme: dict[str, Any] = KEY, url: str = OWN, **paths: Any) -> Bundle:
    """The server `bank` of an API with one read, and further paths."""
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Bank", "version": "1"},
        "servers": [{"url": url}],
        "security": [{"key": []}],
        "components": {"securitySchemes": {"key": scheme}},
        "paths": {
            "/balance": {"get": {"operationId": "getBalance", **READ}},
            **{f"/{path}": item for path, item in paths.items()},
        },
    }
    content = json.dumps(document).encode()
    return compile_document(parse_document(content, "bank.json", url=f"{OWN}/openapi.json")).bundle


ELSEWHERE = {"servers": [{"url": OTHER}], "get": {"operationId": "getRates", **READ}}


@dataclass
class Till:
    """The vault, grants and brokers of a home, and an outside world that keeps what it heard."""

    settings: Settings
    store: Store
    vault: FileVault
    world: Told

    def get(self, bundle: Bundle, url: str) -> Exchange:
        """A read of the bundle's, over the broker of a read session."""
        given = consents(self.settings, self.store)
        parts = (given, self.vault, lambda _: self.world, Throttle(), KillSwitch())
        broker = BrokerFactory(*parts).build_read_broker(bundle)
        return asyncio.run(broker.perform(WireRequest("GET", url)))

    def heard(self, host: str) -> str:
        """All that reached a host."""
        return str([r for r in self.world.requests if urlsplit(r.url).hostname == host])


def world(request: WireRequest) -> WireResponse:
    if urlsplit(request.url).path == "/moved":
        return answer(302, "", location=f"{OTHER}/rates")
    if urlsplit(request.url).path.startswith("/token"):
        return answer(200, {"access_token": "made-of-the-secret", "token_type": "bearer"})
    return answer(200, {})


@pytest.fixture
def till(tmp_path: Path, store: Store) -> Till:
    settings = load_settings(home=tmp_path)
    vault = FileVault(tmp_path / "vault.json", key=KeyFile(tmp_path / "key"))
    vault.put("bank", "key", Secret(CANARY))
    for url in (OWN, OTHER, "https://login.test"):
        allow(settings, store, f"{url}:443/")
    return Till(settings, store, vault, Told(world))


def test_a_secret_goes_where_a_person_let_it_go(till: Till) -> None:
    bundle = compiled()
    bind(till.settings, till.store, bundle)
    exchange = till.get(bundle, f"{OWN}/balance")
    assert exchange.response is not None, exchange.reason
    assert till.world.requests[-1].get_header("X-Key") == CANARY


def test_a_secret_that_nobody_let_go_anywhere_stays(till: Till) -> None:
    exchange = till.get(compiled(), f"{OWN}/balance")
    assert exchange.refusal == "credential"
    assert "toolwright secret bind bank.key" in exchange.reason
    assert till.world.requests == []


@pytest.mark.parametrize(
    "url",
    [
        OTHER,
        "http://api.bank.test",
        "https://api.bank.test:8443",
        "https://bank.test",
        "https://api.bank.test.other.test",
        "https://xn--pi-8ja.bank.test",
    ],
    ids=["host", "scheme", "port", "parent", "suffix", "punycode"],
)
def test_a_version_on_another_origin_does_not_take_the_secret_along(till: Till, url: str) -> None:
    bind(till.settings, till.store, compiled())
    moved = replace(compiled(url=url), version=2)
    exchange = till.get(moved, f"{url}/balance")
    assert exchange.refusal == "credential"
    assert "https://api.bank.test:443" in exchange.reason
    assert str(parse_origin(url)) in exchange.reason
    assert till.world.requests == []


@pytest.mark.parametrize("url", ["https://API.Bank.test", "https://api.bank.test:443", OWN + "."])
def test_another_spelling_of_the_same_origin_is_the_same(till: Till, url: str) -> None:
    bind(till.settings, till.store, compiled())
    bundle = replace(compiled(), version=2)
    assert till.get(bundle, f"{url}/balance").response is not None
    assert till.world.requests[-1].get_header("X-Key") == CANARY


@pytest.mark.parametrize(
    "scheme",
    [
        {"type": "apiKey", "in": "query", "name": "X-Key"},
        {"type": "apiKey", "in": "cookie", "name": "X-Key"},
        {"type": "apiKey", "in": "header", "name": "X-Forwarded-Key"},
        {"type": "http", "scheme": "bearer"},
        {"type": "http", "scheme": "basic"},
    ],
    ids=["query", "cookie", "header", "bearer", "basic"],
)
def test_a_version_with_another_place_does_not_get_the_secret(till: Till, scheme: Any) -> None:
    bind(till.settings, till.store, compiled())
    exchange = till.get(compiled(scheme), f"{OWN}/balance")
    assert exchange.refusal == "credential"
    assert till.world.requests == []


def test_the_same_header_in_other_letters_is_the_same_place(till: Till) -> None:
    bind(till.settings, till.store, compiled())
    shouting = {"type": "apiKey", "in": "header", "name": "X-KEY"}
    assert till.get(compiled(shouting), f"{OWN}/balance").response is not None
    assert till.world.requests[-1].get_header("x-key") == CANARY


def test_a_path_with_a_server_of_its_own_does_not_get_the_secret(till: Till) -> None:
    bind(till.settings, till.store, compiled())
    bundle = compiled(rates=ELSEWHERE)
    assert bundle.base_url == OWN
    exchange = till.get(bundle, f"{OTHER}/rates")
    assert exchange.refusal == "credential"
    assert till.heard("other.test") == "[]"
    assert till.get(bundle, f"{OWN}/balance").response is not None


def test_a_server_on_two_origins_has_its_secret_on_those_that_a_person_named(till: Till) -> None:
    bundle = compiled(rates=ELSEWHERE)
    bind(till.settings, till.store, bundle)
    assert till.get(bundle, f"{OTHER}/rates").response is not None
    assert till.get(bundle, f"{OWN}/balance").response is not None
    assert [r.get_header("X-Key") for r in till.world.requests] == [CANARY, CANARY]


def test_a_redirect_does_not_take_the_secret_along(till: Till) -> None:
    moved = {"get": {"operationId": "getMoved", **READ}}
    bind(till.settings, till.store, compiled())
    exchange = till.get(compiled(moved=moved, rates=ELSEWHERE), f"{OWN}/moved")
    assert exchange.refusal == "credential"
    assert till.heard("other.test") == "[]"
    bind(till.settings, till.store, compiled(moved=moved, rates=ELSEWHERE))
    assert till.get(compiled(moved=moved, rates=ELSEWHERE), f"{OWN}/moved").response is not None


OAUTH = Credential("key", "oauth2", tokens=TokenEndpoint("https://login.test/token"))
GRANT = json.dumps({"client_id": "me", "client_secret": CANARY, "refresh_token": f"{CANARY}-r"})


@pytest.mark.parametrize(
    "tokens",
    [
        TokenEndpoint(f"{OTHER}/token"),
        TokenEndpoint(discovery=f"{OTHER}/token-discovery"),
        TokenEndpoint("http://login.test/token"),
        TokenEndpoint(f"{OWN}/token"),
    ],
    ids=["host", "discovery", "scheme", "the API itself"],
)
def test_another_token_endpoint_does_not_get_the_secret(till: Till, tokens: TokenEndpoint) -> None:
    till.vault.put("bank", "key", Secret(GRANT))
    before = replace(compiled(), credentials=(OAUTH,))
    bind(till.settings, till.store, before)
    after = replace(before, version=2, credentials=(replace(OAUTH, tokens=tokens),))
    assert till.get(after, f"{OWN}/balance").refusal == "credential"
    assert CANARY not in str(till.world.requests)


def test_a_token_endpoint_elsewhere_that_a_person_let_it_go_to_gets_it(till: Till) -> None:
    till.vault.put("bank", "key", Secret(GRANT))
    bundle = replace(compiled(), credentials=(OAUTH,))
    bind(till.settings, till.store, bundle)
    exchange = till.get(bundle, f"{OWN}/balance")
    assert exchange.response is not None, exchange.reason
    assert CANARY in till.heard("login.test")
    assert CANARY not in till.heard("api.bank.test")


def test_a_secret_for_tokens_is_not_sent_as_a_token(till: Till) -> None:
    """The client's secret goes to the token endpoint; as a bearer it would go to the API."""
    till.vault.put("bank", "key", Secret(GRANT))
    bind(till.settings, till.store, replace(compiled(), credentials=(OAUTH,)))
    plain = replace(compiled(), credentials=(Credential("key", "bearer"),))
    assert till.get(plain, f"{OWN}/balance").refusal == "credential"
    assert till.world.requests == []


SIGNED = Credential(
    "key",
    "template",
    values=(CredentialValue("mac", "hmac", text="{path}", key="{secret}"),),
    places=(CredentialPlace("header", "X-Mac", "{mac}"),),
)
IN_CLEAR = replace(SIGNED, places=(CredentialPlace("header", "X-Mac", "{secret}"),))
AWS = Credential("key", "aws-sigv4", region="eu-west-1", service="execute-api")


@pytest.mark.parametrize(
    ("before", "after"),
    [(SIGNED, IN_CLEAR), (AWS, replace(AWS, region="us-east-1")), (AWS, SIGNED)],
    ids=["template", "region", "kind"],
)
def test_another_signature_does_not_get_the_secret(
    till: Till, before: Credential, after: Credential
) -> None:
    till.vault.put("bank", "key", Secret(f"AKID:{CANARY}"))
    bind(till.settings, till.store, replace(compiled(), credentials=(before,)))
    exchange = till.get(replace(compiled(), credentials=(after,)), f"{OWN}/balance")
    assert exchange.refusal == "credential"
    assert till.world.requests == []


@pytest.mark.parametrize("credential", [SIGNED, AWS], ids=["template", "aws"])
def test_a_signature_goes_where_a_person_let_it_go_and_not_elsewhere(
    till: Till, credential: Credential
) -> None:
    till.vault.put("bank", "key", Secret(f"AKID:{CANARY}"))
    bind(till.settings, till.store, replace(compiled(), credentials=(credential,)))
    after = replace(compiled(rates=ELSEWHERE), credentials=(credential,))
    assert till.get(after, f"{OWN}/balance").response is not None
    assert till.get(after, f"{OTHER}/rates").refusal == "credential"
    assert till.heard("other.test") == "[]"


def lend(till: Till, url: str, secret: str, header: str = "X-Key") -> None:
    """What a person's `source add URL --header HEADER=@SECRET` does."""
    source = DocumentationSource(url, header, secret)
    add_source(till.store.grants, source, "terminal", person(till.settings.pin))


@pytest.fixture
def sourced(till: Till) -> Till:
    """The server has no secret of its own, and a source on its origin has one."""
    till.vault.delete("bank", "key")
    till.vault.put(SOURCES, "bank", Secret(SOURCES_CANARY))
    lend(till, f"{OWN}/docs", "bank")
    return till


def test_a_source_s_secret_goes_to_its_origin(sourced: Till) -> None:
    assert sourced.get(compiled(), f"{OWN}/balance").response is not None
    assert sourced.world.requests[-1].get_header("X-Key") == SOURCES_CANARY


def test_a_source_s_secret_goes_to_no_path_with_a_server_of_its_own(sourced: Till) -> None:
    bundle = compiled(rates=ELSEWHERE)
    exchange = sourced.get(bundle, f"{OTHER}/rates")
    assert exchange.refusal == "credential"
    assert "https://api.bank.test:443" in exchange.reason
    assert "toolwright source add https://other.test:443 --header X-Key=@bank" in exchange.reason
    assert sourced.world.requests == []
    lend(sourced, OTHER, "bank")
    assert sourced.get(bundle, f"{OTHER}/rates").response is not None


def test_another_server_with_the_same_header_is_asked_without_a_source_s_secret(
    sourced: Till,
) -> None:
    exchange = sourced.get(replace(compiled(url=OTHER), name="rates"), f"{OTHER}/balance")
    assert exchange.response is not None, exchange.reason
    assert len(sourced.world.requests) == 1
    assert sourced.world.requests[0].get_header("X-Key") is None
    assert SOURCES_CANARY not in str(sourced.world.requests)


@pytest.mark.parametrize(
    "scheme",
    [
        {"type": "apiKey", "in": "query", "name": "X-Key"},
        {"type": "apiKey", "in": "cookie", "name": "X-Key"},
        {"type": "http", "scheme": "bearer"},
    ],
    ids=["query", "cookie", "bearer"],
)
def test_a_source_s_secret_goes_into_no_other_place(sourced: Till, scheme: Any) -> None:
    assert sourced.get(compiled(scheme), f"{OWN}/balance").refusal == "credential"
    assert sourced.world.requests == []


def test_a_source_s_secret_goes_to_no_token_endpoint(sourced: Till) -> None:
    sourced.vault.put(SOURCES, "bank", Secret(f"me:{SOURCES_CANARY}"))
    lend(sourced, OWN, "bank", "Authorization")
    for tokens in (f"{OTHER}/token", f"{OWN}/token"):
        credential = replace(OAUTH, tokens=TokenEndpoint(tokens))
        bundle = replace(compiled(), credentials=(credential,))
        assert sourced.get(bundle, f"{OWN}/balance").refusal == "credential"
    assert SOURCES_CANARY not in str(sourced.world.requests)


LOGIN = {
    "grant": "authorization_code",
    "token_url": "https://login.test/token",
    "client_id": "app",
    "access_token": "access-canary-4716",
    "refresh_token": "refresh-canary-4717",
}
BEARER = {"type": "http", "scheme": "bearer"}


@pytest.fixture
def logged_in(sourced: Till) -> Till:
    """A source on the server's origin has a log-in, which is renewed at `login.test`."""
    sourced.vault.put(SOURCES, "bank", Secret(json.dumps(LOGIN)))
    lend(sourced, f"{OWN}/docs", "bank", "Authorization")
    return sourced


def bind_renewal(till: Till) -> None:
    """What `toolwright login URL` lets go where."""
    origin = parse_origin("https://login.test")
    assert origin is not None
    use = SecretUse(origin, TOKEN_REQUEST)
    bind_secret(till.store.grants, SOURCES, "bank", [use], "terminal", person(till.settings.pin))


def expire(till: Till) -> None:
    till.vault.put(SOURCES, "bank", Secret(json.dumps({**LOGIN, "expires_at": 1.0})))


def test_of_a_source_s_log_in_an_api_gets_the_access_token_alone(logged_in: Till) -> None:
    exchange = logged_in.get(compiled(BEARER), f"{OWN}/balance")
    assert exchange.response is not None, exchange.reason
    sent = logged_in.world.requests
    assert sent[-1].get_header("Authorization") == f"Bearer {LOGIN['access_token']}"
    assert LOGIN["refresh_token"] not in str(sent)


@pytest.mark.parametrize("scheme", ["basic", "digest"])
def test_a_source_s_log_in_is_no_password_of_an_api(logged_in: Till, scheme: str) -> None:
    """As a password all of it would go there, with what renews it."""
    logged_in.get(compiled({"type": "http", "scheme": scheme}), f"{OWN}/balance")
    assert "Authorization" not in str(logged_in.world.requests)


def test_a_source_s_log_in_is_renewed_where_a_person_let_it_go(logged_in: Till) -> None:
    expire(logged_in)
    bind_renewal(logged_in)
    exchange = logged_in.get(compiled(BEARER), f"{OWN}/balance")
    assert exchange.response is not None, exchange.reason
    sent = logged_in.world.requests
    assert [urlsplit(each.url).hostname for each in sent] == ["login.test", "api.bank.test"]
    assert sent[-1].get_header("Authorization") == "Bearer made-of-the-secret"
    assert LOGIN["refresh_token"] not in logged_in.heard("api.bank.test")
    kept = logged_in.vault.get(SOURCES, "bank")
    assert kept is not None
    assert json.loads(kept.reveal())["access_token"] == "made-of-the-secret"
    assert logged_in.vault.get("bank", "key") is None


def test_a_source_s_log_in_is_renewed_nowhere_else(logged_in: Till) -> None:
    """Its token endpoint stands in the vault, and a person's signature beside it."""
    expire(logged_in)
    exchange = logged_in.get(compiled(BEARER), f"{OWN}/balance")
    assert exchange.refusal == "credential"
    assert logged_in.world.requests == []


def test_names_that_look_alike_have_log_ins_of_their_own() -> None:
    urls = ["https://a-b.test", "https://a.b.test", "http://a-b.test", "https://a-b.test:8443"]
    names = {name_login(origin) for url in urls if (origin := parse_origin(url))}
    assert len(names) == len(urls)


def test_each_origin_has_the_secret_of_its_own_source(sourced: Till) -> None:
    sourced.vault.put(SOURCES, "rates", Secret("rates-key"))
    lend(sourced, OTHER, "rates")
    bundle = compiled(rates=ELSEWHERE)
    assert sourced.get(bundle, f"{OWN}/balance").response is not None
    assert sourced.get(bundle, f"{OTHER}/rates").response is not None
    assert SOURCES_CANARY not in sourced.heard("other.test")
    assert "rates-key" not in sourced.heard("api.bank.test")


def test_a_server_called_as_the_sources_are_has_none_of_their_secrets(sourced: Till) -> None:
    """Their section of the vault has the name `sources`."""
    sourced.vault.put(SOURCES, "key", Secret(SOURCES_CANARY))
    bundle = replace(compiled(url=OTHER), name=SOURCES)
    assert sourced.get(bundle, f"{OTHER}/balance").refusal == "credential"
    assert sourced.world.requests == []


Shell = Callable[[str], None]


@pytest.fixture
def shell(store: Store, settings: Settings) -> Shell:
    """Whoever can write to the database's file."""

    def run(statement: str) -> None:
        with sqlite3.connect(settings.database_url.removeprefix("sqlite:///")) as connection:
            connection.execute(statement)

    return run


def test_a_binding_written_edited_or_put_back_by_hand_lets_nothing_go(
    till: Till, shell: Shell
) -> None:
    moved = compiled(url=OTHER)
    detail = str(list_secret_uses(moved)["key"][0])
    shell(
        "INSERT INTO grants (origin, kind, granted_by, granted, detail) "
        f"VALUES ('bank.key', 'secret', 'terminal', 1.0, '{detail}')"
    )
    assert till.get(moved, f"{OTHER}/balance").refusal == "credential"
    bind(till.settings, till.store, compiled())
    shell(f"UPDATE grants SET detail = '{detail}' WHERE kind = 'secret'")
    assert till.get(moved, f"{OTHER}/balance").refusal == "credential"
    assert till.world.requests == []


def test_a_binding_that_was_moved_does_not_come_back(till: Till, shell: Shell) -> None:
    bind(till.settings, till.store, compiled())
    shell("CREATE TABLE kept AS SELECT * FROM grants")
    bind(till.settings, till.store, compiled(url=OTHER))
    assert till.get(compiled(), f"{OWN}/balance").refusal == "credential"
    shell("INSERT OR REPLACE INTO grants SELECT * FROM kept WHERE kind = 'secret'")
    assert till.get(compiled(), f"{OWN}/balance").refusal == "credential"
    assert till.world.requests == []


def test_a_person_moves_a_secret(till: Till) -> None:
    bind(till.settings, till.store, compiled())
    bind(till.settings, till.store, compiled(url=OTHER))
    assert till.get(compiled(url=OTHER), f"{OTHER}/balance").response is not None
    assert till.get(compiled(), f"{OWN}/balance").refusal == "credential"
    unbind_secret(till.store.grants, "bank", "key", "terminal", time.time())
    assert till.get(compiled(url=OTHER), f"{OTHER}/balance").refusal == "credential"


def test_where_another_credential_may_go_that_one_is_taken(till: Till) -> None:
    """Of two alternatives the one whose secret belongs to the origin, whatever comes first."""
    bundle = compiled()
    spare = Credential("spare", "apiKey", "header", "X-Spare")
    tools = tuple(replace(tool, security=(("key",), ("spare",))) for tool in bundle.tools)
    bundle = replace(bundle, tools=tools, credentials=(*bundle.credentials, spare))
    till.vault.put("bank", "spare", Secret("spare-secret"))
    origin = parse_origin(OWN)
    assert origin is not None
    use = SecretUse(origin, describe_place(spare))
    signer = person(till.settings.pin)
    bind_secret(till.store.grants, "bank", "spare", (use,), "terminal", signer)
    assert till.get(bundle, f"{OWN}/balance").response is not None
    assert till.world.requests[-1].get_header("X-Spare") == "spare-secret"
    assert CANARY not in str(till.world.requests)


def test_a_write_s_secret_is_judged_when_it_is_sent(till: Till) -> None:
    """The binding may be taken away between a person's approval and the sending."""
    write = {"post": {"operationId": "addNote", "responses": {"201": {"description": "ok"}}}}
    bundle = compiled(notes=write)
    bind(till.settings, till.store, bundle)
    given = consents(till.settings, till.store)
    parts = (given, till.vault, lambda _: till.world, Throttle(), KillSwitch())
    name = next(tool.name for tool in bundle.tools if tool.access == "write")
    broker = BrokerFactory(*parts).build_tool_broker(bundle, name, Release(None))
    unbind_secret(till.store.grants, "bank", "key", "terminal", time.time())
    exchange = asyncio.run(broker.perform(WireRequest("POST", f"{OWN}/notes")))
    assert exchange.refusal == "credential"
    assert till.world.requests == []
