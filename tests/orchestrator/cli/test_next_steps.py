"""What Toolwright says without a command, and how it goes away again."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.clients.clients import CLIENTS, describe_machine
from orchestrator.cli.main import COMMANDS, toolwright
from orchestrator.cli.next_steps import (
    HomeState,
    choose_next_commands,
    render_home_state,
)
from orchestrator.control.page import render_panels
from orchestrator.control.process import write_address
from orchestrator.processes.control_client import ControlAddress
from orchestrator.processes.liveness import read_start_time
from orchestrator.settings import Settings, load_settings
from registry.models import Approval, Process
from registry.needs import AnswerNeed
from registry.store import Store
from sandbox.engines.wasm.component import LoadedComponent
from tests.orchestrator.conftest import PIN
from tests.orchestrator.plane import TOKEN, Plane
from tests.registry.samples import job


def run(settings: Settings, *words: str, **given: str) -> Result:
    environment = {"TOOLWRIGHT_HOME": str(settings.home), **given}
    return CliRunner().invoke(toolwright, words, env=environment, catch_exceptions=False)


@pytest.mark.parametrize(
    ("state", "first"),
    [
        (HomeState(has_pin=False), "toolwright setup"),
        (HomeState(frozen_by="me", pending=("a1",)), "toolwright unfreeze"),
        (HomeState(pending=("a2", "a1"), servers=("dns",)), "toolwright approve a2"),
        (HomeState(unsent=("a1",)), "toolwright work --approval a1"),
        (HomeState(waiting=("j1",)), "toolwright jobs j1"),
        (HomeState(servers=("dns",)), 'toolwright find "what you want"'),
        (HomeState(), 'toolwright forge "what you want" --source URL'),
    ],
)
def test_what_blocks_comes_first_of_three_commands(state: HomeState, first: str) -> None:
    found = choose_next_commands(state)
    assert (found[0], len(found)) == (first, 3)
    assert {command.split()[1] for command in found} <= COMMANDS.keys()


def test_nothing_is_sent_while_all_is_frozen() -> None:
    found = choose_next_commands(HomeState(frozen_by="me", unsent=("a1",)))
    assert not [command for command in found if "--approval" in command]


def test_without_a_command_it_says_what_waits_and_what_to_do(
    settings: Settings, waiting: Approval
) -> None:
    told = run(settings)
    assert told.exit_code == 0
    for said in ("Waiting for you: 1 to approve", "Servers: 1", f"toolwright approve {waiting.id}"):
        assert said in told.stdout


def test_a_freeze_is_told_with_the_reason_that_was_given(settings: Settings, store: Store) -> None:
    store.processes.freeze(time.time(), "terminal", "the disk is full")
    assert "Frozen by terminal: the disk is full" in run(settings).stdout.splitlines()


def test_a_server_that_no_repair_mended_is_told_with_where_it_says_why() -> None:
    state = HomeState(servers=("dns",), broken=("r1",))
    assert "Not mended: a server; `toolwright jobs r1` says why" in render_home_state(state)
    assert choose_next_commands(state)[0] == "toolwright jobs r1"


def test_a_question_for_a_clients_model_is_none_for_the_person(
    settings: Settings, store: Store
) -> None:
    need = AnswerNeed("s1.confirm.1", "Is it meant?", {})
    example = {"answer_with": {"answer": {"question": "s1.confirm.1", "confirm": True}}}
    for number, files in enumerate(("granted", "granted", "typed")):
        request = {"task": "list them", "files": files}
        made = replace(job(), id=f"j{number}", kind="do", request=request)
        store.jobs.create(made)
        claimed = store.jobs.claim(made.id, "test", 2.0)
        assert claimed is not None
        store.drafts.park_job(made.id, claimed.attempt, example, 3.0, "asking", need, "ask")
    told = run(settings).stdout
    assert "Waiting for you: 1 job that needs something" in told
    assert "Waiting for a client's model: 2 tasks in words" in told
    assert "--run j2" in told
    assert "--run j1" not in told
    assert {*json.loads(run(settings, "--json").stdout)["asked"]} == {"j0", "j1"}

    # The page counts them as the terminal does.
    room = render_panels(store)
    assert "Waiting for you (1), for the model of a client (2)" in room["waiting"]
    assert room["waiting"].count("A task asks the model of its client") == 2
    assert room["waiting"].index("A task asks you") < room["waiting"].index("asks the model")
    assert re.search(r"Approvals\s*<span[^>]*>1</span>", room["nav"])


def test_a_target_that_gets_no_message_since_push_is_locked_is_told_with_what_unlocks_it(
    settings: Settings, store: Store, plane: Plane, tmp_path: Path
) -> None:
    pin = tmp_path / "pin"
    pin.write_text(PIN)
    assert "Push:" not in run(settings).stdout
    target = ("json://127.0.0.1:9/x", "--name", "phone", "--pin-file", str(pin))
    assert run(settings, "push", "add", *target).exit_code == 0
    locked = "Push: locked, so phone gets no message; `toolwright push unlock`"
    assert locked in run(settings).stdout.splitlines()
    assert ("push", "warning") in find_verdicts(settings)
    address = ControlAddress(plane.url, TOKEN, os.getpid())
    for until, is_locked in ((time.time() - 9, True), (time.time() + 900, False)):
        write_address(settings.control, replace(address, links_until=until))
        assert (locked in run(settings).stdout.splitlines()) is is_locked
        assert (("push", "ok") in find_verdicts(settings)) is not is_locked


def find_verdicts(settings: Settings) -> set[tuple[str, str]]:
    checks = json.loads(run(settings, "doctor", "--json").stdout)
    return {(check["name"], check["verdict"]) for check in checks}


@pytest.fixture
def person(tmp_path: Path) -> dict[str, str]:
    """Somebody's own directories."""
    return {"HOME": str(tmp_path / "person"), "XDG_CONFIG_HOME": str(tmp_path / "person/.config")}


def test_setup_names_the_clients_that_are_there_and_ends_with_three_commands(
    settings: Settings, component: LoadedComponent, person: dict[str, str]
) -> None:
    path = CLIENTS["cursor"].path(describe_machine(person))
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    given = {**person, "TOOLWRIGHT_CACHE": str(load_settings().cache)}
    told = run(settings, "setup", "--engine", "wasm", **given)
    assert told.exit_code == 0, told.output
    assert "toolwright setup --client cursor" in told.stdout
    assert "--client zed" not in told.stdout
    assert len(told.stdout.partition("Next:")[2].split("\n  toolwright")) == 4
    assert path.read_text() == "{}"


def test_uninstalling_takes_the_home_and_its_entries_and_nothing_of_others(
    settings: Settings, waiting: Approval, person: dict[str, str]
) -> None:
    path = CLIENTS["cursor"].path(describe_machine(person))
    path.parent.mkdir(parents=True)
    other = {"command": "theirs", "args": ["x"]}
    path.write_text(json.dumps({"mcpServers": {"other": other}}))
    assert run(settings, "setup", "--client", "cursor", **person).exit_code == 0
    assert "toolwright" in json.loads(path.read_text())["mcpServers"]
    told = run(settings, "uninstall", "--yes", **person)
    assert told.exit_code == 0, told.output
    assert json.loads(path.read_text())["mcpServers"] == {"other": other}
    assert not settings.home.exists()
    assert "Stays: the vault's key" in told.stdout


def test_nothing_is_removed_without_a_yes_from_a_foreign_directory_or_while_in_use(
    settings: Settings, store: Store, waiting: Approval, person: dict[str, str], tmp_path: Path
) -> None:
    assert run(settings, "uninstall", **person).exit_code == 1
    assert settings.home.exists()
    foreign = tmp_path / "documents"
    foreign.mkdir()
    (foreign / "letter").write_text("dear")
    told = run(settings, "uninstall", "--yes", **person, TOOLWRIGHT_HOME=str(foreign))
    assert (told.exit_code, "is no home of Toolwright" in told.stderr) == (1, True)
    assert (foreign / "letter").exists()
    parent, now = os.getppid(), time.time()
    used = Process("client", parent, read_start_time(parent), "serve", now, now)
    store.processes.register(used)
    told = run(settings, "uninstall", "--yes", **person)
    assert (told.exit_code, f"serve (process {parent})" in told.stderr) == (1, True)
    assert settings.home.exists()


def test_a_question_of_a_run_comes_with_its_answer_and_with_the_way_to_end_it() -> None:
    answer = """toolwright do --run j1 --answer '{"confirm": true}'"""
    found = choose_next_commands(HomeState(waiting=("j1",), answer=answer))
    assert found[:2] == (answer, "toolwright jobs j1 --cancel")
