"""Credentials from a person's hands to an API and not back: the command, the vault, the broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forge.compiler.selection import parse_credential
from orchestrator.approvals.accounts import choose_account
from orchestrator.forging.carrying import carry_over_credentials, collect_given_schemes
from orchestrator.forging.fetch import GuardedFetch
from orchestrator.gateway.audit_writer import AuditWriter
from orchestrator.gateway.brokers import BrokerFactory
from orchestrator.settings import load_settings
from registry.secrets.vault import FileVault, Secret
from registry.secrets.vault_key import KeyFile
from registry.store import Store
from sandbox.broker.live import LiveHttp
from sandbox.broker.throttle import Throttle
from sandbox.bundle.credential import Credential, TokenEndpoint
from sandbox.bundle.model import Bundle, read_bundle
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Exchange, WireRequest
from sandbox.wire.policy import parse_origin
from tests.granted import allow, bind, consents
from tests.orchestrator.cli.commands.test_compile import Served, toolwright
from tests.sandbox.scripted import Told, answer
from tests.world.gatehouse import (
    CANARIES,
    CLIENT,
    CLIENT_SECRET,
    DOCUMENT,
    KEY,
    PASSWORD,
    REFRESH,
    USER,
    Gatehouse,
    gatehouse,
)

TEMPLATE = """
[[credentials.values]]
name = "signature"
make = "hmac"
text = "{method}\\n{path}\\n{timestamp_iso}"
key = "{secret}"

[[credentials.places]]
location = "header"
parameter = "X-At"
value = "{timestamp_iso}"

[[credentials.places]]
location = "header"
parameter = "X-Signature"
value = "{signature}"
"""
SIGN = 'name = "sign"\nkind = "apiKey"\nlocation = "header"\nparameter = "X-Signature"\n'


@pytest.fixture(scope="module")
def house() -> Iterator[Gatehouse]:
    with gatehouse() as made:
        yield made


@pytest.fixture(scope="module")
def bundle(house: Gatehouse, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The API compiled, a forgotten credential given, and a template written by hand."""
    directory = tmp_path_factory.mktemp("gatehouse")
    document, out = directory / "api.yaml", directory / "bundle"
    document.write_text(DOCUMENT)
    auth = ("--auth", "header:X-Forgotten=@forgotten")
    made = toolwright("compile", document, "--base-url", house.url, "--out", out, *auth, "--json")
    told = json.loads(made.stdout)
    assert ["mutual TLS is not supported" in p["reason"] for p in told["problems"]] == [True]
    head = out / "bundle.toml"
    written = head.read_text().replace(SIGN, 'name = "sign"\nkind = "template"\n' + TEMPLATE)
    assert "credentials.places" in written
    head.write_text(written)
    return out


@pytest.fixture(scope="module")
def creds(bundle: Path) -> Path:
    path = bundle.parent / "creds.json"
    secrets: dict[str, Any] = {
        "forgotten": {"token": KEY},
        "key": KEY,
        "dig": {"user": USER, "pass": PASSWORD},
        "flow": {"client_id": CLIENT, "client_secret": CLIENT_SECRET},
        "sign": KEY,
        "tls": {"token": "certificate"},
    }
    path.write_text(json.dumps(secrets))
    return path


def test_every_kind_of_credential_reaches_its_api_and_none_comes_back(
    bundle: Path, creds: Path
) -> None:
    tools = ("get_open", "get_key", "get_digest", "get_token", "get_signed", "get_busy")
    served = Served(bundle, "--allow-private", "--creds", creds)
    for tool in (*tools, "get_token", "get_cert"):
        served.call(tool)
    *results, cert = served.answers()
    assert [result.get("structuredContent", {}).get("status") for result in results] == [200] * 7
    assert cert["isError"]
    assert "tls (mutualTLS) is not supported" in cert["content"][0]["text"]
    assert not any(canary in json.dumps(results) for canary in CANARIES)


def test_a_credential_that_nobody_set_is_left_to_the_api_whose_refusal_names_what_to_do(
    bundle: Path,
) -> None:
    (result,) = Served(bundle, "--allow-private").call("get_key").answers()
    assert result["isError"]
    told = [block["text"] for block in result["content"]]
    assert "401" in told[0]
    assert "toolwright secret set" in told[-1]


@pytest.mark.parametrize("written", ["header:X-Key=s3cr3t-canary", "bearer=s3cr3t-canary"])
def test_a_value_on_the_command_line_is_refused_and_not_repeated(
    tmp_path: Path, written: str
) -> None:
    (tmp_path / "api.yaml").write_text(DOCUMENT)
    words = ("--base-url", "http://h.test", "--out", tmp_path / "out", "--auth", written)
    made = toolwright("compile", tmp_path / "api.yaml", *words)
    assert made.returncode == 1
    assert "@SECRET" in made.stderr
    assert "s3cr3t-canary" not in made.stdout + made.stderr
    assert not (tmp_path / "out").exists()


class Home:
    """A store, a vault and the brokers of one process."""

    def __init__(self, directory: Path, store: Store) -> None:
        self.vault = FileVault(directory / "vault.json", key=KeyFile(directory / "key"))
        self.store, self.upstream = store, LiveHttp
        self.settings = load_settings(home=directory)

    def get(self, bundle: Bundle, path: str) -> Exchange:
        async def asked() -> Exchange:
            private = {parse_origin(bundle.base_url)} - {None}
            async with LiveHttp(frozenset(o for o in private if o)) as upstream:
                given = consents(self.settings, self.store)
                footnotes = AuditWriter(self.store.audit)
                parts = (given, self.vault, lambda _: upstream, Throttle(), KillSwitch())
                brokers = BrokerFactory(*parts, footnotes=footnotes)
                request = WireRequest("GET", bundle.base_url + path)
                exchange = await brokers.build_read_broker(bundle).perform(request)
                await footnotes.close()
                return exchange

        return asyncio.run(asked())


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Store.open(f"sqlite:///{tmp_path / 'toolwright.db'}") as store:
        yield Home(tmp_path, store)


def test_a_rotated_refresh_token_is_kept_in_the_vault(
    home: Home, bundle: Path, house: Gatehouse
) -> None:
    made = read_bundle(bundle)
    bind(home.settings, home.store, made)
    grant = {"client_id": CLIENT, "client_secret": CLIENT_SECRET, "refresh_token": REFRESH}
    home.vault.put(made.name, "flow", Secret(json.dumps(grant)))
    exchange = home.get(made, "/token")
    assert exchange.response is not None, exchange.reason
    assert exchange.response.status == 200
    kept = home.vault.get(made.name, "flow")
    assert kept is not None
    assert json.loads(kept.reveal())["refresh_token"] == f"{REFRESH}-{house.tokens}"
    assert not any(canary in str(exchange) for canary in CANARIES)


def test_a_credential_that_nobody_set_is_left_to_the_api_by_a_registered_server(
    home: Home, bundle: Path
) -> None:
    exchange = home.get(read_bundle(bundle), "/key")
    assert exchange.response is not None, exchange.reason
    assert exchange.response.status == 401


def test_a_credential_of_which_another_account_is_chosen_is_not_left_out(
    home: Home, bundle: Path
) -> None:
    made = read_bundle(bundle)
    with choose_account(made.name, "work"):
        assert home.get(made, "/key").refusal == "credential"


def test_each_request_for_a_token_is_in_the_audit_without_a_secret(
    home: Home, bundle: Path, house: Gatehouse
) -> None:
    made = read_bundle(bundle)
    bind(home.settings, home.store, made)
    home.vault.put(made.name, "flow", Secret(f"{CLIENT}:{CLIENT_SECRET}"))
    exchange = home.get(made, "/token")
    assert exchange.response is not None, exchange.reason
    home.vault.put(made.name, "flow", Secret(f"{CLIENT}:wr0ng-canary"))
    assert home.get(made, "/token").refusal == "credential"
    rows = [row for row in home.store.audit.find() if row.kind == "token"]
    told = [json.loads(row.payload) for row in reversed(rows)]
    assert {row.subject for row in rows} == {made.name}
    assert {"credential": "flow", "method": "POST", "path": "/oauth/token"}.items() <= told[
        0
    ].items()
    assert told[0]["host"] == house.url.removeprefix("http://")
    assert (told[0]["status"], told[0]["failure"]) == (200, "")
    assert {one["status"] for one in told[1:]} == {401}
    assert all(one["elapsed_ms"] > 0 for one in told)
    kept = home.settings.database_url.removeprefix("sqlite:///")
    files = [Path(kept), Path(f"{kept}-wal")]
    stored = b"".join(file.read_bytes() for file in files if file.exists())
    assert b"oauth/token" in stored
    assert not [c for c in (*CANARIES, "wr0ng-canary") if c.encode() in stored]


def test_a_request_for_a_token_without_an_answer_is_in_the_audit(home: Home, bundle: Path) -> None:
    made = read_bundle(bundle)
    (flow,) = (c for c in made.credentials if c.name == "flow")
    assert flow.tokens is not None
    nowhere = replace(flow, tokens=replace(flow.tokens, url="http://127.0.0.1:9/oauth/token"))
    made = replace(made, credentials=(nowhere,))
    bind(home.settings, home.store, made)
    allow(home.settings, home.store, "http://127.0.0.1:9/")
    home.vault.put(made.name, "flow", Secret(f"{CLIENT}:{CLIENT_SECRET}"))
    assert home.get(made, "/token").refusal == "not_allowed"
    (row,) = (row for row in home.store.audit.find() if row.kind == "token")
    told = json.loads(row.payload)
    assert (told["host"], told["status"], bool(told["failure"])) == ("127.0.0.1:9", None, True)


def test_a_token_host_that_nobody_named_is_not_asked(home: Home, bundle: Path) -> None:
    head = (bundle / "bundle.toml").read_bytes().decode()
    made = read_bundle(bundle)
    (flow,) = (c for c in made.credentials if c.name == "flow")
    assert flow.tokens is not None
    assert flow.tokens.url in head
    moved = flow.tokens.url.replace("127.0.0.1", "localhost")
    elsewhere = bundle.parent / "elsewhere"
    elsewhere.mkdir()
    for name in ("server.py", "tools.json", "spec.json"):
        (elsewhere / name).write_bytes((bundle / name).read_bytes())
    (elsewhere / "bundle.toml").write_text(head.replace(flow.tokens.url, moved))
    made = read_bundle(elsewhere)
    bind(home.settings, home.store, made)
    home.vault.put(made.name, "flow", Secret(f"{CLIENT}:{CLIENT_SECRET}"))
    refused = home.get(made, "/token")
    assert refused.refusal == "credential"
    assert "toolwright source allow localhost:" in refused.reason
    allow(home.settings, home.store, moved)
    tried = home.get(made, "/token")
    assert "private address" in tried.reason


def test_what_a_person_wrote_of_credentials_outlives_another_forging(bundle: Path) -> None:
    earlier = read_bundle(bundle)
    assert earlier.spec is not None
    (scheme,) = collect_given_schemes(earlier.credentials)
    assert scheme == parse_credential("header:X-Forgotten=@forgotten")
    elsewhere = TokenEndpoint("https://login.test/token")
    written = [
        replace(c, tokens=elsewhere) if c.name in ("flow", "key") else c
        for c in earlier.credentials
    ]
    plain = [Credential(c.name, "apiKey" if c.name == "sign" else c.kind) for c in written]
    fresh = replace(earlier, credentials=(*plain, Credential("new", "bearer")))
    kept = {c.name: c for c in carry_over_credentials(fresh, written).credentials}
    assert kept["sign"].kind == "template"
    assert kept["flow"].tokens == elsewhere
    assert kept["new"] == Credential("new", "bearer")
    assert [*kept] == [c.name for c in fresh.credentials]


def test_a_description_that_echoes_the_sources_credential_does_not_hold_it() -> None:
    upstream = Told([answer(200, f"info: {KEY} and Bearer {KEY}", content_type="text/plain")])
    fetch = GuardedFetch(upstream, KillSwitch())
    headers = (("Authorization", f"Bearer {KEY}"), ("Accept", "text/plain"))
    got = asyncio.run(fetch("https://api.test/openapi", headers))
    assert upstream.requests[0].get_header("Authorization") == f"Bearer {KEY}"
    assert KEY.encode() not in got.body
    assert ("content-type", "text/plain") in got.headers
