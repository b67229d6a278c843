"""Processes of `toolwright` for tests, forked by one that has loaded the libraries already."""

from __future__ import annotations

import atexit
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO

from tests.functional.command_server import REPORT

ROOT = Path(__file__).parents[2]
LAUNCHER = Path(__file__).with_name("launcher.py")
COMMAND = "orchestrator.cli.entry"
"""The module whose `main` is `toolwright`."""
PIECE = 65_536
"""What a pipe holds, and so what can be written before anybody reads."""
BACKLOG = 100
START_SECONDS = 600.0
"""How long a process may take to be there: only against hanging."""


class ForkedProcess:
    """A process of the command server, with what tests use of `subprocess.Popen`. A stream is PIPE,
    DEVNULL or a descriptor; where nothing is said, it is this process's own.
    """

    def __init__(
        self,
        path: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        start_new_session: bool = False,
        module: str = COMMAND,
    ) -> None:
        self.args = list(words)
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self.returncode: int | None = None
        self._lock = threading.Lock()
        request = {
            "module": module,
            "words": self.args,
            "environment": dict(environment),
            "directory": os.getcwd(),
            "alone": start_new_session,
            "deaf": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        }
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ExitStack() as failed, ExitStack() as theirs:
            failed.callback(self._close)
            self._connection.settimeout(START_SECONDS)
            self._connection.connect(path)
            given = [
                number if stream is None else self._open(theirs, number, stream)
                for number, stream in enumerate((stdin, stdout, stderr))
            ]
            socket.send_fds(self._connection, [json.dumps(request).encode()], given)
            self.pid = self._receive()
            failed.pop_all()

    def _open(self, theirs: ExitStack, number: int, stream: int) -> int:
        """The descriptor that the process gets as this one."""
        if stream == subprocess.DEVNULL:
            opened = os.open(os.devnull, os.O_RDWR)
        elif stream == subprocess.PIPE:
            reading, writing = os.pipe()
            if number == 0:
                opened, self.stdin = reading, open(writing, "wb")
            elif number == 1:
                opened, self.stdout = writing, open(reading, "rb")
            else:
                opened, self.stderr = writing, open(reading, "rb")
        else:
            return stream
        theirs.callback(os.close, opened)
        return opened

    def _receive(self) -> int:
        said = self._connection.recv(REPORT.size)
        assert said, f"{self.args}: the command server ended"
        (value,) = REPORT.unpack(said)
        return int(value)

    def _close(self) -> None:
        self._connection.close()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> ForkedProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Read and write no more, and wait for its end; after an error kill it."""
        if kind is not None:
            self.kill()
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                stream.close()
        self.wait()

    def poll(self) -> int | None:
        """Its status, or None while it runs, also while another thread waits for it."""
        if self.returncode is None and self._lock.acquire(blocking=False):
            try:
                self._look(0.0)
            finally:
                self._lock.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its status. Raises TimeoutExpired where there is none in time."""
        with self._lock:
            self._look(timeout)
        if self.returncode is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def _look(self, timeout: float | None) -> None:
        if self.returncode is not None:
            return
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        if poll.poll(None if timeout is None else max(0.0, 1000 * timeout)):
            self.returncode = self._receive()
            self._connection.close()

    def send_signal(self, number: int) -> None:
        """Send it unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def read_to_end(self, seconds: float) -> tuple[bytes, bytes]:
        """All that it writes to the pipes of its output and its errors. It is killed, and
        TimeoutExpired raised, where it has not ended by then.
        """
        end = time.monotonic() + seconds
        read = {stream: b"" for stream in (self.stdout, self.stderr) if stream is not None}
        with selectors.DefaultSelector() as selector:
            for stream in read:
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0.0, end - time.monotonic()))
                if not ready:
                    self.kill()
                    raise subprocess.TimeoutExpired(self.args, seconds)
                for key, _ in ready:
                    piece = os.read(key.fd, PIECE)
                    read[key.fileobj] += piece  # type: ignore[index]
                    if not piece:
                        selector.unregister(key.fileobj)
        try:
            self.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        output, errors = (
            b"" if stream is None else read[stream] for stream in (self.stdout, self.stderr)
        )
        return output, errors


class CommandServer:
    """A `command_server` of this process; it ends with it."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.path = f"{self._directory.name}/s"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.path)
            listener.listen(BACKLOG)
            name = str(listener.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.functional.command_server", name],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                pass_fds=(listener.fileno(),),
            )

    def start(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        start_new_session: bool = False,
        module: str = COMMAND,
    ) -> ForkedProcess:
        return ForkedProcess(
            self.path, words, environment, stdin, stdout, stderr, start_new_session, module
        )

    def run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        seconds: float,
        said: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with so much for its input, which has to go into a pipe. Raises
        TimeoutExpired once it was killed.
        """
        pipe = subprocess.PIPE
        given = pipe if said else subprocess.DEVNULL
        with self.start(words, environment, given, pipe, pipe) as process:
            if process.stdin is not None:
                assert len(said) < PIECE
                process.stdin.write(said.encode())
                process.stdin.close()
            output, errors = process.read_to_end(seconds)
        return subprocess.CompletedProcess(
            list(words), process.wait(), output.decode(), errors.decode()
        )

    def launch(self, *words: str) -> list[str]:
        """A command that starts that process, for clients that start a server by themselves."""
        return [sys.executable, "-I", "-S", str(LAUNCHER), self.path, *words]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._directory.cleanup()


@cache
def command_server() -> CommandServer:
    """The one of this process, started at the first need."""
    server = CommandServer()
    atexit.register(server.close)
    return server
