"""The resident process of a home: started behind a command, answers the next ones, makes no call
twice, and ends with a freeze, a signal or its home.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest

from orchestrator.cli.resident.client import ENDED
from orchestrator.cli.resident.protocol import SOCKET
from orchestrator.processes.kill import is_alive
from orchestrator.processes.resident import find_resident, stop_resident
from tests.functional.home import Home, until
from tests.world.harbour import SLOW_SECONDS, HarbourApi, cut, slow_reports

SLOW = ("call", "harbour.occupancy_report", f"seconds={SLOW_SECONDS}")


@pytest.fixture
def home(toolwright_home: Home, harbour: HarbourApi) -> Iterator[Home]:
    """The shared home, whose commands use a resident process for the time of the test."""
    on = {**toolwright_home.environment, "TOOLWRIGHT_RESIDENT": "on"}
    yield replace(toolwright_home, environment=on)
    stop_resident(toolwright_home.path)
    assert find_resident(toolwright_home.path) is None


def start(home: Home) -> psutil.Process:
    """The resident process, once it makes calls."""
    assert home.run("list").returncode == 0
    until(lambda: "resident" in list_kinds(home), "the resident process makes calls")
    found = find_resident(home.path)
    assert found is not None
    return psutil.Process(found)


def list_kinds(home: Home) -> list[str]:
    with home.store() as store:
        return [each.kind for each in store.processes.find() if is_alive(each)]


def test_of_commands_at_once_one_starts_it_and_it_makes_the_next_call(
    home: Home, harbour: HarbourApi
) -> None:
    with home.store() as store:
        before = len(store.calls.find(limit=1000))
    several = [
        subprocess.Popen(
            home.command("list"), env=home.environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    assert all("harbour" in each.communicate(timeout=home.seconds)[0] for each in several)
    process = start(home)
    assert list_kinds(home).count("resident") == 1
    reads = len(harbour.received("GET"))
    assert home.read("call", "harbour.list_berths")["content"]
    assert len(harbour.received("GET")) == reads + 1
    with home.store() as store:
        (own,) = [each.id for each in store.processes.find() if each.kind == "resident"]
        latest = store.calls.find(limit=1)[0]
        assert (latest.process, len(store.calls.find(limit=1000))) == (own, before + 1)
    assert "Running: resident" in home.run().stdout
    assert process.is_running()


def test_a_write_waits_for_a_person_as_without_it(home: Home, harbour: HarbourApi) -> None:
    start(home)
    writes = len(harbour.received("DELETE"))
    asked = home.run("call", "harbour.cancel_booking", "id=1")
    assert (asked.returncode, "waits for a person" in asked.stdout) == (3, True)
    assert len(harbour.received("DELETE")) == writes


def test_a_freeze_ends_it_and_none_is_started_until_it_is_lifted(
    home: Home, harbour: HarbourApi
) -> None:
    process = start(home)
    with begin_slow(home, harbour) as call:
        killed = home.read("kill")
        assert killed["acknowledged"] + killed["sigkilled"] == killed["processes"] == 1
        assert call.wait(home.seconds) == 1
    process.wait(home.seconds)
    until(lambda: cut(harbour), "the API saw its connection closed")
    reads = len(harbour.received("GET"))
    refused = home.run("call", "harbour.list_berths")
    assert (refused.returncode, "frozen" in refused.stderr + refused.stdout) == (1, True)
    assert home.run("list").returncode == 0
    assert find_resident(home.path) is None
    assert len(harbour.received("GET")) == reads
    home.person("unfreeze")
    start(home)


def test_a_call_under_way_when_it_is_killed_is_told_and_not_made_again(
    home: Home, harbour: HarbourApi
) -> None:
    process = start(home)
    with begin_slow(home, harbour) as call:
        asked = slow_reports(harbour)
        process.kill()
        _, told = call.communicate(timeout=home.seconds)
        assert (call.returncode, told.strip()) == (1, ENDED)
    assert slow_reports(harbour) == asked


def test_one_that_hangs_leaves_commands_to_themselves(home: Home, harbour: HarbourApi) -> None:
    process = start(home)
    process.suspend()
    try:
        reads = len(harbour.received("GET"))
        assert home.read("call", "harbour.list_berths")["content"]
        assert len(harbour.received("GET")) == reads + 1
    finally:
        process.resume()
    assert find_resident(home.path) == process.pid
    assert home.read("call", "harbour.list_berths")["content"]
    assert len(harbour.received("GET")) == reads + 2


def test_an_interrupted_command_has_its_call_cut(
    home: Home, harbour: HarbourApi, interruptible: None
) -> None:
    start(home)
    with begin_slow(home, harbour) as call:
        call.send_signal(signal.SIGINT)
        assert call.wait(home.seconds) == 130
    until(lambda: cut(harbour), "the API saw its connection closed")
    assert home.run("list").returncode == 0


def begin_slow(home: Home, harbour: HarbourApi) -> subprocess.Popen[str]:
    """A command whose call has reached the API and is not answered for two minutes."""
    before = slow_reports(harbour)
    call = subprocess.Popen(
        home.command(*SLOW),
        env=home.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: slow_reports(harbour) == before + 1, "the call reached the API")
    return call


def test_it_ends_with_its_home_and_when_idle(home: Home) -> None:
    process = start(home)
    os.rename(home.path / SOCKET, home.path / "elsewhere")
    process.wait(home.seconds)
    (home.path / "elsewhere").unlink()
    assert find_resident(home.path) is None
    ended = home.run("resident", "--idle", "0")
    assert ended.returncode == 0
    assert find_resident(home.path) is None
