"""Grants against whoever has a shell: rows written, edited and put back by hand."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.approvals.accounts import choose_account
from orchestrator.approvals.granting import (
    add_grant,
    add_source,
    allow_host,
    remove_grant,
    revoke_permissions,
)
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.signing_key import open_key
from orchestrator.cli.commands.doctor import run_checks
from orchestrator.cli.main import toolwright
from orchestrator.gateway.audit_writer import AuditWriter
from orchestrator.gateway.brokers import SOURCES, BrokerFactory
from orchestrator.gateway.thirdparty import GrantedEnvironmentProvider
from orchestrator.settings import Settings
from registry.models import DocumentationSource, build_entry
from registry.secrets.signing import Signer
from registry.secrets.vault import FileVault, Secret
from registry.secrets.vault_key import KeyFile
from registry.servers.files import install_bundle
from registry.store import Store
from sandbox.broker.live import LiveHttp
from sandbox.broker.throttle import Throttle
from sandbox.bundle.credential import Credential
from sandbox.bundle.launch import Launch
from sandbox.bundle.model import Bundle
from sandbox.killswitch import KillSwitch
from tests.granted import consents
from tests.orchestrator.conftest import PIN
from tests.registry.samples import bundle

HOST = "api.example:443"
COPY = "CREATE TABLE kept AS SELECT * FROM grants"
RESTORE = "INSERT OR REPLACE INTO grants SELECT * FROM kept"


@pytest.fixture
def signer(settings: Settings) -> Signer:
    opened = open_key(settings, PIN, time.time()).signer
    assert opened is not None
    return opened


@pytest.fixture
def given(settings: Settings, store: Store) -> Grants:
    return consents(settings, store)


@pytest.fixture
def shell(settings: Settings, store: Store) -> Callable[[str], None]:
    """Whoever can write to the database's file."""

    def run(statement: str) -> None:
        with sqlite3.connect(settings.database_url.removeprefix("sqlite:///")) as connection:
            connection.execute(statement)

    return run


def row(origin: str, kind: str) -> str:
    columns = "INSERT INTO grants (origin, kind, granted_by, granted)"
    return f"{columns} VALUES ('{origin}', '{kind}', 'terminal', 1.0)"


def reasons(given: Grants) -> set[tuple[str, str]]:
    return {(void.origin, problem) for void, problem in given.find_void()}


@pytest.mark.parametrize("kind", ["host", "private_host", "permission", "source"])
def test_a_row_written_by_hand_grants_nothing(
    given: Grants, shell: Callable[[str], None], kind: str
) -> None:
    shell(row("pets fs:/data:rw", kind))
    assert given.find_grants() == ()
    assert given.find_permissions("pets") == {}
    assert given.find_hosts() == given.find_private_hosts() == frozenset()
    assert reasons(given) == {("pets fs:/data:rw", "unsigned")}


@pytest.mark.parametrize(
    "change",
    [
        "origin = 'pets fs:/:rw'",
        "origin = 'other fs:/data:ro'",
        "kind = 'host'",
        "granted_by = 'somebody'",
        "granted = granted + 1",
        "granted = 'x'",
        "granted = 9e999",
        "detail = 'admin_key'",
        "serial = 7",
        "serial = 'x'",
        "signature = 'ff' || substr(signature, 3)",
        "signature = ''",
    ],
)
def test_an_edited_row_grants_nothing(
    store: Store, given: Grants, signer: Signer, shell: Callable[[str], None], change: str
) -> None:
    add_grant(store.grants, "pets fs:/data:ro", "permission", "terminal", signer)
    assert given.find_permissions("pets") == {"fs:/data:ro": ""}
    shell(f"UPDATE grants SET {change}")
    assert given.find_grants() == ()
    assert len(given.find_void()) == 1


def test_another_key_signs_nothing(store: Store, given: Grants) -> None:
    allow_host(store.grants, HOST, "terminal", Signer.generate())
    assert given.find_hosts() == frozenset()
    assert {problem for _, problem in given.find_void()} == {"unfitting"}


def test_without_a_known_key_nothing_is_granted(
    settings: Settings, store: Store, signer: Signer
) -> None:
    allow_host(store.grants, HOST, "terminal", signer)
    settings.pin.unlink()
    assert consents(settings, store).find_hosts() == frozenset()


def test_a_row_put_back_after_it_was_revoked_stays_dead(
    store: Store, given: Grants, signer: Signer, shell: Callable[[str], None]
) -> None:
    allow_host(store.grants, HOST, "terminal", signer)
    shell(COPY)
    assert remove_grant(store.grants, HOST, "terminal", 2.0)
    shell(RESTORE)
    assert given.find_hosts() == frozenset()
    assert reasons(given) == {(HOST, "revoked")}


def test_a_row_that_was_hidden_while_it_was_revoked_stays_dead(
    store: Store, given: Grants, signer: Signer, shell: Callable[[str], None]
) -> None:
    add_grant(store.grants, "pets env:KEY", "permission", "terminal", signer)
    shell(COPY)
    shell("DELETE FROM grants")
    revoke_permissions(store.grants, "pets", ("env:KEY",), "terminal", 2.0)
    shell(RESTORE)
    assert given.find_permissions("pets") == {}


def test_a_grant_that_was_known_is_not_taken_for_the_same_once_revoked_and_put_back(
    store: Store, given: Grants, signer: Signer, shell: Callable[[str], None]
) -> None:
    allow_host(store.grants, HOST, "terminal", signer)
    shell(COPY)
    assert given.find_hosts() == {HOST}
    remove_grant(store.grants, HOST, "terminal", 2.0)
    shell(RESTORE)
    assert given.find_hosts() == frozenset()


def test_the_grants_are_the_very_same_while_only_other_rows_are_written(
    store: Store, given: Grants, signer: Signer, shell: Callable[[str], None]
) -> None:
    allow_host(store.grants, HOST, "terminal", signer)
    known, version = given.find_grants(), store.signals.read_data_version()
    store.audit.add_note("refused", "call", {}, 2.0)
    assert store.signals.read_data_version() != version
    assert given.find_grants() is known
    other = "CASE substr(signature, 1, 2) WHEN 'ff' THEN '00' ELSE 'ff' END"
    shell(f"UPDATE grants SET signature = {other} || substr(signature, 3)")
    assert given.find_grants() == ()


def test_what_is_known_counts_no_more_once_the_key_is_another(
    settings: Settings, store: Store, given: Grants, signer: Signer
) -> None:
    allow_host(store.grants, HOST, "terminal", signer)
    assert given.find_hosts() == {HOST}
    content = settings.pin.read_text()
    settings.pin.write_text(content.replace(signer.public, "ab" * 32))
    store.audit.add_note("refused", "call", {}, 2.0)
    assert given.find_hosts() == frozenset()
    settings.pin.write_text(content)
    store.audit.add_note("refused", "call", {}, 3.0)
    assert given.find_hosts() == {HOST}


def test_an_older_copy_stays_dead_after_it_was_granted_and_revoked_again(
    store: Store, given: Grants, signer: Signer, shell: Callable[[str], None]
) -> None:
    allow_host(store.grants, HOST, "terminal", signer)
    remove_grant(store.grants, HOST, "terminal", 2.0)
    allow_host(store.grants, HOST, "terminal", signer)
    shell(COPY)
    assert given.find_hosts() == {HOST}
    remove_grant(store.grants, HOST, "terminal", 3.0)
    shell(RESTORE)
    assert given.find_hosts() == frozenset()
    allow_host(store.grants, HOST, "terminal", signer)
    assert given.find_hosts() == {HOST}


def test_a_revocation_outlives_its_row_in_the_database(
    tmp_path: Path,
    store: Store,
    given: Grants,
    signer: Signer,
    shell: Callable[[str], None],
) -> None:
    allow_host(store.grants, HOST, "terminal", signer)
    shell(COPY)
    remove_grant(store.grants, HOST, "terminal", 2.0)
    store.audit.add_note("later", "x", {}, 3.0)
    before = time.time() + 60
    moved = store.audit.archive_rows(tmp_path / "audit", before, before + 30 * 86400)
    assert moved is not None
    assert moved.rows > 3
    shell(RESTORE)
    assert given.find_hosts() == frozenset()
    assert store.audit.verify_chains((), tmp_path / "audit") is None


def test_the_secret_of_a_source_goes_where_a_person_said_and_nowhere_else(
    store: Store, given: Grants, signer: Signer, shell: Callable[[str], None]
) -> None:
    real = DocumentationSource("https://api.example/docs", "X-Key", "key")
    add_source(store.grants, real, "terminal", signer)
    assert given.find_sources() == (real,)
    shell("INSERT INTO sources VALUES ('https://evil.example/', 'X-Key', 'key')")
    shell("INSERT INTO sources VALUES ('https://evil.example/free', '', '')")
    assert given.find_sources() == (real, DocumentationSource("https://evil.example/free"))
    assert ("https://evil.example/", "unsigned") in reasons(given)
    shell("UPDATE sources SET secret = 'other' WHERE url = 'https://api.example/docs'")
    assert real not in given.find_sources()
    assert all(not source.secret for source in given.find_sources())


def test_doctor_tells_of_it_and_one_command_confirms_it(
    settings: Settings, store: Store, given: Grants, shell: Callable[[str], None], tmp_path: Path
) -> None:
    made = replace(bundle(), permissions=("fs:/data:ro", "env:KEY"))
    install_bundle(settings.home, store.servers, made, build_entry(made, 1.0), now=1.0)
    for origin, kind in (
        (f"{made.name} fs:/data:ro", "permission"),
        (f"{made.name} fs:/home:rw", "permission"),
        (HOST, "host"),
    ):
        shell(row(origin, kind))
    shell("INSERT INTO sources VALUES ('https://api.example/', 'X-Key', 'key')")
    (check,) = (one for one in run_checks(settings, store) if one.name == "grants")
    assert check.verdict == "warning"
    assert check.found.startswith("4 count for nothing")
    assert "toolwright grant --confirm" in check.hint
    pin = tmp_path / "pin.txt"
    pin.write_text(PIN)
    words = ["grant", "--confirm", "--pin-file", str(pin)]
    home = {"TOOLWRIGHT_HOME": str(settings.home)}
    done = CliRunner().invoke(toolwright, words, env=home, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "3 grants are signed" in done.output
    assert given.find_permissions(made.name) == {"fs:/data:ro": ""}
    assert given.find_hosts() == {HOST}
    assert given.find_sources() == (DocumentationSource("https://api.example/", "X-Key", "key"),)
    assert reasons(given) == {(f"{made.name} fs:/home:rw", "unsigned")}


def test_confirming_needs_the_pin(
    settings: Settings, store: Store, given: Grants, shell: Callable[[str], None], tmp_path: Path
) -> None:
    shell(
        f"INSERT INTO grants (origin, kind, granted_by, granted) VALUES ('{HOST}', 'host', '', 1)"
    )
    pin = tmp_path / "pin.txt"
    pin.write_text("not the PIN")
    words = ["grant", "--confirm", "--pin-file", str(pin)]
    home = {"TOOLWRIGHT_HOME": str(settings.home)}
    done = CliRunner().invoke(toolwright, words, env=home, catch_exceptions=False)
    assert done.exit_code == 1
    assert given.find_hosts() == frozenset()


def test_a_secret_goes_only_where_its_grant_names_it(
    tmp_path: Path, store: Store, given: Grants, signer: Signer
) -> None:
    vault = FileVault(tmp_path / "vault.json", key=KeyFile(tmp_path / "key"))
    vault.put(SOURCES, "weather", Secret("sunny"))
    vault.put(SOURCES, "admin", Secret("root"))
    outfit = GrantedEnvironmentProvider(
        given, vault, lambda _: LiveHttp(), Throttle(), KillSwitch(), AuditWriter(store.audit)
    )

    def launched(secret: str) -> Bundle:
        launch = Launch("script", command=("python",), secrets={"KEY": secret})
        return replace(bundle(), permissions=("env:KEY",), launch=launch)

    name = launched("weather").name
    add_grant(store.grants, f"{name} env:KEY", "permission", "terminal", signer, "weather")
    assert outfit(launched("weather")).environment == {"KEY": "sunny"}
    assert outfit(launched("admin")).environment == {}


def test_a_session_does_not_outlive_the_grant_of_its_private_host(
    tmp_path: Path, store: Store, given: Grants, signer: Signer
) -> None:
    vault = FileVault(tmp_path / "vault.json", key=KeyFile(tmp_path / "key"))
    brokers = BrokerFactory(given, vault, lambda _: LiveHttp(), Throttle(), KillSwitch())
    made = replace(bundle(), base_url="http://127.0.0.1:8081")
    before = brokers.find_held_grants(made)
    allow_host(store.grants, "127.0.0.1:8081", "terminal", signer)
    allowed = brokers.find_held_grants(made)
    remove_grant(store.grants, "127.0.0.1:8081", "terminal", 2.0)
    assert before != allowed
    assert brokers.find_held_grants(made) == before


def test_a_session_holds_on_to_the_account_of_the_call_that_opens_it(
    tmp_path: Path, given: Grants
) -> None:
    vault = FileVault(tmp_path / "vault.json", key=KeyFile(tmp_path / "key"))
    brokers = BrokerFactory(given, vault, lambda _: LiveHttp(), Throttle(), KillSwitch())
    made = replace(bundle(), credentials=(Credential("oauth", "bearer"),))
    usual = brokers.find_held_grants(made)
    with choose_account(made.name, "work"):
        chosen = brokers.find_held_grants(made)
    assert (usual.accounts, chosen.accounts) == (
        (("oauth", "oauth"),),
        (("oauth", "oauth@work"),),
    )
    assert usual.grants == chosen.grants


def test_only_a_signed_grant_lets_a_server_s_calls_send_more(
    settings: Settings, tmp_path: Path, store: Store, given: Grants, shell: Callable[[str], None]
) -> None:
    vault = FileVault(tmp_path / "vault.json", key=KeyFile(tmp_path / "key"))
    brokers = BrokerFactory(given, vault, lambda _: LiveHttp(), Throttle(), KillSwitch())
    made = bundle()
    install_bundle(settings.home, store.servers, made, build_entry(made, 1.0), now=1.0)
    pin = tmp_path / "pin.txt"
    pin.write_text(PIN)

    def allowed(*words: str) -> int:
        home = {"TOOLWRIGHT_HOME": str(settings.home)}
        command = ["grant", made.name, *words, "--pin-file", str(pin)]
        done = CliRunner().invoke(toolwright, command, env=home, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return brokers.build_read_broker(made).requests_per_call

    shell(row(f"{made.name} requests:5000", "permission"))
    assert brokers.build_read_broker(made).requests_per_call == 100
    before = brokers.find_held_grants(made)
    assert allowed("requests:400") == 400
    assert brokers.find_held_grants(made) != before
    assert allowed("requests:300") == 300
    assert allowed("requests:300", "--revoke") == 100
