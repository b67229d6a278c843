"""Commands of `toolwright`, run by a process that has loaded their libraries already."""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.functional.command_server import REPORT

ROOT = Path(__file__).parents[2]
PIECE = 65_536


class CommandServer:
    """A `command_server` of this process; it ends with it."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        command = [sys.executable, "-m", "tests.functional.command_server", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),)
            )

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with empty input. Raises TimeoutExpired once it was killed."""
        output, errors, report = os.pipe(), os.pipe(), os.pipe()
        told = {
            "words": list(words),
            "environment": dict(environment),
            "directory": os.getcwd(),
        }
        message = json.dumps(told).encode()
        with self._lock:
            socket.send_fds(self._requests, [message], [output[1], errors[1], report[1]])
        for _, written in (output, errors, report):
            os.close(written)
        read = {output[0]: b"", errors[0]: b"", report[0]: b""}
        try:
            _read_to_end(read, report[0], words, time.monotonic() + seconds, seconds)
        finally:
            for descriptor in read:
                os.close(descriptor)
        states = list(REPORT.iter_unpack(read[report[0]]))
        assert len(states) == 2, f"{words}: the command server ended"
        return subprocess.CompletedProcess(
            list(words), states[1][1], read[output[0]].decode(), read[errors[0]].decode()
        )

    def close(self) -> None:
        self._requests.close()
        self._process.wait()


def _read_to_end(
    read: dict[int, bytes], report: int, words: Sequence[str], end: float, seconds: float
) -> None:
    """Read all of these descriptors to their ends. Kills what takes longer, and raises."""
    with selectors.DefaultSelector() as selector:
        for descriptor in read:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, end - time.monotonic()))
            if not ready:
                if len(read[report]) >= REPORT.size:
                    identity, _ = REPORT.unpack(read[report][: REPORT.size])
                    with suppress(ProcessLookupError):
                        os.kill(identity, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(words), seconds)
            for key, _ in ready:
                piece = os.read(key.fd, PIECE)
                read[key.fd] += piece
                if not piece:
                    selector.unregister(key.fd)


@cache
def command_server() -> CommandServer:
    """The one of this process, started at the first need."""
    server = CommandServer()
    atexit.register(server.close)
    return server
