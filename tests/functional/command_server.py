"""Runs `toolwright` for tests, each process forked from one that has loaded the libraries already:
loading them takes most of the processor time of the suite's thousands of commands and servers.

What stands in `orchestrator.cli` is loaded by each process anew. Whoever wants a process connects
to the socket whose descriptor is the only word, and sends one message: JSON, with the descriptors
of the process's standard streams. The answers are the process's id and, once it has ended, its
status. A process is killed when whoever wanted it goes away, and all are killed at the end of the
server's input.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

PRELOADED = (
    "docker",
    "forge.authors.endpoint",
    "orchestrator.app",
    "orchestrator.frontends.http",
    "orchestrator.frontends.sdk_lines",
    "orchestrator.frontends.server",
    "orchestrator.frontends.single_server",
    "orchestrator.frontends.stdio",
    "orchestrator.tasks.task_graph",
    "rich.console",
    "rich.table",
    "sandbox.engines.wasm.engine",
)
MAX_MESSAGE = 1_000_000
REPORT = struct.Struct("i")
INPUT = 0


@dataclass
class ProcessServer:
    """Forks a process for each request and reports its end."""

    listener: socket.socket
    new: dict[int, socket.socket] = field(default_factory=dict)
    """Connections whose request has not come yet, by their descriptors."""
    wanted: dict[int, socket.socket] = field(default_factory=dict)
    """Those of the processes that run, by the processes' ids."""
    ends: dict[int, int] = field(default_factory=dict)
    """The ids of the processes, by the descriptors that are ready when they have ended."""

    def serve(self) -> dict[str, Any] | None:
        """Answer requests. Returns in each process that was forked, with the request for it, and in
        the first one with None, at the end of its input.
        """
        while True:
            ready = self._wait()
            if INPUT in ready:
                self._kill_all()
                return None
            for descriptor in ready & self.ends.keys():
                self._report_end(descriptor)
            for identity, connection in [*self.wanted.items()]:
                if connection.fileno() in ready:
                    del self.wanted[identity]
                    connection.close()
                    os.kill(identity, signal.SIGKILL)
            for descriptor in ready & self.new.keys():
                request = self._take_request(self.new.pop(descriptor))
                if request is not None:
                    return request
            if self.listener.fileno() in ready:
                connection, _ = self.listener.accept()
                self.new[connection.fileno()] = connection

    def _wait(self) -> set[int]:
        """The descriptors of which there is something to read."""
        poll = select.poll()
        wanted = [connection.fileno() for connection in self.wanted.values()]
        for descriptor in (INPUT, self.listener.fileno(), *self.new, *self.ends, *wanted):
            poll.register(descriptor, select.POLLIN)
        return {descriptor for descriptor, _ in poll.poll()}

    def _take_request(self, connection: socket.socket) -> dict[str, Any] | None:
        """Fork for a request. Returns it in the new process."""
        said, streams = _receive(connection)
        if not said:
            connection.close()
            return None
        identity = os.fork()
        if identity == 0:
            connection.close()
            self._close()
            _take_streams(streams)
            request: dict[str, Any] = json.loads(said)
            return request
        for descriptor in streams:
            os.close(descriptor)
        self.wanted[identity] = connection
        self.ends[os.pidfd_open(identity)] = identity
        _report(connection, identity)
        return None

    def _report_end(self, end: int) -> None:
        identity = self.ends.pop(end)
        os.close(end)
        _, status = os.waitpid(identity, 0)
        connection = self.wanted.pop(identity, None)
        if connection is not None:
            _report(connection, os.waitstatus_to_exitcode(status))
            connection.close()

    def _kill_all(self) -> None:
        for identity in self.ends.values():
            os.kill(identity, signal.SIGKILL)
        for identity in self.ends.values():
            os.waitpid(identity, 0)

    def _close(self) -> None:
        """Leave nothing of the server open, in a process that was forked from it."""
        for connection in (self.listener, *self.new.values(), *self.wanted.values()):
            connection.close()
        for end in self.ends:
            os.close(end)


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    descriptors = array.array("i")
    room = socket.CMSG_SPACE(3 * descriptors.itemsize)
    said, ancillary, _, _ = connection.recvmsg(MAX_MESSAGE, room)
    for _, kind, data in ancillary:
        if kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data)
    return said, list(descriptors)


def _report(connection: socket.socket, value: int) -> None:
    # Who has gone wants no report.
    with suppress(ConnectionError):
        connection.send(REPORT.pack(value))


def _take_streams(streams: list[int]) -> None:
    for standard, descriptor in enumerate(streams):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        first = getattr(sys, name)
        # With the encoding that the interpreter chose at its start.
        stream = open(
            first.fileno(),
            mode,
            1 if name == "stderr" else -1,
            encoding=first.encoding,
            errors=first.errors,
            closefd=False,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def run_process(request: dict[str, Any]) -> None:
    """What was requested, as `python -m orchestrator` runs it."""
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["directory"])
    if request["alone"]:
        os.setsid()
    # Children inherit what is ignored, and Python then leaves it so.
    ignored = request["deaf"]
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    sys.argv = ["toolwright", *request["words"]]
    importlib.import_module(request["module"]).main()


def main() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        request = ProcessServer(listener).serve()
    if request is not None:
        run_process(request)


if __name__ == "__main__":
    main()
