"""`toolwright control`: one a home, and who has a port that is taken."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import toolwright
from orchestrator.control.process import write_address
from orchestrator.processes.control_client import ControlAddress, read_address
from orchestrator.settings import Settings
from tests.orchestrator.plane import TOKEN, Plane


def run(settings: Settings, *words: str) -> Result:
    given = {"TOOLWRIGHT_HOME": str(settings.home)}
    return CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)


def test_a_second_one_says_where_the_first_is_and_leaves_it_known(
    settings: Settings, plane: Plane
) -> None:
    first = ControlAddress(plane.url, TOKEN, os.getpid())
    write_address(settings.control, first)
    told = run(settings, "control", "--port", "0")
    assert told.exit_code == 1
    assert f"runs at {plane.url} (process {os.getpid()})" in told.stderr
    assert "toolwright control --stop" in told.stderr
    assert read_address(settings.control) == first
    assert "?login=" in run(settings, "control", "--url").stdout
    # One that is started by the way ends without a word.
    assert run(settings, "control", "--until-idle").output == ""


@pytest.mark.parametrize("words", [("control",), ("serve", "--http", "--no-control")])
def test_who_has_a_port_is_told_and_nothing_of_a_disk(
    settings: Settings, words: tuple[str, ...], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = run(settings, *words, "--port", str(port))
    assert told.exit_code == 1
    assert f"127.0.0.1:{port} cannot be listened on: taken by" in told.stderr
    assert f"process {os.getpid()}" in told.stderr
    assert "--port" in told.stderr
    assert "disk" not in told.stderr
    assert read_address(settings.control) is None
