"""Log-ins of sources: what a log-in at a URL is for, and the token that goes with a fetch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forge.sources import FetchResponse
from orchestrator.approvals.granting import add_source, bind_secret
from orchestrator.errors import LoginFailed
from orchestrator.forging.contact.source_logins import SourceLogins
from orchestrator.gateway.brokers import SOURCES
from orchestrator.logins.sources import SourceTarget, find_target
from orchestrator.settings import load_settings
from registry.models import DocumentationSource
from registry.secrets.vault import FileVault, Secret
from registry.secrets.vault_key import KeyFile
from registry.store import Store
from sandbox.credentials.uses import TOKEN_REQUEST, SecretUse
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Headers, WireRequest, WireResponse
from sandbox.wire.policy import parse_origin
from tests.granted import allow, consents, person
from tests.sandbox.scripted import Told, answer

URL = "https://api.notes.test/v1/openapi.json"
FLOW = {
    "authorizationUrl": "https://login.test/authorize",
    "tokenUrl": "https://login.test/token",
    "scopes": {"read": "read notes"},
}
LOGIN = {
    "grant": "authorization_code",
    "token_url": "https://login.test/token",
    "client_id": "app",
    "access_token": "access-canary-4721",
    "refresh_token": "refresh-canary-4722",
}


def describe(server: str = "https://api.notes.test/v1", **flows: Any) -> bytes:
    scheme = {"type": "oauth2", "flows": flows} if flows else {"type": "http", "scheme": "basic"}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Notes", "version": "1"},
        "servers": [{"url": server}],
        "security": [{"own": ["read"] if flows else []}],
        "components": {"securitySchemes": {"own": scheme}},
        "paths": {"/notes": {"get": {"responses": {"200": {"description": "ok"}}}}},
    }
    return json.dumps(document).encode()


def find(content: bytes, *sources: DocumentationSource) -> SourceTarget:
    """What a log-in at URL is for, where this is the answer to every request; 401 for nothing."""

    async def fetch(url: str, headers: Headers, body: bytes = b"") -> FetchResponse:
        assert "Authorization" not in dict(headers)
        return FetchResponse(200 if content else 401, (), content, url)

    return asyncio.run(find_target(URL, sources, fetch))


def test_a_description_that_can_be_read_says_where_its_log_in_is() -> None:
    found = find(describe(authorizationCode=FLOW))
    tokens = found.credential.tokens
    assert tokens is not None
    assert (tokens.authorization_url, tokens.needed_scopes) == (FLOW["authorizationUrl"], ("read",))
    assert found.base_url == "https://api.notes.test/v1"
    assert found.source == DocumentationSource(URL, "Authorization", found.credential.name)


def test_the_tokens_go_to_the_api_and_not_to_where_its_description_lies() -> None:
    found = find(describe("https://other.test/api", authorizationCode=FLOW))
    assert found.source.url == found.base_url == "https://other.test/api"


@pytest.mark.parametrize("content", [b"", describe()], ids=["401", "no OAuth"])
def test_without_an_oauth_scheme_the_api_itself_is_asked_who_logs_in(content: bytes) -> None:
    found = find(content)
    assert (found.base_url, found.credential.tokens) == (URL, None)


def test_another_log_in_at_the_same_origin_takes_the_place_of_the_first() -> None:
    first = find(b"").source
    kept = DocumentationSource("https://api.notes.test/", first.header, first.secret)
    assert find(b"", kept).source == kept


def test_a_log_in_takes_no_other_secret_s_place() -> None:
    for given in (
        DocumentationSource(URL, "X-Key", "key"),
        DocumentationSource("https://api.notes.test/", "authorization", "key"),
    ):
        with pytest.raises(LoginFailed, match="sends @key"):
            find(b"", given)
    elsewhere = DocumentationSource("https://other.test/", "Authorization", "key")
    assert find(b"", elsewhere).source.url == URL


Open = Callable[..., SourceLogins]


@pytest.fixture
def world() -> Told:
    def give(request: WireRequest) -> WireResponse:
        made = {"access_token": "second-canary-4723", "token_type": "Bearer", "expires_in": 600}
        return answer(200, made) if request.method == "POST" else answer(404, "")

    return Told(give)


@pytest.fixture
def open_logins(tmp_path: Path, store: Store, world: Told) -> Open:
    """The log-ins of a home where the source URL has this secret."""
    settings = load_settings(home=tmp_path)
    vault = FileVault(tmp_path / "vault.json", key=KeyFile(tmp_path / "key"))
    signer = person(settings.pin)
    login = parse_origin("https://login.test")
    assert login is not None

    def build(secret: str, *, bound: bool = True) -> SourceLogins:
        vault.put(SOURCES, "own", Secret(secret))
        add_source(store.grants, SOURCE, "terminal", signer)
        allow(settings, store, "https://login.test:443/")
        if bound:
            uses = [SecretUse(login, TOKEN_REQUEST)]
            bind_secret(store.grants, SOURCES, "own", uses, "terminal", signer)
        return SourceLogins(consents(settings, store), vault, KillSwitch(), lambda _: world)

    return build


SOURCE = DocumentationSource(URL, "Authorization", "own")


def test_a_fetch_takes_the_access_token_along_and_nothing_else(
    open_logins: Open, world: Told
) -> None:
    logins = open_logins(json.dumps(LOGIN))
    wanted = (("Authorization", f"Bearer {LOGIN['access_token']}"),)
    assert logins.build_headers(SOURCE) == wanted
    assert asyncio.run(logins.renew_headers(SOURCE)) == wanted
    assert world.requests == []


def test_a_token_that_has_expired_is_renewed_before_a_fetch(open_logins: Open, world: Told) -> None:
    logins = open_logins(json.dumps({**LOGIN, "expires_at": 1.0}))
    wanted = (("Authorization", "Bearer second-canary-4723"),)
    assert asyncio.run(logins.renew_headers(SOURCE)) == wanted
    assert [each.url for each in world.requests] == [LOGIN["token_url"]]
    assert logins.build_headers(SOURCE) == wanted


def test_a_token_that_nobody_let_be_renewed_goes_as_it_is(open_logins: Open, world: Told) -> None:
    """The API refuses it, and says how to log in again."""
    logins = open_logins(json.dumps({**LOGIN, "expires_at": 1.0}), bound=False)
    wanted = (("Authorization", f"Bearer {LOGIN['access_token']}"),)
    assert asyncio.run(logins.renew_headers(SOURCE)) == wanted
    assert world.requests == []


def test_a_secret_that_is_no_log_in_goes_as_it_is(open_logins: Open, world: Told) -> None:
    logins = open_logins("Basic c4nary")
    assert asyncio.run(logins.renew_headers(SOURCE)) == (("Authorization", "Basic c4nary"),)
    assert world.requests == []
