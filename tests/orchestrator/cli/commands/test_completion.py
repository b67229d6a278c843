"""A shell completes commands and options, and `--help` shows every command in one group."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import COMMANDS, GROUPS, toolwright
from orchestrator.settings import Settings
from registry.store import Store
from scripts.terminal import open_shell, read_terminal
from tests.registry.samples import REPORTS, approval, entry, tool

SECONDS = 120.0
"""For what takes a second on a quiet machine."""


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


def test_bash_completes_names_ids_and_keys_at_a_terminal(settings: Settings, store: Store) -> None:
    record = tool("add_record", access="write", parameters={"zone": "A zone."})
    store.servers.publish(entry("dns", 1, record), REPORTS, now=time.time())
    store.approvals.add_pending(replace(approval(), id="7c1e" * 8))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = {"PATH": path, "TOOLWRIGHT_HOME": str(settings.home), "TERM": "dumb", "PS1": "$ "}
    shell = "exec bash --norc --noprofile -i"
    with open_shell(shell, given, settings.home) as (process, terminal):

        def type_until(typed: str, wanted: str) -> None:
            os.write(terminal, typed.encode())
            shown = ""
            while wanted not in shown:
                part = read_terminal(terminal, SECONDS)
                assert part, f"{wanted!r} did not come: {shown!r}"
                shown += part

        # Quoted in pieces: the terminal echoes what is typed, and the line itself must not match.
        type_until('eval "$(toolwright completion bash)"; echo re""ady\n', "ready")
        type_until("toolwright approve 7c1\t", f"{'7c1e' * 8} ")
        type_until("\x15toolwright call dn\t", "dns.add_record ")
        type_until("zo\t", "zone=")
        type_until("\x15exit\n", "exit")
        process.wait(SECONDS)


def test_every_command_is_in_exactly_one_group_of_at_most_eight() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    assert max(map(len, GROUPS.values())) <= 8
    shown = CliRunner().invoke(toolwright, ["--help"]).output
    assert [line[:-1] for line in shown.splitlines() if line[:-1] in GROUPS] == list(GROUPS)
    assert all(f"  {name} " in shown for name in COMMANDS)
