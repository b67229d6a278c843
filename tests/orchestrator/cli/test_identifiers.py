"""Ids and names at a terminal: whole in tables, a beginning is enough, and shells complete them."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from click import Context
from click.testing import CliRunner, Result

from orchestrator.cli.identifiers import StoredId, StoredName
from orchestrator.cli.main import toolwright
from orchestrator.settings import Settings
from registry.models import Approval, Job
from registry.store import Store
from tests.registry.samples import REPORTS, entry

ID, OTHER = "3f9a0c5512de8871", "3f9a77aa00112233"


def run(settings: Settings, *words: str) -> Result:
    given = {"TOOLWRIGHT_HOME": str(settings.home), "COLUMNS": "80"}
    return CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)


@pytest.fixture
def approvals(store: Store, waiting: Approval) -> Approval:
    """Two more that wait, whose ids begin alike, beside texts that fill any line."""
    for identity in (ID, OTHER):
        store.approvals.add_pending(replace(waiting, id=identity, reason="a reason " * 20))
    return waiting


def test_no_id_is_broken_over_lines_in_eighty_columns(
    settings: Settings, store: Store, approvals: Approval
) -> None:
    store.jobs.create(Job("7c1e" * 8, "forge", {"task": "x " * 100}, created=1.0, updated=1.0))
    assert ID in run(settings, "approvals").stdout.split()
    assert "7c1e" * 8 in run(settings, "jobs").stdout.split()


def test_the_beginning_of_an_id_is_enough_and_of_two_none_is_taken(
    settings: Settings, store: Store, approvals: Approval
) -> None:
    store.processes.freeze(time.time(), "test", "")
    told = run(settings, "reject", "3f9a", "--pin-file", "-")
    assert (told.exit_code, ID in told.stderr, OTHER in told.stderr) == (1, True, True)
    assert "Give more of it" in run(settings, "reject", "3f9").stderr
    assert "there is no approval" in run(settings, "reject", "").stderr
    assert {each.state for each in store.approvals.find()} == {"pending"}
    given = {"TOOLWRIGHT_HOME": str(settings.home)}
    words = ["reject", "3f9a0…", "--pin-file", "-"]
    CliRunner().invoke(toolwright, words, env=given, input="correct horse\n")
    assert store.approvals.get(ID).state == "rejected"
    assert store.approvals.get(OTHER).state == "pending"


def test_a_shell_is_offered_what_is_stored(
    settings: Settings, approvals: Approval, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWRIGHT_HOME", str(settings.home))
    command = toolwright.get_command(Context(toolwright), "show")  # type: ignore[attr-defined]
    context = Context(command)

    def offered(kind: StoredId | StoredName, begun: str) -> set[str]:
        found = kind.shell_complete(context, command.params[0], begun)
        return {str(each.value) for each in found}

    assert offered(StoredId("approval"), "3f9a0") == {ID}
    assert offered(StoredName("server"), "d") == {"dns"}
    assert "dns.create_zone" in offered(StoredName("tool"), "dns.c")
    assert offered(StoredName("server"), "'; DROP TABLE entries; --") == set()


@pytest.mark.parametrize("words", [("show", "dnss"), ("versions", "dsn"), ("logs", "dnz")])
def test_a_name_that_is_nearly_one_is_told(
    settings: Settings, waiting: Approval, words: tuple[str, ...]
) -> None:
    told = run(settings, *words)
    assert (told.exit_code, "Did you mean dns?" in told.stderr) == (1, True)


@pytest.mark.parametrize(
    ("tool", "listing"),
    [("dns.nothing_like_it", "toolwright show dns"), ("nobody.list", "toolwright list")],
)
def test_a_tool_that_is_none_is_told_with_the_command_that_lists_what_there_is(
    settings: Settings, waiting: Approval, tool: str, listing: str
) -> None:
    told = run(settings, "call", tool)
    assert told.exit_code == 1
    assert f"`{listing}` shows all" in " ".join(told.stderr.split())


def test_a_mistyped_tool_is_taken_for_one_of_its_own_server(
    settings: Settings, store: Store, waiting: Approval
) -> None:
    (known,) = store.servers.get("dns").tools[:1]
    near = f"dns.{known.name[:-1]}"
    store.servers.publish(entry("dnx", 1, known), REPORTS, now=time.time())
    told = " ".join(run(settings, "call", near).stderr.split())
    assert f"Did you mean dns.{known.name} " in told
    assert "dnx." not in told
