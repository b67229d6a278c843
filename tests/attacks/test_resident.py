"""The resident process answers its own user alone, and nothing that takes a person to decide."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

import pytest

from orchestrator.cli.resident.client import ask_resident
from orchestrator.cli.resident.protocol import (
    GREETING,
    SOCKET,
    Request,
    Terminal,
    check_peer,
    describe_caller,
    write_frame,
    write_request,
)
from orchestrator.cli.resident.server import MAX_AT_ONCE, open_listener
from orchestrator.settings import Settings
from registry.models import Approval
from registry.store import Store
from tests.functional.home import until
from tests.orchestrator.cli.resident.running import connect, read_frame, run_server

TERMINAL = Terminal(80, False, False, "utf-8", "utf-8", {})


@pytest.fixture
def home(settings: Settings, waiting: Approval, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home with a server and a request that waits for a person."""
    monkeypatch.setenv("TOOLWRIGHT_HOME", str(settings.home))
    return settings


def ask(*words: str) -> int | None:
    return ask_resident(words, os.environ, os.getuid())


def request(*words: str) -> bytes:
    return write_request(Request(words, describe_caller(os.environ), TERMINAL))


def test_its_own_user_is_answered(home: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    with run_server(home.home):
        assert ask("list") == 0
    assert "dns" in capsys.readouterr().out


def test_another_user_is_not_even_greeted(
    home: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    with run_server(home.home, answers=os.getuid() + 1):
        with connect(home.home) as connection:
            # The connection may be closed before the request is sent.
            with suppress(BrokenPipeError):
                connection.sendall(request("list"))
            assert read_frame(connection) is None
        assert ask("list") is None
    assert capsys.readouterr() == ("", "")


def test_what_another_user_serves_is_not_asked() -> None:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        check_peer(mine, os.getuid())
        with pytest.raises(PermissionError):
            check_peer(mine, os.getuid() + 1)


def test_only_the_user_can_open_the_socket(home: Settings) -> None:
    with run_server(home.home):
        assert (home.home / SOCKET).stat().st_mode & 0o777 == 0o600


def test_a_home_where_others_may_write_has_none(home: Settings) -> None:
    with run_server(home.home):
        home.home.chmod(0o777)
        assert ask("list") is None
    with pytest.raises(PermissionError), open_listener(home.home, os.getuid()):
        pass
    assert not (home.home / SOCKET).exists()


DECIDING = [
    ("approve", "a1", "--pin-file", "/dev/null"),
    ("reject", "a1"),
    ("unfreeze",),
    ("rules", "revoke", "r1"),
    ("grant", "dns", "requests:5"),
    ("secret", "list"),
    ("classify", "dns.list_zones", "read"),
    ("call", "dns.add", "zone=@/etc/passwd"),
    ("call", "dns.add", "--save", "/tmp/x"),
    ("call", "dns.list_zones", "--account", "another"),
    ("logs", "--mark-wrong", "--call", "c1"),
    ("resident", "--idle", "1e9"),
    ("kill",),
]


@pytest.mark.parametrize("words", DECIDING, ids=" ".join)
def test_what_takes_a_person_is_declined_and_nothing_of_it_is_done(
    home: Settings, store: Store, waiting: Approval, words: tuple[str, ...]
) -> None:
    rows = len(store.audit.find(1000))
    with run_server(home.home), connect(home.home) as connection:
        assert read_frame(connection) == GREETING
        connection.sendall(request(*words))
        assert read_frame(connection) == {"declined": True}
        assert read_frame(connection) is None
    assert store.approvals.get(waiting.id).state == "pending"
    assert len(store.audit.find(1000)) == rows
    assert not store.processes.get_freeze().frozen


MALFORMED = {
    "a length of four gigabytes": struct.pack("!I", 0xFFFFFFFF) + b"x",
    "no JSON": struct.pack("!I", 4) + b"\xff\xfe\x00\x01",
    "deep JSON": struct.pack("!I", 200_000) + b"[" * 200_000,
    "another object": write_frame({"words": "list", "caller": [], "terminal": None}),
    "an end in the middle": request("list")[:20],
    "nothing": b"",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_request_ends_its_connection_alone(home: Settings, name: str) -> None:
    with run_server(home.home) as ended:
        with connect(home.home) as connection:
            assert read_frame(connection) == GREETING
            connection.sendall(MALFORMED[name])
            connection.shutdown(socket.SHUT_WR)
            assert read_frame(connection) is None
        assert ask("list") == 0
        assert not ended.is_set()


def test_silent_connections_leave_commands_to_themselves_and_hold_up_nothing(
    home: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    with run_server(home.home):
        silent = [socket.socket(socket.AF_UNIX) for _ in range(MAX_AT_ONCE)]
        for each in silent:
            each.connect(str(home.home / SOCKET))
            assert read_frame(each) == GREETING
        assert ask("list") is None
        assert capsys.readouterr() == ("", "")
        for each in silent:
            each.close()
        assert until(lambda: ask("list") == 0, "commands are answered again")
    assert "dns" in capsys.readouterr().out
