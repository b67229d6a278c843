"""A home whose database another build made: every command says so in one line."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import toolwright
from orchestrator.settings import Settings
from registry.store import Store

COMMANDS = (
    ("list",),
    ("find", "x"),
    ("doctor",),
    ("audit", "verify"),
    ("approvals",),
    ("kill",),
    ("call", "a.b", "{}"),
    ("forge", "x"),
    ("serve",),
    ("run", "x"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_says_that_another_build_made_the_database(
    words: tuple[str, ...], settings: Settings
) -> None:
    Store.open(settings.database_url).close()
    with closing(sqlite3.connect(settings.home / "toolwright.db")) as connection:
        connection.execute("ALTER TABLE freeze DROP COLUMN lift")
    given = {"TOOLWRIGHT_HOME": str(settings.home), "TOOLWRIGHT_ENGINE": "wasm"}
    done = CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)
    assert done.exit_code == 1
    assert "another build" in done.stderr
    assert "TOOLWRIGHT_HOME" in done.stderr
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)
