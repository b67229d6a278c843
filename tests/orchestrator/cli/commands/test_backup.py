"""`toolwright backup` and `restore` as a person or a script types them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import toolwright
from orchestrator.settings import Settings
from registry.secrets.vault import Secret, open_vault
from registry.store import Store
from tests.orchestrator.conftest import PIN


@pytest.fixture
def home(settings: Settings) -> Settings:
    Store.open(settings.database_url).close()
    (settings.home.parent / "pin").write_text(PIN)
    (settings.home.parent / "passphrase").write_text("a long passphrase")
    return settings


def run(settings: Settings, *words: str, code: int = 0) -> Result:
    given = {"TOOLWRIGHT_HOME": str(settings.home)}
    done = CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def beside(settings: Settings, name: str) -> str:
    return str(settings.home.parent / name)


def test_a_script_reads_what_was_done_and_progress_goes_elsewhere(home: Settings) -> None:
    open_vault(home).put("dns", "token", Secret("s3cret"))
    file = beside(home, "home.tgz")
    told = json.loads(run(home, "backup", file, "--json").stdout)
    assert (told["file"], told["vault_key"], told["key_file"]) == (file, str(home.vault_key), "")
    checked = json.loads(
        run(home, "restore", file, "--check", "--sha256", told["sha256"], "--json").stdout
    )
    assert (checked["restored"], checked["blind"]) == (None, "")
    with Store.open(home.database_url) as store:
        assert not store.processes.get_freeze().frozen
    words = ("restore", file, "--pin-file", beside(home, "pin"), "--json")
    done = json.loads(run(home, *words).stdout)
    assert done["restored"]["epoch"] > 0
    with Store.open(home.database_url) as store:
        assert store.processes.get_freeze().frozen


def test_where_the_key_of_the_secrets_is_and_what_another_machine_needs_is_said(
    home: Settings,
) -> None:
    open_vault(home).put("dns", "token", Secret("s3cret"))
    told = run(home, "backup", beside(home, "home.tgz")).stdout
    assert str(home.vault_key) in told
    assert "--with-key" in told
    assert "s3cret" not in told


def test_the_key_is_exported_only_with_the_pin_and_under_a_passphrase(home: Settings) -> None:
    open_vault(home).put("dns", "token", Secret("s3cret"))
    file, key = beside(home, "home.tgz"), beside(home, "key.json")
    wrong = Path(beside(home, "wrong"))
    wrong.write_text("not the PIN")
    words = ("backup", file, "--with-key", key, "--passphrase-file", beside(home, "passphrase"))
    run(home, *words, "--pin-file", str(wrong), code=1)
    assert not Path(key).exists()
    assert not Path(file).exists()
    run(home, *words, "--pin-file", beside(home, "pin"))
    assert Path(key).stat().st_mode & 0o777 == 0o600
    exported = open_vault(home).export_key()
    assert exported is not None
    content = Path(key).read_bytes()
    assert exported not in content
    assert exported.hex().encode() not in content
    wrong.write_text("another passphrase")
    given = ("restore", file, "--check", "--key", key, "--passphrase-file")
    assert "passphrase" in run(home, *given, str(wrong), code=1).stderr
    run(home, *given, beside(home, "passphrase"))


@pytest.mark.parametrize(
    "words",
    [("restore", "{home}.tgz", "--check"), ("restore", "{pin}", "--check"), ("backup", "{pin}")],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_1(
    home: Settings, words: tuple[str, ...]
) -> None:
    given = {"home": str(home.home), "pin": beside(home, "pin")}
    done = run(home, *(word.format(**given) for word in words), code=1)
    assert "Traceback" not in done.output
    assert len(done.stderr.strip().splitlines()[-1]) > 20
    assert Path(given["pin"]).read_text() == PIN


def test_a_file_of_another_digest_is_refused(home: Settings) -> None:
    file = beside(home, "home.tgz")
    run(home, "backup", file)
    assert "SHA-256" in run(home, "restore", file, "--check", "--sha256", "0" * 64, code=1).stderr


def test_a_wrong_pin_leaves_everything_as_it_was(home: Settings) -> None:
    file = beside(home, "home.tgz")
    run(home, "backup", file)
    wrong = Path(beside(home, "wrong"))
    wrong.write_text("not the PIN")
    run(home, "restore", file, "--pin-file", str(wrong), code=1)
    with Store.open(home.database_url) as store:
        assert not store.processes.get_freeze().frozen
    assert not (home.home / ".restore").exists()


def type_at_terminal(settings: Settings, typed: str, *words: str) -> str:
    """What a command shows at a terminal where a person types that."""
    person, terminal = pty.openpty()
    with os.fdopen(person, "r+b", buffering=0) as keyboard:
        keyboard.write(typed.encode())
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator", *words],
            env={**os.environ, "TOOLWRIGHT_HOME": str(settings.home)},
            stdin=terminal,
            stderr=terminal,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        os.close(terminal)
    return done.stdout


def test_a_restore_at_a_terminal_shows_what_it_replaces_and_asks_first(home: Settings) -> None:
    file = beside(home, "home.tgz")
    run(home, "backup", file)
    words = ("restore", file, "--pin-file", beside(home, "pin"))
    shown = type_at_terminal(home, "n\n", *words)
    assert "it replaces this home: 0 servers, 0 calls since the backup" in shown
    assert shown.endswith("Nothing was replaced.\n")
    with Store.open(home.database_url) as store:
        assert not store.processes.get_freeze().frozen
    assert "Restored." in type_at_terminal(home, "y\n", *words)
    assert "Restored." in type_at_terminal(home, "", *words, "--yes")
