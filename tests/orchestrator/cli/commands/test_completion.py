"""A shell completes commands and options, and `--help` shows every command in one group."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import COMMANDS, GROUPS, toolwright


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    ran = CliRunner().invoke(toolwright, ["completion", shell])
    assert ran.exit_code == 0
    assert f"{shell}_complete" in ran.output


@pytest.mark.parametrize(
    ("words", "offered"), [("toolwright ", set(COMMANDS)), ("toolwright ki", {"kill"})]
)
def test_a_shell_is_offered_the_commands(words: str, offered: set[str]) -> None:
    environment = {
        "_TOOLWRIGHT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": "1",
    }
    program = "from orchestrator.cli.main import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True
    )
    found = {line.partition(",")[2] for line in ran.stdout.decode().splitlines()}
    assert found == offered


def test_every_command_is_in_exactly_one_group_of_at_most_eight() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    assert max(map(len, GROUPS.values())) <= 8
    shown = CliRunner().invoke(toolwright, ["--help"]).output
    assert [line[:-1] for line in shown.splitlines() if line[:-1] in GROUPS] == list(GROUPS)
    assert all(f"  {name} " in shown for name in COMMANDS)
