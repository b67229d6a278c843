"""Grants against whoever has a shell: rows written, edited and put back by hand."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.brokers import SOURCES, Brokers
from orchestrator.checkup import check_all
from orchestrator.cli import toolwright
from orchestrator.consents import Consents
from orchestrator.footnotes import Footnotes
from orchestrator.granting import add_source, allow_host, forget, grant, revoke_permissions
from orchestrator.outfitting import Outfitting
from orchestrator.pin import open_key
from orchestrator.settings import Settings
from registry.catalogue import install
from registry.keys import KeyFile
from registry.records import Source, entry_from
from registry.signing import Signer
from registry.store import Store
from registry.vault import FileVault, Secret
from sandbox.brake import Brake
from sandbox.bundle import Bundle
from sandbox.launch import Launch
from sandbox.livehttp import LiveHttp
from sandbox.throttle import Throttle
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
def given(settings: Settings, store: Store) -> Consents:
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


def reasons(given: Consents) -> set[tuple[str, str]]:
    return {(void.origin, problem) for void, problem in given.void()}


@pytest.mark.parametrize("kind", ["host", "private_host", "permission", "source"])
def test_a_row_written_by_hand_grants_nothing(
    given: Consents, shell: Callable[[str], None], kind: str
) -> None:
    shell(row("pets fs:/data:rw", kind))
    assert given.grants() == ()
    assert given.permissions("pets") == {}
    assert given.hosts() == given.private_hosts() == frozenset()
    assert reasons(given) == {("pets fs:/data:rw", "nobody signed it")}


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
    store: Store, given: Consents, signer: Signer, shell: Callable[[str], None], change: str
) -> None:
    grant(store, "pets fs:/data:ro", "permission", "terminal", signer)
    assert given.permissions("pets") == {"fs:/data:ro": ""}
    shell(f"UPDATE grants SET {change}")
    assert given.grants() == ()
    assert len(given.void()) == 1


def test_another_key_signs_nothing(store: Store, given: Consents) -> None:
    allow_host(store, HOST, "terminal", Signer.fresh())
    assert given.hosts() == frozenset()
    assert {problem for _, problem in given.void()} == {"the signature does not fit"}


def test_without_a_known_key_nothing_is_granted(
    settings: Settings, store: Store, signer: Signer
) -> None:
    allow_host(store, HOST, "terminal", signer)
    settings.pin.unlink()
    assert consents(settings, store).hosts() == frozenset()


def test_a_row_put_back_after_it_was_revoked_stays_dead(
    store: Store, given: Consents, signer: Signer, shell: Callable[[str], None]
) -> None:
    allow_host(store, HOST, "terminal", signer)
    shell(COPY)
    assert forget(store, HOST, "terminal", 2.0)
    shell(RESTORE)
    assert given.hosts() == frozenset()
    assert reasons(given) == {(HOST, "it was revoked")}


def test_a_row_that_was_hidden_while_it_was_revoked_stays_dead(
    store: Store, given: Consents, signer: Signer, shell: Callable[[str], None]
) -> None:
    grant(store, "pets env:KEY", "permission", "terminal", signer)
    shell(COPY)
    shell("DELETE FROM grants")
    revoke_permissions(store, "pets", ("env:KEY",), "terminal", 2.0)
    shell(RESTORE)
    assert given.permissions("pets") == {}


def test_an_older_copy_stays_dead_after_it_was_granted_and_revoked_again(
    store: Store, given: Consents, signer: Signer, shell: Callable[[str], None]
) -> None:
    allow_host(store, HOST, "terminal", signer)
    forget(store, HOST, "terminal", 2.0)
    allow_host(store, HOST, "terminal", signer)
    shell(COPY)
    assert given.hosts() == {HOST}
    forget(store, HOST, "terminal", 3.0)
    shell(RESTORE)
    assert given.hosts() == frozenset()
    allow_host(store, HOST, "terminal", signer)
    assert given.hosts() == {HOST}


def test_a_revocation_outlives_its_row_in_the_database(
    tmp_path: Path,
    store: Store,
    given: Consents,
    signer: Signer,
    shell: Callable[[str], None],
) -> None:
    allow_host(store, HOST, "terminal", signer)
    shell(COPY)
    forget(store, HOST, "terminal", 2.0)
    store.note("later", "x", {}, 3.0)
    before = time.time() + 60
    moved = store.archive_audit(tmp_path / "audit", before, before + 30 * 86400)
    assert moved is not None
    assert moved.rows > 3
    shell(RESTORE)
    assert given.hosts() == frozenset()
    assert store.verify_audit((), tmp_path / "audit") is None


def test_the_secret_of_a_source_goes_where_a_person_said_and_nowhere_else(
    store: Store, given: Consents, signer: Signer, shell: Callable[[str], None]
) -> None:
    real = Source("https://api.example/docs", "X-Key", "key")
    add_source(store, real, "terminal", signer)
    assert given.sources() == (real,)
    shell("INSERT INTO sources VALUES ('https://evil.example/', 'X-Key', 'key')")
    shell("INSERT INTO sources VALUES ('https://evil.example/free', '', '')")
    assert given.sources() == (real, Source("https://evil.example/free"))
    assert ("https://evil.example/", "nobody signed it") in reasons(given)
    shell("UPDATE sources SET secret = 'other' WHERE url = 'https://api.example/docs'")
    assert real not in given.sources()
    assert all(not source.secret for source in given.sources())


def test_doctor_tells_of_it_and_one_command_confirms_it(
    settings: Settings, store: Store, given: Consents, shell: Callable[[str], None], tmp_path: Path
) -> None:
    made = replace(bundle(), permissions=("fs:/data:ro", "env:KEY"))
    install(settings.home, store, made, entry_from(made, 1.0), now=1.0)
    for origin, kind in (
        (f"{made.name} fs:/data:ro", "permission"),
        (f"{made.name} fs:/home:rw", "permission"),
        (HOST, "host"),
    ):
        shell(row(origin, kind))
    shell("INSERT INTO sources VALUES ('https://api.example/', 'X-Key', 'key')")
    (check,) = (one for one in check_all(settings, store) if one.name == "grants")
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
    assert given.permissions(made.name) == {"fs:/data:ro": ""}
    assert given.hosts() == {HOST}
    assert given.sources() == (Source("https://api.example/", "X-Key", "key"),)
    assert reasons(given) == {(f"{made.name} fs:/home:rw", "nobody signed it")}


def test_confirming_needs_the_pin(
    settings: Settings, store: Store, given: Consents, shell: Callable[[str], None], tmp_path: Path
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
    assert given.hosts() == frozenset()


def test_a_secret_goes_only_where_its_grant_names_it(
    tmp_path: Path, store: Store, given: Consents, signer: Signer
) -> None:
    vault = FileVault(tmp_path / "vault.json", key=KeyFile(tmp_path / "key"))
    vault.put(SOURCES, "weather", Secret("sunny"))
    vault.put(SOURCES, "admin", Secret("root"))
    outfit = Outfitting(given, vault, lambda _: LiveHttp(), Throttle(), Brake(), Footnotes(store))

    def launched(secret: str) -> Bundle:
        launch = Launch("script", command=("python",), secrets={"KEY": secret})
        return replace(bundle(), permissions=("env:KEY",), launch=launch)

    name = launched("weather").name
    grant(store, f"{name} env:KEY", "permission", "terminal", signer, "weather")
    assert outfit(launched("weather")).environment == {"KEY": "sunny"}
    assert outfit(launched("admin")).environment == {}


def test_a_session_does_not_outlive_the_grant_of_its_private_host(
    tmp_path: Path, store: Store, given: Consents, signer: Signer
) -> None:
    vault = FileVault(tmp_path / "vault.json", key=KeyFile(tmp_path / "key"))
    brokers = Brokers(given, vault, lambda _: LiveHttp(), Throttle(), Brake())
    made = replace(bundle(), base_url="http://127.0.0.1:8081")
    before = brokers.given(made)
    allow_host(store, "127.0.0.1:8081", "terminal", signer)
    allowed = brokers.given(made)
    forget(store, "127.0.0.1:8081", "terminal", 2.0)
    assert before != allowed
    assert brokers.given(made) == before
