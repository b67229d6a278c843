"""What the resident process answers is what the command would print by itself."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from orchestrator.calling import open_caller
from orchestrator.calls import Call
from orchestrator.cli.commands.call import MadeCall
from orchestrator.cli.main import COMMANDS, CommandGroup, toolwright
from orchestrator.cli.resident.client import ask_resident
from orchestrator.cli.resident.code_state import CodeState
from orchestrator.cli.resident.commands import run_command
from orchestrator.cli.resident.protocol import (
    ANSWERED,
    BELOW,
    SOCKET,
    FrameInvalid,
    Request,
    Terminal,
    describe_caller,
    is_answerable,
    read_request,
    write_frame,
    write_request,
)
from orchestrator.cli.resident.server import CommandServer, open_listener, wait_for_end
from orchestrator.processes.resident import NAME, find_resident, start_resident
from orchestrator.settings import Settings
from registry.models import Approval
from registry.store import Store
from tests.functional.home import until
from tests.orchestrator.cli.resident.running import SECONDS, run_server
from tests.registry.samples import REPORTS, approval, entry

LOOKS = [
    "list",
    "list --json",
    "find zones",
    "find zones -k 1 --json",
    "show dns",
    "show dns --json",
    "show dns.list_zones",
    "versions dns",
    "logs -n 3",
    "logs --audit --json",
    "approvals",
    "jobs",
    "jobs --json",
    "jobs --cost",
    "rules",
    "rules --all list --json",
    "source list",
    "source list --json",
    "",
    "--json",
]
MISTAKES = ["show", "show dnss", "find zones -k 99", "logs --call zzzzzz", "versions a b"]


@pytest.fixture
def waiting(store: Store) -> Approval:
    """A waiting request whose age is told in the same words for half an hour."""
    now = time.time()
    store.servers.publish(entry(), REPORTS, now=now)
    store.approvals.add_pending(replace(approval(), created=now - 5400, expires=now + 3600))
    return store.approvals.get(approval().id)


@pytest.fixture
def answering(
    settings: Settings, waiting: Approval, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """A home with a server and a waiting request, whose resident process answers."""
    monkeypatch.setenv("TOOLWRIGHT_HOME", str(settings.home))
    monkeypatch.setenv("COLUMNS", "100")
    with run_server(settings.home):
        yield settings


def ask(words: str, **environment: str) -> int | None:
    return ask_resident(words.split(), {**os.environ, **environment}, os.getuid())


@pytest.mark.parametrize("words", [*LOOKS, *MISTAKES])
def test_it_is_what_the_command_prints_and_leaves_with(
    answering: Settings, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    status = ask(words)
    answered = capsys.readouterr()
    alone = CliRunner().invoke(toolwright, words.split(), prog_name="toolwright")
    assert (status, answered.err) == (alone.exit_code, alone.stderr)
    assert answered.out == alone.stdout
    assert answered.out or answered.err


@pytest.mark.parametrize(
    "changed",
    [{"TOOLWRIGHT_ROUTE_ACT": "0.9"}, {"OPENAI_MODEL": "other"}, {"https_proxy": "http://p"}],
)
def test_another_environment_is_not_answered(
    answering: Settings, capsys: pytest.CaptureFixture[str], changed: dict[str, str]
) -> None:
    assert ask("list", **changed) is None
    assert capsys.readouterr() == ("", "")
    assert ask("list", TERM="other", SSH_TTY="/dev/pts/9") == 0


def test_a_call_is_left_to_the_command_until_there_is_what_makes_calls(
    answering: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("call dns.list_zones") is None
    assert capsys.readouterr() == ("", "")


def test_without_a_resident_process_the_command_is_left_to_itself(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("list", TOOLWRIGHT_HOME=str(settings.home)) is None
    with run_server(settings.home):
        pass
    assert ask("list", TOOLWRIGHT_HOME=str(settings.home / "nothere")) is None
    assert capsys.readouterr() == ("", "")


def test_a_long_home_has_its_socket_too(
    settings: Settings, waiting: Approval, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = settings.home.with_name("h" * 200)
    settings.home.rename(long)
    monkeypatch.setenv("TOOLWRIGHT_HOME", str(long))
    with run_server(long):
        assert ask("list") == 0


@pytest.mark.parametrize(
    "words",
    [
        ["approve", "a1"],
        ["secret", "set", "x"],
        ["unfreeze"],
        ["call", "dns.add", "file=@/etc/passwd"],
        ["call", "dns.add", "file:=@/etc/passwd"],
        ["call", "dns.add", "--save", "/tmp/x"],
        ["call", "dns.add", "-"],
        ["call", "dns.add", "--engine=wasm"],
        ["call", "dns.list_zones", "--account", "work"],
        ["logs", "--call", "c1", "--mark-wrong"],
        ["list", "--help"],
        ["rules", "revoke", "r1"],
        ["rules", "--json", "revoke", "r1"],
        ["source", "add", "https://x.test"],
        ["source", "remove", "x.test:443"],
        ["source"],
        ["jobs", "j1", "--cancel"],
        ["jobs", "j1", "--resume"],
        ["jobs", "j1", "--allow"],
        ["jobs", "j1", "--experimental"],
        ["accounts", "dns"],
        ["doctor"],
        ["--version"],
        ["resident"],
    ],
)
def test_what_decides_changes_or_names_files_is_left_to_the_command(words: list[str]) -> None:
    assert not is_answerable(words)


def test_every_option_that_is_answered_is_one_that_only_looks() -> None:
    group = toolwright
    assert isinstance(group, CommandGroup)
    for name, options in ANSWERED.items():
        command = group.get_command(click.Context(group), name) if name else group
        assert command is not None
        params = list(command.params)
        if isinstance(command, click.Group) and name:
            below = (command.get_command(click.Context(command), each) for each in BELOW[name])
            params += [param for each in below if each for param in each.params]
        known = {text: each for each in params for text in each.opts}
        taken = [known[option] for option in options]
        taken += [each for each in params if isinstance(each, click.Argument)]
        assert not any(isinstance(each.type, click.Path | click.File) for each in taken), name
        assert not any(getattr(each, "prompt", None) for each in taken), name
        assert name in COMMANDS or not name


def test_it_is_as_wide_and_as_coloured_as_the_terminal_of_who_asks(answering: Settings) -> None:
    def render(columns: int, is_terminal: bool, **variables: str) -> str:
        terminal = Terminal(columns, is_terminal, is_terminal, "utf-8", "utf-8", variables)
        request = Request(("show", "dnss"), describe_caller(os.environ), terminal)
        shown = Request(("list",), describe_caller(os.environ), terminal)
        return "".join(
            text for each in (request, shown) for _, text in run_command(each, _refuse).parts
        )

    assert "\x1b[31m" in render(40, True, TERM="xterm-256color")
    assert "\x1b[31m" not in render(40, True, TERM="xterm-256color", NO_COLOR="1")
    assert "\x1b" not in render(40, False, TERM="xterm-256color")
    assert len(render(40, True).splitlines()) > len(render(200, True).splitlines())
    assert render(40, False) == render(200, False)


def _refuse(call: Call) -> MadeCall:
    raise AssertionError("nothing is called")


def test_a_changed_added_or_removed_file_of_the_code_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "registry"
    place.mkdir()
    (place / "a.py").write_text("a = 1\n")
    for change in (
        lambda: (place / "a.py").write_text("a = 22\n"),
        lambda: (place / "b.py").write_text(""),
        lambda: (place / "a.py").unlink(),
    ):
        state = CodeState(str(tmp_path), seconds=0.0)
        assert state.is_current()
        change()
        assert not state.is_current()


def test_one_with_other_code_than_on_disk_declines_and_ends(
    settings: Settings, waiting: Approval, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLWRIGHT_HOME", str(settings.home))
    (tmp_path / "sandbox").mkdir()
    code = CodeState(str(tmp_path), seconds=0.0)
    with run_server(settings.home, code=code) as ended:
        assert ask("list") == 0
        (tmp_path / "sandbox" / "new.py").write_text("")
        assert ask("list") is None
        assert ended.is_set()


def test_it_ends_when_idle_and_with_its_socket(settings: Settings) -> None:
    async def wait(idle: float, *, gone: bool) -> None:
        server = CommandServer(os.getuid(), CodeState(str(settings.home)), lambda: None)
        waiting = asyncio.create_task(wait_for_end(settings.home, server, idle, asyncio.Event()))
        await asyncio.sleep(0)
        if gone:
            (settings.home / SOCKET).rename(settings.home / "moved")
        await asyncio.wait_for(waiting, SECONDS)

    with open_listener(settings.home, os.getuid()):
        asyncio.run(wait(0.0, gone=False))
        assert (settings.home / SOCKET).exists()
        asyncio.run(wait(math.inf, gone=True))


def test_a_call_that_comes_as_it_ends_is_left_to_the_command(
    settings: Settings,
    waiting: Approval,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TOOLWRIGHT_HOME", str(settings.home))

    async def run() -> int | None:
        server = CommandServer(os.getuid(), CodeState(str(settings.home)), lambda: None)

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # It was idle for long enough when this connection was accepted and not yet looked at.
            await server.finish()
            await server.answer(reader, writer)

        with open_listener(settings.home, os.getuid()) as listener:
            async with (
                open_caller(replace(settings, engine="wasm", spares=0), NAME) as server.caller,
                await asyncio.start_unix_server(answer, sock=listener),
            ):
                return await asyncio.to_thread(ask, "call dns.list_zones")

    assert asyncio.run(run()) is None
    assert capsys.readouterr().out == ""


def test_uninstalling_ends_the_resident_process_of_the_home(
    settings: Settings, waiting: Approval, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWRIGHT_HOME", str(settings.home))
    monkeypatch.setenv("TOOLWRIGHT_ENGINE", "wasm")
    process = start_resident(settings)
    assert process is not None
    until(lambda: ask("list") == 0, "the resident process answers")
    assert find_resident(settings.home) == process.pid
    assert start_resident(settings) is None
    removed = CliRunner().invoke(toolwright, ["uninstall", "--yes"])
    assert removed.exit_code == 0, removed.output
    assert process.wait(SECONDS) == 0
    assert not settings.home.exists()


def test_none_is_started_without_a_server_or_while_frozen(settings: Settings, store: Store) -> None:
    assert start_resident(settings) is None
    store.servers.publish(entry(), REPORTS, now=1.0)
    store.processes.freeze(1.0, "test")
    assert start_resident(settings) is None
    assert find_resident(settings.home) is None


def test_a_request_comes_as_it_was_sent() -> None:
    terminal = Terminal(80, True, False, "utf-8", "ascii", {"TERM": "x"})
    request = Request(("find", "caf\udcc3\x00 日本"), describe_caller(os.environ), terminal)
    assert read_request(write_request(request)[4:]) == request


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"words": ["list"], "caller": 1, "terminal": 2}',
        b"[" * 100_000,
        write_frame({"words": [1], "caller": {}, "terminal": {}})[4:],
    ],
)
def test_what_is_no_request_is_refused(content: bytes) -> None:
    with pytest.raises(FrameInvalid):
        read_request(content)
