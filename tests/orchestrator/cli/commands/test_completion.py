"""A shell completes commands and options."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import COMMANDS, toolwright


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
