"""Starting the control plane from several processes at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import Popen

from orchestrator.processes.control_client import find_control, read_address, spawn_command
from orchestrator.settings import Settings
from registry.store import Store
from tests.functional.home import SECONDS, until


@contextmanager
def control(settings: Settings) -> Iterator[Popen[bytes]]:
    with spawn_command(settings, "control", "--until-idle") as process:
        try:
            yield process
        finally:
            process.terminate()


def waits_for_lock(process: int) -> bool:
    """By proc(5): such a line begins with an arrow."""
    lines = Path("/proc/locks").read_text().splitlines()
    return any(line.split()[1] == "->" and line.split()[5] == str(process) for line in lines)


def find_listed(settings: Settings) -> int:
    address = read_address(settings.control)
    return address.pid if address else 0


def test_of_two_that_start_while_the_database_is_busy_the_second_ends(
    settings: Settings, store: Store
) -> None:
    database = settings.database
    assert database is not None
    with closing(sqlite3.connect(database, isolation_level=None)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        with control(settings) as first:
            until(lambda: find_listed(settings) == first.pid, "the first has an address")
            with control(settings) as second:
                until(
                    lambda: find_listed(settings) == second.pid or waits_for_lock(second.pid),
                    "the second has looked for the first",
                )
                busy.execute("ROLLBACK")
                assert find_listed(settings) == first.pid
                assert second.wait(SECONDS) == 0
            found = until(lambda: find_control(settings), "the first answers")
            assert found.pid == first.pid
