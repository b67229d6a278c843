"""Which process is the resident one, while another takes its place."""

from __future__ import annotations

import subprocess
import sys

from orchestrator.processes.resident import NAME, find_resident, hold_residence, stop_resident
from orchestrator.settings import Settings
from registry.database.files import try_lock_file


def test_a_process_that_only_has_the_number_of_an_earlier_one_is_not_ended(
    settings: Settings,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == b"up\n"
        # One that starts has the lock and has not said yet who it is: the file names the one that
        # had it before, whose number is another process's by now.
        with try_lock_file(settings.home / NAME) as held:
            assert held
            (settings.home / f".{NAME}.lock").write_text(str(stranger.pid))
            assert find_resident(settings.home) is None
            assert not stop_resident(settings.home)
        stranger.communicate(b"\n")
        assert stranger.returncode == 0


def test_who_holds_the_residence_is_found(settings: Settings) -> None:
    code = (
        "import pathlib, sys; from orchestrator.processes.resident import hold_residence\n"
        "with hold_residence(pathlib.Path(sys.argv[1])) as held: print(held, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(settings.home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        assert find_resident(settings.home) == holder.pid
        with hold_residence(settings.home) as held:
            assert not held
        holder.communicate(b"\n")
    assert find_resident(settings.home) is None
