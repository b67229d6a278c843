"""Servers that clients start by themselves are found, replaced and put back, and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.clients.clients import (
    CLIENTS,
    SERVER,
    Machine,
    StartCommand,
    describe_machine,
    read_entries,
    update_config,
)
from orchestrator.cli.clients.found_servers import FoundServer, find_servers, read_server
from orchestrator.cli.clients.takeover import (
    RECORD,
    list_variables,
    read_records,
    replace_entry,
    restore_entry,
)
from orchestrator.cli.main import toolwright
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings, load_settings
from registry.secrets.vault import Secret, open_vault
from registry.store import Store
from sandbox.bundle.launch import AUTHOR
from tests.granted import PIN, person
from tests.registry.samples import entry

VALUE = "a-value-that-is-kept"
NOTES = StartCommand("My Notes", "npx", ("-y", "some-notes", "/data"), {"NOTES_KEY": VALUE})
PLAIN = {"command": "uvx", "args": ["some"]}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return describe_machine(_build_environment(tmp_path), "linux")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = load_settings({}, home=tmp_path / "home")
    person(made.pin)
    return made


def _build_environment(tmp_path: Path) -> dict[str, str]:
    own = tmp_path / "person"
    return {
        "HOME": str(own),
        "XDG_CONFIG_HOME": str(own / ".config"),
        "XDG_CACHE_HOME": str(own / ".cache"),
        "TOOLWRIGHT_HOME": str(tmp_path / "home"),
        "TOOLWRIGHT_ENGINE": "wasm",
        "COLUMNS": "300",
    }


def write_cursor(machine: Machine, servers: Mapping[str, Any]) -> Path:
    path = CLIENTS["cursor"].path(machine)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": servers, "theme": "dark"}))
    return path


def run(tmp_path: Path, *words: str) -> Result:
    pin = tmp_path / "pin"
    pin.write_text(PIN)
    return CliRunner().invoke(
        toolwright,
        ["import-clients", *words, "--pin-file", str(pin)],
        env=_build_environment(tmp_path),
        catch_exceptions=False,
    )


@pytest.mark.parametrize("name", CLIENTS)
def test_a_clients_server_is_found_replaced_and_put_back(
    name: str, machine: Machine, settings: Settings
) -> None:
    client, path = CLIENTS[name], CLIENTS[name].path(machine)
    update_config(client, path, NOTES)
    update_config(client, path, StartCommand("other", "other", (), {}))
    before = read_entries(client, path)
    found = next(each for each in find_servers(name, machine) if each.name == NOTES.name)
    assert (found.problem, found.server) == ("", "my_notes")
    assert found.words == (NOTES.command, *NOTES.arguments)
    assert found.environment == NOTES.environment
    backup = replace_entry(settings, found, found.server)
    assert VALUE in backup.read_text()
    assert VALUE not in path.read_text()
    assert VALUE not in (settings.home / RECORD).read_text()
    assert VALUE not in repr(found)
    entries = read_entries(client, path)
    assert entries["other"] == before["other"]
    assert entries[NOTES.name]["args"][-2:] == ["run", "my_notes"]
    assert list_variables(entries[NOTES.name]) == ("TOOLWRIGHT_HOME",)
    assert [each.name for each in find_servers(name, machine)] == ["other"]
    vault, (record,) = open_vault(settings), read_records(settings)
    with pytest.raises(OrchestratorError, match=r"has no my_notes\.NOTES_KEY"):
        restore_entry(settings, vault, record)
    assert read_entries(client, path) == entries
    vault.put("my_notes", "NOTES_KEY", Secret(VALUE))
    restore_entry(settings, vault, record)
    assert read_entries(client, path) == before
    assert read_records(settings) == []


def test_an_import_that_fails_leaves_the_record_of_one_that_was_made_meanwhile(
    machine: Machine, settings: Settings, tmp_path: Path
) -> None:
    path = write_cursor(machine, {"notes": PLAIN})
    (found,) = find_servers("cursor", machine)
    # Its end is open for writing once the other one reads it, with its own record written.
    slow = tmp_path / "slow.json"
    os.mkfifo(slow)
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(replace_entry, settings, replace(found, path=slow), "other")
        with slow.open("w") as written:
            replace_entry(settings, found, "notes")
            written.write("{}")
        with pytest.raises(OrchestratorError, match="has another"):
            other.result()
    (record,) = read_records(settings)
    assert (record.server, record.path) == ("notes", str(path))
    restore_entry(settings, open_vault(settings), record)
    assert json.loads(path.read_text())["mcpServers"] == {"notes": PLAIN}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"url": "https://mcp.example.com"}, "reached by a URL"),
        ({"type": "http", "serverUrl": "https://mcp.example.com"}, "reached by a URL"),
        ({"command": "docker", "args": ["run", "-v", "/:/x", "x"]}, "docker run -v is not"),
        ({"command": "/opt/notes"}, "notes is not a way"),
        ({"command": "npx", "args": ["--call", "x"]}, "npx --call is not understood"),
        ({"command": "npx"}, "npx names no package"),
        ({**PLAIN, "env": {"KEY": "${input:key}"}}, "only its client can fill in"),
        ({**PLAIN, "env": {"KEY": 7}}, "is not a text"),
        ({**PLAIN, "env": {"A B": "x"}}, "A B"),
        ({**PLAIN, "env": {"KEY": ""}}, "KEY is empty"),
        ({**PLAIN, "envFile": ".env"}, "envFile"),
        ({**PLAIN, "args": ["x"] * 200}, "not understood"),
        ({**PLAIN, "args": [7]}, "names no command"),
        ({"type": "builtin"}, "names no command"),
        ("nothing", "not an object"),
    ],
)
def test_what_cannot_be_caged_says_why(entry: Any, why: str) -> None:
    assert why in read_server("cursor", Path("x"), ("x",), entry).problem


def test_zeds_earlier_form_and_an_entrys_other_keys_stay(
    machine: Machine, settings: Settings
) -> None:
    launch = {"path": "uvx", "args": ["some"], "env": {"KEY": VALUE}}
    found = read_server("zed", Path("x"), ("Some",), {"command": launch, "settings": {"a": 1}})
    assert (found.words, dict(found.environment)) == (("uvx", "some"), {"KEY": VALUE})
    path = write_cursor(machine, {"some": {**PLAIN, "disabled": True}})
    (found,) = find_servers("cursor", machine)
    replace_entry(settings, found, found.server)
    assert json.loads(path.read_text())["mcpServers"]["some"]["disabled"] is True
    assert json.loads(path.read_text())["theme"] == "dark"


def test_a_file_that_changed_meanwhile_is_left_alone_and_nothing_is_recorded(
    machine: Machine, settings: Settings
) -> None:
    path = write_cursor(machine, {"some": PLAIN})
    (found,) = find_servers("cursor", machine)
    path.write_text(json.dumps({"mcpServers": {"some": {"command": "other"}}}))
    changed = path.read_text()
    with pytest.raises(OrchestratorError, match="has another `some` than was shown"):
        replace_entry(settings, found, found.server)
    assert path.read_text() == changed
    assert read_records(settings) == []


def test_what_was_there_before_each_of_two_changes_in_a_second_is_kept(
    machine: Machine, settings: Settings
) -> None:
    write_cursor(machine, {"a": PLAIN, "b": {**PLAIN, "args": ["other"]}})
    backups = [
        replace_entry(settings, each, each.server) for each in find_servers("cursor", machine)
    ]
    assert len(set(backups)) == 2
    assert json.loads(backups[0].read_text())["mcpServers"]["a"] == PLAIN


def test_without_a_terminal_all_is_shown_and_nothing_is_changed(
    machine: Machine, settings: Settings, tmp_path: Path
) -> None:
    servers = {
        "notes": {**PLAIN, "env": {"KEY": VALUE}},
        "far": {"url": "https://mcp.example.com"},
        SERVER: {"command": "toolwright", "args": ["serve"]},
    }
    path = write_cursor(machine, servers)
    before = path.read_text()
    told = run(tmp_path)
    assert told.exit_code == 0, told.output
    assert "notes of Cursor" in told.stdout
    assert "as notes, gets: env:KEY; no host, no file" in told.stdout
    assert "far of Cursor" in told.stdout
    assert "stays as it is: it runs elsewhere" in told.stdout
    assert "toolwright import-clients notes --pin-file FILE" in told.stderr
    assert VALUE not in told.output
    assert path.read_text() == before
    assert sorted(path.parent.iterdir()) == [path]
    unknown = run(tmp_path, "far")
    assert (unknown.exit_code, "'far' is not among" in unknown.stderr) == (1, True)


def test_a_file_that_cannot_be_read_keeps_no_other_client_s_servers_from_being_found(
    machine: Machine, settings: Settings, tmp_path: Path
) -> None:
    write_cursor(machine, {"notes": PLAIN})
    broken = CLIENTS["claude-code"].path(machine)
    broken.write_text('{"mcpServers": {')
    told = run(tmp_path)
    assert told.exit_code == 0, told.output
    assert f"{broken} of Claude Code cannot be read: " in told.stdout
    assert "--print" not in told.output
    assert "toolwright import-clients notes --pin-file FILE" in told.stderr


def test_a_server_of_one_project_alone_is_found_replaced_and_put_back(
    machine: Machine, settings: Settings
) -> None:
    path = CLIENTS["claude-code"].path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    everywhere = {"command": "npx", "args": ["-y", "other"]}
    config = {
        "mcpServers": {"notes": everywhere},
        "projects": {"/home/ann/work": {"history": [1], "mcpServers": {"notes": PLAIN}}, "/x": {}},
    }
    path.write_text(json.dumps(config))
    general, own = find_servers("claude-code", machine)
    assert (general.entry, own.entry) == (everywhere, PLAIN)
    assert own.place == f"notes of Claude Code ({path}, /home/ann/work)"
    replace_entry(settings, own, "notes")
    changed = json.loads(path.read_text())
    assert changed["mcpServers"] == config["mcpServers"]
    project = changed["projects"]["/home/ann/work"]
    assert project["mcpServers"]["notes"]["args"][-2:] == ["run", "notes"]
    assert find_servers("claude-code", machine) == (general,)
    (record,) = read_records(settings)
    restore_entry(settings, open_vault(settings), record)
    assert json.loads(path.read_text()) == config


@pytest.mark.parametrize(
    ("author", "is_removed", "is_offered"),
    [(AUTHOR, False, False), (AUTHOR, True, True), ("compiler", True, False)],
)
def test_a_server_that_was_removed_can_be_imported_again(
    machine: Machine,
    settings: Settings,
    tmp_path: Path,
    author: str,
    is_removed: bool,
    is_offered: bool,
) -> None:
    write_cursor(machine, {"notes": PLAIN})
    with Store.open(settings.database_url) as store:
        store.servers.publish(entry("notes", created_by=author), now=1.0)
        if is_removed:
            store.servers.archive("notes", 2.0, "terminal")
    told = run(tmp_path)
    assert ("a server notes is registered already" in told.stdout) is not is_offered
    assert ("import-clients notes" in told.stderr) is is_offered


def test_a_server_that_cannot_be_registered_leaves_its_client_and_the_vault_as_they_were(
    machine: Machine, settings: Settings, tmp_path: Path
) -> None:
    path = write_cursor(machine, {"notes": {**PLAIN, "env": {"KEY": VALUE}}})
    before = path.read_text()
    # No engine that cages such servers is there.
    told = run(tmp_path, "notes")
    assert told.exit_code == 1
    assert "notes stays as it is" in told.stdout
    assert VALUE not in told.output
    assert path.read_text() == before
    assert open_vault(settings).get("notes", "KEY") is None
    assert read_records(settings) == []
    with Store.open(settings.database_url) as store:
        assert list(store.servers.find()) == []


def test_another_value_in_the_vault_is_never_replaced(
    machine: Machine, settings: Settings, tmp_path: Path
) -> None:
    write_cursor(machine, {"notes": {**PLAIN, "env": {"KEY": VALUE}}})
    open_vault(settings).put("notes", "KEY", Secret("mine"))
    told = run(tmp_path, "notes")
    assert "the vault has another value of notes.KEY" in told.stdout
    kept = open_vault(settings).get("notes", "KEY")
    assert kept is not None
    assert kept.reveal() == "mine"


def test_undoing_asks_for_the_pin_before_a_secret_leaves_the_vault(
    machine: Machine, settings: Settings, tmp_path: Path
) -> None:
    path = write_cursor(machine, {"notes": {**PLAIN, "env": {"KEY": VALUE}}})
    (found,) = find_servers("cursor", machine)
    replace_entry(settings, found, found.server)
    open_vault(settings).put("notes", "KEY", Secret(VALUE))
    wrong = tmp_path / "wrong"
    wrong.write_text("not the pin")
    refused = CliRunner().invoke(
        toolwright,
        ["import-clients", "--undo", "--pin-file", str(wrong)],
        env=_build_environment(tmp_path),
    )
    assert refused.exit_code == 1
    assert VALUE not in path.read_text()
    assert run(tmp_path, "--undo").exit_code == 0
    assert json.loads(path.read_text())["mcpServers"]["notes"] == found.entry
    assert "Nothing was imported" in run(tmp_path, "--undo").stdout


def test_two_clients_of_one_server_are_one_and_another_of_its_name_is_not() -> None:
    first = FoundServer("cursor", Path("a"), ("Notes",), {}, ("uvx", "x"), {"K": "v"})
    assert first.is_same(FoundServer("zed", Path("b"), ("notes",), {}, ("uvx", "x"), {"K": "v"}))
    assert not first.is_same(
        FoundServer("zed", Path("b"), ("notes",), {}, ("uvx", "y"), {"K": "v"})
    )
    assert not first.is_same(FoundServer("zed", Path("b"), ("notes",), {}, ("uvx", "x"), {}))
