"""`toolwright secret` at a terminal: where a secret goes is shown, bound and taken away with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import toolwright
from orchestrator.settings import Settings
from registry.models import build_entry
from registry.servers.bundles import Bundles
from registry.store import Store
from tests.attacks.test_secret_origins import ELSEWHERE, KEY, compiled
from tests.orchestrator.conftest import PIN

OWN, OTHER = "https://api.bank.test:443 header:x-key", "https://other.test:443 header:x-key"


class Terminal:
    def __init__(self, settings: Settings, directory: Path) -> None:
        self.home = {"TOOLWRIGHT_HOME": str(settings.home)}
        self._pin, self._value = directory / "pin", directory / "value"
        self._pin.write_text(PIN)
        self._value.write_text("bank-key-canary")

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(toolwright, words, env=self.home, catch_exceptions=False)

    def person(self, *words: str) -> Result:
        return self.run(*words, "--pin-file", str(self._pin))

    def set(self, name: str) -> Result:
        return self.person("secret", "set", name, "--value-file", str(self._value))

    def places(self, name: str) -> list[str]:
        rows = json.loads(self.run("secret", "list", "--json").stdout)
        return next(row["to"] for row in rows if f"{row['server']}.{row['name']}" == name)


@pytest.fixture
def terminal(settings: Settings, tmp_path: Path) -> Terminal:
    return Terminal(settings, tmp_path)


@pytest.fixture
def bank(settings: Settings, store: Store) -> None:
    made = compiled(rates=ELSEWHERE)
    shelf = Bundles(settings.home, store.servers)
    shelf.publish_bundle(made, build_entry(made, 1.0), (), None)


@pytest.mark.usefixtures("bank")
def test_setting_a_secret_shows_where_it_goes_and_binds_it(terminal: Terminal) -> None:
    shown = terminal.set("bank.key").stdout
    assert OWN in shown
    assert OTHER in shown
    assert terminal.places("bank.key") == [OWN, OTHER]


def test_setting_a_secret_shows_what_the_description_says_of_it(
    terminal: Terminal, settings: Settings, store: Store
) -> None:
    made = compiled({**KEY, "description": "Prefix the value with `Apikey `."})
    shelf = Bundles(settings.home, store.servers)
    shelf.publish_bundle(made, build_entry(made, 1.0), (), None)
    assert "its description says: “Prefix the value with" in terminal.set("bank.key").stdout


@pytest.mark.usefixtures("bank")
def test_a_secret_is_bound_to_some_of_its_origins_or_to_none(terminal: Terminal) -> None:
    terminal.set("bank.key")
    shown = terminal.person("secret", "bind", "bank.key", "--to", "https://api.bank.test")
    assert OTHER in shown.stdout
    assert terminal.places("bank.key") == [OWN]
    refused = terminal.person("secret", "bind", "bank.key", "--to", "https://evil.test")
    assert refused.exit_code == 1
    assert terminal.places("bank.key") == [OWN]
    terminal.person("secret", "remove", "bank.key")
    assert terminal.run("secret", "list", "--json").stdout.strip() == "[]"


def test_a_secret_without_a_server_goes_nowhere_and_says_what_to_do(terminal: Terminal) -> None:
    assert "toolwright secret bind bank.key" in terminal.set("bank.key").stdout
    assert terminal.places("bank.key") == []
    assert terminal.person("secret", "bind", "bank.key").exit_code == 1


def test_a_source_s_secret_goes_to_the_origins_of_its_sources(terminal: Terminal) -> None:
    terminal.set("weather")
    assert terminal.places("sources.weather") == []
    url = "https://api.bank.test/docs"
    terminal.person("source", "add", url, "--header", "X-Key=@weather")
    assert terminal.places("sources.weather") == [OWN]
    assert terminal.person("secret", "bind", "weather").exit_code == 1


@pytest.mark.parametrize(
    "words",
    [
        ("source", "add", "https://api.bank.test/docs", "--header", "X-Key=@nowhere"),
        ("add", "given", "--env", "API=@nowhere", "--", "python", "server.py"),
    ],
)
def test_a_secret_that_is_not_set_is_told_before_anything_is_done(
    terminal: Terminal, store: Store, words: tuple[str, ...]
) -> None:
    refused = terminal.run(*words)
    assert refused.exit_code == 1
    assert "toolwright secret set" in refused.stderr
    assert "nowhere" in refused.stderr
    assert "PIN" not in refused.output
    assert not store.grants.find_grants()
    assert not store.grants.find_sources()


@pytest.mark.usefixtures("bank")
def test_a_secret_that_its_server_does_not_ask_for_is_told_with_those_that_it_does(
    terminal: Terminal,
) -> None:
    refused = terminal.run("secret", "set", "bank.kay")
    assert refused.exit_code == 1
    assert "toolwright secret set bank.key" in refused.stderr
    assert "--auth" in refused.stderr
    assert terminal.run("secret", "list", "--json").stdout.strip() == "[]"


@pytest.mark.usefixtures("bank")
def test_a_server_s_name_alone_is_no_secret_of_sources(terminal: Terminal) -> None:
    refused = terminal.run("secret", "set", "bank")
    assert refused.exit_code == 1
    assert "`toolwright secret set bank.key`" in refused.stderr
    assert terminal.run("secret", "list", "--json").stdout.strip() == "[]"


@pytest.mark.usefixtures("bank")
def test_a_server_s_mistyped_name_is_told(terminal: Terminal) -> None:
    assert "Did you mean bank.key?" in terminal.set("bnak.key").stdout
    assert "Did you mean" not in terminal.set("weather.key").stdout


@pytest.mark.usefixtures("bank")
def test_the_audit_has_a_row_only_of_what_was_granted_or_removed(
    terminal: Terminal, store: Store
) -> None:
    def count(kind: str) -> int:
        return sum(1 for row in store.audit.find(100) if row.kind == kind)

    assert "There was no bank.key" in terminal.run("secret", "remove", "bank.key").stdout
    assert count("secret.remove") == count("grant.removed") == 0
    terminal.set("bank.key")
    assert (count("grant.added"), count("grant.removed")) == (1, 0)
    terminal.set("bank.key")
    assert (count("grant.added"), count("grant.removed")) == (2, 1)
    terminal.person("secret", "remove", "bank.key")
    assert (count("secret.remove"), count("grant.removed")) == (1, 2)


@pytest.mark.usefixtures("bank")
def test_who_logs_in_with_a_key_is_told_where_the_key_goes(terminal: Terminal) -> None:
    refused = terminal.person("login", "bank")
    assert refused.exit_code == 1
    assert "`toolwright secret set bank.key`" in refused.stderr


def test_without_a_terminal_the_pin_is_asked_for_in_one_message(terminal: Terminal) -> None:
    words = [sys.executable, "-m", "orchestrator", "secret", "set", "x"]
    given = {**os.environ, **terminal.home, "TOOLWRIGHT_RESIDENT": "off"}
    ran = subprocess.run(
        words,
        env=given,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("the PIN is wanted")
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.usefixtures("bank")
def test_a_secret_that_is_not_set_is_not_bound(terminal: Terminal) -> None:
    refused = terminal.person("secret", "bind", "bank.key")
    assert refused.exit_code == 1
    assert "toolwright secret set bank.key" in refused.stderr
