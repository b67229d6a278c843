"""The memory of a process that people give their PIN to, read by others of the same user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.functional.home import PIN, SECONDS, new_home, until

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="about Linux, which alone has PR_SET_DUMPABLE"
)
READ = "import sys; open(f'/proc/{sys.argv[1]}/mem', 'rb').close()"


def as_somebody(*command: str) -> list[str]:
    """A command without the right to read every process's memory, which root has."""
    if os.geteuid() != 0:
        return list(command)
    setpriv = shutil.which("setpriv")
    assert setpriv, "setpriv comes with util-linux"
    return [setpriv, "--bounding-set", "-sys_ptrace", *command]


def is_readable(pid: int) -> bool:
    done = subprocess.run(
        as_somebody(sys.executable, "-c", READ, str(pid)), capture_output=True, check=False
    )
    assert done.returncode == 0 or b"PermissionError" in done.stderr, done.stderr
    return done.returncode == 0


@contextmanager
def running(*command: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(as_somebody(*command), stdout=subprocess.PIPE, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def test_nobody_reads_the_memory_of_the_process_that_takes_pins(tmp_path: Path) -> None:
    with new_home(tmp_path, "wasm") as home:
        command = home.command("control")
        with running(*command, env=home.environment) as process:
            until(lambda: home.control().pid == process.pid, "it is the control plane")
            assert home.post("/unfreeze", pin=PIN).status_code == 200
            assert not is_readable(process.pid)


def test_another_process_of_the_user_is_read() -> None:
    with running(sys.executable, "-c", "print(flush=True); input()", stdin=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert is_readable(process.pid)
