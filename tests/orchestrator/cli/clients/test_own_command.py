"""The command that a client's configuration starts Toolwright by."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.clients.own_command import find_own_command
from orchestrator.errors import OrchestratorError

UVX = Path("/home/me/.cache/uv/archive-v0/Oo8mEIJcq1xPS4nq")
PIPX = Path("/home/me/.local/share/pipx/.cache/43759c11fd3d981")
WHEEL = "file:///tmp/toolwright.whl"


def found(name: str) -> str:
    return f"/usr/bin/{name}"


def missing(name: str) -> None:
    return None


def test_what_is_installed_to_stay_is_started_where_it_lies(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    assert find_own_command(tmp_path, python) == (str(python), "-P", "-m", "orchestrator")
    python.parent.mkdir()
    python.with_name("toolwright").touch()
    assert find_own_command(tmp_path, python) == (str(tmp_path / "bin" / "toolwright"),)


@pytest.mark.parametrize(
    ("prefix", "origin", "command"),
    [
        (UVX, "", ("/usr/bin/uvx", "toolwright")),
        (UVX, WHEEL, ("/usr/bin/uvx", "--from", f"toolwright @ {WHEEL}", "toolwright")),
        (Path("/c/uv/environments-v2/x"), "", ("/usr/bin/uvx", "toolwright")),
        (PIPX, "", ("/usr/bin/pipx", "run", "toolwright")),
        (Path("/h/.cache/pipx/1"), WHEEL, ("/usr/bin/pipx", "run", "--spec", WHEEL, "toolwright")),
    ],
)
def test_what_lives_for_a_while_is_made_again_by_what_made_it(
    prefix: Path, origin: str, command: tuple[str, ...]
) -> None:
    assert find_own_command(prefix, prefix / "bin" / "python", origin, found) == command


@pytest.mark.parametrize(("prefix", "advice"), [(UVX, "uv tool install"), (PIPX, "pipx install")])
def test_a_passing_environment_that_nobody_can_make_again_is_not_written_down(
    prefix: Path, advice: str
) -> None:
    with pytest.raises(OrchestratorError, match=advice):
        find_own_command(prefix, prefix / "bin" / "python", "", missing)


def test_an_environment_that_pipx_installed_stays(tmp_path: Path) -> None:
    prefix = tmp_path / "pipx" / "venvs" / "toolwright"
    python = prefix / "bin" / "python"
    assert find_own_command(prefix, python, "", missing) == (
        str(python),
        "-P",
        "-m",
        "orchestrator",
    )
