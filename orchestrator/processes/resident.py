"""The resident process of a home: whether there is one, its start and its end.

It holds a lock in the home for as long as it lives, and its process id stands in the lock's file.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from orchestrator.processes.control_client import spawn_command
from orchestrator.settings import Settings
from registry.database.files import try_lock_file
from registry.database.readonly import connect_readonly

NAME = "resident"
"""Its command, its log, its lock, and its kind among the home's processes."""
STOP_SECONDS = 10.0
POLL_SECONDS = 0.02
HOLD_SECONDS = 0.3
"""How long the lock is tried: whoever looks for a resident process holds it for a moment."""
WAIT_SECONDS = 0.1
_WORTH = """
SELECT EXISTS (SELECT 1 FROM entries) AND NOT EXISTS (SELECT 1 FROM freeze WHERE frozen)
"""


@contextmanager
def hold_residence(home: Path) -> Iterator[bool]:
    """Be the resident process of a home within the block; False where another one is."""
    end = time.monotonic() + HOLD_SECONDS
    while True:
        with try_lock_file(home / NAME) as held:
            if held:
                _find_lock(home).write_text(str(os.getpid()))
            if held or time.monotonic() > end:
                yield held
                return
        time.sleep(POLL_SECONDS)


def find_resident(home: Path) -> int | None:
    """The process id of the resident process, also of one that is starting; None without one, and
    where it is not known which process of this user and machine it is.
    """
    if not _find_lock(home).exists():
        return None
    with try_lock_file(home / NAME) as free:
        if free:
            return None
        text = _find_lock(home).read_text()
    # One that is just starting has the lock before it has written its number: until then the file
    # names an earlier one, and that number may be anybody's by now. So may be the number of one in
    # another container with this home.
    return int(text) if text.isdigit() and _has_opened(text, _find_lock(home)) else None


def start_resident(settings: Settings) -> subprocess.Popen[bytes] | None:
    """Start the resident process, detached; None where there is one, nothing it could answer, or a
    freeze. Of several that are started at once, all but one end by themselves.
    """
    if find_resident(settings.home) is not None or not _may_start(settings):
        return None
    return spawn_command(settings, NAME)


def stop_resident(home: Path) -> bool:
    """End the resident process and wait up to 10 s for its end; False where there is none."""
    process = find_resident(home)
    if process is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
    end = time.monotonic() + STOP_SECONDS
    while find_resident(home) == process and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    return True


def _find_lock(home: Path) -> Path:
    return home / f".{NAME}.lock"


def _has_opened(process: str, path: Path) -> bool:
    """Whether a process of this user has the file open, as proc(5) tells it; believed where there
    is none.
    """
    if not Path("/proc/self/fd").exists():
        return True
    wanted = path.stat()
    with suppress(OSError), os.scandir(f"/proc/{process}/fd") as found:
        for each in found:
            with suppress(OSError):
                if os.path.samestat(os.stat(each.path), wanted):
                    return True
    return False


def _may_start(settings: Settings) -> bool:
    """Whether there is something to answer: a database that can be read at once, with a server and
    without a freeze.
    """
    if settings.database is None:
        return False
    try:
        with closing(connect_readonly(settings.database, WAIT_SECONDS)) as connection:
            (found,) = connection.execute(_WORTH).fetchone()
    except sqlite3.Error:
        return False
    return bool(found)
