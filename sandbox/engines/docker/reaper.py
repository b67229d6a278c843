"""A detached process that outlives its parent by seconds and kills what the parent left behind.

Run as `python -m sandbox.reaper PROCESS_LABEL`, with a pipe from its parent as stdin. End of file
means that the parent is gone: every container with the label is killed, again and again until the
engine has listed none for two seconds (a container may be in creation when its parent dies).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

QUIET_SECONDS = 2.0
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.1
FAREWELL = b"."


@contextmanager
def reaper(process: str) -> Iterator[None]:
    """Have the containers labelled with `process` killed however this process ends.

    A process that leaves the block has closed its containers itself and lets the reaper go.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "sandbox.reaper", process],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
    )
    assert child.stdin is not None
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(FAREWELL)
            child.stdin.close()
        child.wait()


def parent_left_in_order() -> bool:
    """Wait for the end of the parent: True where it said farewell, False where the pipe just ended.

    Nobody's Ctrl-C, hang-up or polite kill ends this process before.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return os.read(0, 1) == FAREWELL


def reap(process: str) -> None:
    """Kill by label until the engine lists nothing more, or does not answer for a minute."""
    # The engine's client is heavy, and a reaper waits its whole life: it is loaded only now.
    engine = importlib.import_module("sandbox.docker_engine")
    client = None
    quiet, give_up = time.monotonic(), time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() - quiet < QUIET_SECONDS and time.monotonic() < give_up:
        try:
            client = client or engine.connect()
            if engine.kill_containers(client, process=process):
                quiet = time.monotonic()
        except engine.EngineUnavailable:
            quiet = time.monotonic()
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__" and not parent_left_in_order():
    reap(sys.argv[1])
