"""A detached process that outlives its parent by seconds and kills what the parent left behind.

Run as `python -m sandbox.engines.docker.reaper PROCESS_LABEL`, with a pipe from its parent as
stdin. End of file means that the parent is gone: every container with the label is killed, again
and again until the engine has listed none for two seconds (a container may be in creation when its
parent dies).
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

from sandbox.modulepath import RUN_MODULE, join_module_path

QUIET_SECONDS = 2.0
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.1
FAREWELL = b"."


@contextmanager
def run_reaper(process: str) -> Iterator[None]:
    """Have the containers labelled with `process` killed however this process ends.

    A process that leaves the block has closed its containers itself and lets the reaper go.
    """
    child = subprocess.Popen(
        [*RUN_MODULE, "sandbox.engines.docker.reaper", process],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env={**os.environ, "PYTHONPATH": join_module_path()},
    )
    assert child.stdin is not None
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(FAREWELL)
            child.stdin.close()
        child.wait()


def wait_for_farewell() -> bool:
    """Wait for the parent's end: True if it wrote FAREWELL, False if the pipe just closed.

    SIGINT, SIGTERM and SIGHUP are ignored, so that this process outlives its parent.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return os.read(0, 1) == FAREWELL


def reap_containers(process: str) -> None:
    """Kill containers by label until none was listed for two seconds, for a minute at most."""
    # The engine's client is heavy, and a reaper waits its whole life: it is loaded only now.
    engine = importlib.import_module("sandbox.engines.docker.engine")
    client = None
    quiet, give_up = time.monotonic(), time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() - quiet < QUIET_SECONDS and time.monotonic() < give_up:
        try:
            client = client or engine.connect_engine()
            if engine.kill_containers(client, process=process):
                quiet = time.monotonic()
        except engine.EngineUnavailable:
            quiet = time.monotonic()
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__" and not wait_for_farewell():
    reap_containers(sys.argv[1])
