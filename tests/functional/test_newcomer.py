"""From an empty home to a first answer, by the commands that a new user types."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.newcomer import read_commands
from orchestrator.cli.clients.clients import CLIENTS, describe_machine
from orchestrator.settings import load_settings
from sandbox.engines.wasm.component import LoadedComponent
from tests.functional.home import PIN, ROOT, Home
from tests.world.harbour import HarbourApi, harbour_api

CHOOSING = [(b"Choose a PIN", PIN), (b"confirmation", PIN)]
BLOCK = """\
pipx install dist/*.whl                      # once
toolwright forge http://127.0.0.1:8080       # asks for a PIN
toolwright call harbour.list_berths"""


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[HarbourApi]:
    with harbour_api(tmp_path) as api:
        yield api


@pytest.fixture
def home(component: LoadedComponent, tmp_path: Path) -> Home:
    """A home that is not there yet, of a user who has two clients and no Docker."""
    given = {
        "TOOLWRIGHT_HOME": str(tmp_path / "home"),
        "TOOLWRIGHT_CACHE": str(load_settings().cache),
        "TOOLWRIGHT_ENGINE": "wasm",
        "HOME": str(tmp_path / "person"),
        "PYTHONPATH": str(ROOT),
    }
    return Home(tmp_path / "home", {**os.environ, **given}, fresh=True)


def test_a_forge_sets_an_empty_home_up_and_names_the_call_that_answers(
    home: Home, harbour: HarbourApi
) -> None:
    asked = [*CHOOSING, (b"[y/N]", "y"), (b"PIN", PIN)]
    seen, code = home.type_command("forge", harbour.url, answers=asked)
    assert code == 0, seen
    assert PIN not in seen
    assert seen.index("A PIN of at least 8 characters") < seen.index("Choose a PIN")
    assert seen.index("Choose a PIN") < seen.index("needs a host") < seen.index("is active")
    called = re.search(r"Call one: toolwright (call harbour\.\w+)", seen)
    assert called, seen
    answer = home.run(*called[1].split())
    assert answer.returncode == 0, answer.stderr
    assert harbour.received("POST") == []


def test_setup_adds_toolwright_to_those_clients_that_the_person_wants_it_in(home: Home) -> None:
    machine = describe_machine(home.environment)
    cursor, windsurf = (CLIENTS[name].path(machine) for name in ("cursor", "windsurf"))
    for path in (cursor, windsurf):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    asked = [*CHOOSING, (b"Found Cursor", "y"), (b"Found Windsurf", "n")]
    seen, code = home.type_command("setup", answers=asked)
    assert code == 0, seen
    assert "toolwright" in json.loads(cursor.read_text())["mcpServers"]
    assert windsurf.read_text() == "{}"
    again, code = home.type_command("setup", "--yes", answers=[])
    assert code == 0, again
    assert "has Toolwright" in again
    assert windsurf.read_text() == "{}"


def test_without_a_terminal_nothing_is_set_up_and_the_file_of_the_pin_is_asked_for(
    home: Home, harbour: HarbourApi, tmp_path: Path
) -> None:
    waits = home.run("forge", harbour.url)
    assert waits.returncode == 3, waits.stderr
    assert "--pin-file FILE" in waits.stderr
    assert not home.settings.pin.exists()
    with home.store() as store:
        assert store.grants.find_grants() == ()
    assert harbour.entries() == []
    short = tmp_path / "short"
    short.write_text("1234")
    refused = home.run("forge", harbour.url, "--pin-file", str(short))
    assert refused.returncode == 1
    assert not home.settings.pin.exists()


@pytest.mark.parametrize(
    "readme",
    [
        f"# T\n\n    {BLOCK}\n".replace("\ntool", "\n    tool"),
        f"# T\n\n```sh\n{BLOCK}\n```\nmore\n",
        f"    ls    # another block\n\ntext\n\n```\n{BLOCK}\n```",
    ],
)
def test_the_bench_types_the_first_block_that_installs(readme: str) -> None:
    assert read_commands(readme) == (
        "pipx install dist/*.whl",
        "toolwright forge http://127.0.0.1:8080",
        "toolwright call harbour.list_berths",
    )
