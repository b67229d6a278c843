"""Log-ins at a real OpenID provider: by browser and by code, as several people, and out again."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.approvals.text import render_approval
from orchestrator.gateway.brokers import SOURCES
from orchestrator.logins.exchange import Client
from orchestrator.logins.flow import LoginResult, LoginTerminal
from orchestrator.logins.flow import log_in as run_login
from orchestrator.logins.plan import LoginOrder, plan_login
from orchestrator.logins.sources import name_login
from registry.secrets.vault import Secret, open_vault
from sandbox.broker.live import LiveHttp
from sandbox.bundle.credential import Credential
from sandbox.clock import VirtualClock
from sandbox.wire.policy import parse_origin
from tests.functional.home import Home, new_home
from tests.world.cache import Unavailable
from tests.world.provider import Provider, browse, install, provider, write_browser

SECRET = "cl1ent-canary-4711"


@pytest.fixture(scope="module")
def notes(node_modules: Path) -> Iterator[Provider]:
    try:
        install()
    except Unavailable as reason:
        pytest.skip(f"the provider from npm: {reason}")
    with provider() as made:
        yield made


@pytest.fixture(scope="module")
def home(
    any_engine: str, notes: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Home]:
    """A home with the server `notes`, whose provider a person allowed to be asked."""
    directory = tmp_path_factory.mktemp("logins")
    with new_home(directory, any_engine) as made:
        hosts = [url.removeprefix("http://") for url in (notes.api, notes.issuer)]
        made.person("source", "allow", *hosts)
        said = made.person("forge", "list notes", "--source", f"{notes.api}/openapi.json")
        assert "toolwright login notes.notes" in said
        yield made


def log_in(home: Home, person: str, *words: str, target: str = "notes") -> str:
    """What `login` says while that person uses the browser."""
    browser = write_browser(home.path.parent / f"browser-{person}", person)
    home.environment["BROWSER"] = browser
    return home.person("login", target, *words)


def held(home: Home, name: str = "notes", server: str = "notes") -> dict[str, Any]:
    """The secret of a log-in as the vault has it."""
    secret = open_vault(home.settings).get(server, name)
    assert secret is not None
    found: dict[str, Any] = json.loads(secret.reveal())
    return found


def call(home: Home, *words: str) -> Any:
    done = home.run("call", "notes.list_notes", *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["structuredContent"]["body"]


def audit(home: Home) -> str:
    with home.store() as store:
        return str([(row.kind, row.payload) for row in store.audit.find(500)])


def test_a_person_logs_in_with_the_browser_and_every_call_has_their_token(
    home: Home, notes: Provider
) -> None:
    said = log_in(home, "alice", "--client-id", "public-app")
    assert f"log-in page      {notes.issuer}/auth" in said
    assert "notes:read notes:write offline_access" in said
    assert f"resource         {notes.api}" in said
    assert "notes is logged in." in said
    assert call(home)["by"] == "alice"
    kept = held(home)
    for token in (kept["access_token"], kept["refresh_token"]):
        assert token not in said + audit(home)
    assert "/token" in audit(home)


def test_two_processes_that_need_a_new_token_at_once_make_one_refresh(
    home: Home, notes: Provider
) -> None:
    call(home)
    before, asked = held(home), notes.counts()["token"]
    notes.refuse()
    with ThreadPoolExecutor(2) as both:
        answers = list(both.map(lambda _: call(home), range(2)))
    assert [answer["by"] for answer in answers] == ["alice", "alice"]
    after = held(home)
    assert notes.counts()["token"] == asked + 1
    assert after["refresh_token"] != before["refresh_token"]
    assert after["access_token"] != before["access_token"]


def test_a_second_account_is_used_where_it_is_named_and_a_write_shows_it(
    home: Home, notes: Provider, tmp_path: Path
) -> None:
    (tmp_path / "value").write_text(SECRET)
    home.person("secret", "set", "notes_app", "--value-file", str(tmp_path / "value"))
    client = ("--client-id", "secret-app", "--client-secret", "@notes_app")
    said = log_in(home, "bob", "--account", "work", *client)
    assert "secret-app with a secret" in said
    assert SECRET not in said + audit(home)
    assert call(home)["by"] == "alice"
    assert call(home, "--account", "work")["by"] == "bob"
    body = json.dumps({"body": {"text": "from work"}})
    waits = home.run("call", "notes.add_note", body, "--account", "work")
    approval = re.search(r"toolwright approve (\S+)", waits.stdout)
    assert approval, waits.stdout + waits.stderr
    with home.store() as store:
        shown = render_approval(store.approvals.get(approval[1]))
    assert "with the credential notes: the secret notes.notes@work" in shown
    home.person("approve", approval[1])
    home.run("work", "--idle", "1")
    assert notes.counts()["notes"] == [{"by": "bob", "text": "from work"}]


def test_an_account_that_is_not_there_is_not_replaced_by_another_one(home: Home) -> None:
    done = home.run("call", "notes.list_notes", "--account", "wrok")
    assert done.returncode == 1
    assert "not set" in done.stdout + done.stderr


def test_a_person_chooses_the_default_account(home: Home) -> None:
    home.person("accounts", "notes", "--use", "work")
    listed = home.read("accounts", "notes")
    assert [each["account"] for each in listed if each["default"]] == ["work"]
    assert call(home)["by"] == "bob"


def test_a_log_in_that_has_ended_says_how_to_log_in_again(home: Home) -> None:
    ended = {**held(home, "notes@work"), "refresh_token": "gone", "expires_at": time.time() - 1}
    open_vault(home.settings).put("notes", "notes@work", Secret(json.dumps(ended)))
    done = home.run("call", "notes.list_notes")
    assert done.returncode == 1
    assert "`toolwright login notes --account work`" in done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_logging_out_revokes_the_tokens_and_removes_them(home: Home, notes: Provider) -> None:
    tokens = held(home)
    said = home.person("logout", "notes", "--account", "")
    assert said == "notes is logged out.\n"
    assert open_vault(home.settings).get("notes", "notes") is None
    again = httpx.get(
        f"{notes.api}/notes",
        headers={"Authorization": f"Bearer {tokens['access_token']}"},
        trust_env=False,
        timeout=60.0,
    )
    assert again.status_code == 401
    assert [each["account"] for each in home.read("accounts", "notes")] == ["work"]


def test_a_person_logs_in_at_a_url_before_any_server_and_its_server_has_that_log_in(
    any_engine: str, notes: Provider, tmp_path: Path
) -> None:
    """Its description asks for a token: without a log-in there is nothing to forge from."""
    url = notes.closed
    origin = parse_origin(url)
    assert origin is not None
    name = name_login(origin)
    with new_home(tmp_path, any_engine) as home:
        hosts = [each.removeprefix("http://") for each in (notes.closed, notes.issuer)]
        home.person("source", "allow", *hosts)
        said = log_in(home, "erin", "--client-id", "public-app", target=url)
        assert f"log-in for       {url}\n" in said
        assert f"is to go to      {url} bearer" in said
        assert "toolwright login" not in home.person("forge", "list notes", "--source", url)
        assert call(home)["by"] == "erin"
        before, asked = held(home, name, SOURCES), notes.counts()["token"]
        notes.refuse()
        assert call(home)["by"] == "erin"
        after = held(home, name, SOURCES)
        assert notes.counts()["token"] == asked + 1
        assert after["refresh_token"] != before["refresh_token"]
        for token in (after["access_token"], after["refresh_token"], before["refresh_token"]):
            assert token not in said + audit(home)
        assert home.person("logout", url) == f"{url} is logged out.\n"
        assert open_vault(home.settings).get(SOURCES, name) is None


def build_order(notes: Provider, client: Client | None) -> LoginOrder:
    """A log-in to an API that only says where its authorization server is when it is asked."""
    credential = Credential("token", "bearer")
    return LoginOrder("notes", credential, notes.api, (), client=client, scopes=("notes:read",))


@asynccontextmanager
async def reaching(notes: Provider) -> AsyncIterator[LiveHttp]:
    origins = [parse_origin(url) for url in (notes.issuer, notes.api)]
    async with LiveHttp(frozenset(filter(None, origins))) as live:
        yield live


def test_a_terminal_without_a_browser_logs_in_by_a_code(notes: Provider) -> None:
    shown: list[str] = []

    def read_code(line: str) -> None:
        shown.append(line)
        found = re.search(r"Open (\S+) .*: (\S+)$", line)
        assert found
        ended = browse(found[1], "carol", user_code=found[2])
        assert "success" in ended.text.lower()

    async def scenario() -> LoginResult:
        async with reaching(notes) as live:
            plan = await plan_login(build_order(notes, Client("public-app")), live.send)
            terminal = LoginTerminal(read_code, lambda url: False, False, clock=VirtualClock())
            return await run_login(plan, live.send, terminal)

    result = asyncio.run(scenario())
    assert result.grant == "device_code"
    assert result.tokens.access_token
    assert result.tokens.access_token not in str(shown)


def test_a_server_that_registers_clients_needs_none_to_be_given(notes: Provider) -> None:
    async def scenario() -> LoginResult:
        async with reaching(notes) as live:
            plan = await plan_login(build_order(notes, None), live.send)
            assert plan.wanted.resource == notes.api
            terminal = LoginTerminal(print, lambda url: bool(browse(url, "dave")))
            return await run_login(plan, live.send, terminal)

    result = asyncio.run(scenario())
    assert result.registered
    assert result.tokens.access_token
