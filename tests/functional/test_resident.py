"""The resident process of a home: started behind a command, answers the next ones, makes no call
twice, and ends with a freeze, a signal or its home.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from orchestrator.cli.resident.client import ENDED
from orchestrator.processes.liveness import is_alive
from orchestrator.processes.resident import find_resident, stop_resident
from tests.functional.home import Home, until
from tests.world.harbour import SLOW_SECONDS, HarbourApi, cut, slow_reports

SLOW = ("call", "harbour.occupancy_report", f"seconds={SLOW_SECONDS}")

FULL = Path("/dev/full")
PATIENT = "120"
"""Seconds that a command waits for it: a busy machine changes nothing."""


@pytest.fixture
def home(toolwright_home: Home, harbour: HarbourApi) -> Iterator[Home]:
    """The shared home, whose commands use a resident process for the time of the test."""
    on = {**toolwright_home.environment, "TOOLWRIGHT_RESIDENT": PATIENT}
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


def test_of_commands_at_once_one_starts_it_and_it_makes_calls_as_they_would(
    home: Home, harbour: HarbourApi, interruptible: None
) -> None:
    several = [
        subprocess.Popen(
            home.command("list"), env=home.environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    assert all("harbour" in each.communicate(timeout=home.seconds)[0] for each in several)
    process = start(home)
    assert list_kinds(home).count("resident") == 1
    reads, writes = len(harbour.received("GET")), len(harbour.received("DELETE"))
    assert home.read("call", "harbour.list_berths")["content"]
    assert len(harbour.received("GET")) == reads + 1
    with home.store() as store:
        alive = filter(is_alive, store.processes.find())
        (own,) = [each.id for each in alive if each.kind == "resident"]
        assert store.calls.find(limit=1)[0].process == own
    asked = home.run("call", "harbour.cancel_booking", "id=1")
    assert (asked.returncode, "waits for a person" in asked.stdout) == (3, True)
    assert len(harbour.received("DELETE")) == writes
    with begin_slow(home, harbour) as call:
        call.send_signal(signal.SIGINT)
        assert call.wait(home.seconds) == 130
    until(lambda: cut(harbour), "the API saw its connection closed")
    (running, *_) = home.run().stdout.splitlines()
    assert running.startswith("Running:")
    assert "resident" in running
    assert process.is_running()


def test_one_that_hangs_or_is_killed_has_no_call_made_twice(
    home: Home, harbour: HarbourApi
) -> None:
    process = start(home)
    reads = len(harbour.received("GET"))
    process.suspend()
    hasty = replace(home, environment={**home.environment, "TOOLWRIGHT_RESIDENT": "on"})
    assert hasty.read("call", "harbour.list_berths")["content"]
    assert len(harbour.received("GET")) == reads + 1
    process.resume()
    assert home.read("call", "harbour.list_berths")["content"]
    assert len(harbour.received("GET")) == reads + 2
    with begin_slow(home, harbour) as call:
        process.kill()
        _, told = call.communicate(timeout=home.seconds)
        assert (call.returncode, told.strip()) == (1, ENDED)
    assert len(harbour.received("GET")) == reads + 3


def test_a_freeze_cuts_its_calls_and_ends_it(home: Home, harbour: HarbourApi) -> None:
    start(home)
    with begin_slow(home, harbour) as call:
        killed = home.read("kill")
        # One that is too busy to acknowledge in time is killed; another file's `serve` may run too.
        assert killed["processes"] >= 1
        assert killed["acknowledged"] + killed["sigkilled"] == killed["processes"]
        assert call.wait(home.seconds) == 1
    until(lambda: find_resident(home.path) is None, "the resident process ends")
    until(lambda: cut(harbour), "the API saw its connection closed")
    assert home.containers() == 0
    home.person("unfreeze")


def test_an_answer_that_cannot_be_written_is_told_in_a_line(home: Home) -> None:
    start(home)
    with FULL.open("wb") as full:
        told = subprocess.run(
            home.command("list"),
            env=home.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert told.returncode == 1
    assert told.stderr == "The answer cannot be written: No space left on device.\n"


@pytest.mark.parametrize("resident", ["off", PATIENT])
def test_a_letter_that_the_terminal_has_no_bytes_for_is_shown_by_its_number(
    home: Home, resident: str
) -> None:
    start(home)
    ascii_only = {"PYTHONIOENCODING": "ascii", "TOOLWRIGHT_RESIDENT": resident}
    shown = subprocess.run(
        home.command("show", "harbour"),
        env={**home.environment, **ascii_only},
        capture_output=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert rb"\u25c2" in shown.stdout
