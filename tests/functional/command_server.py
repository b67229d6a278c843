"""Runs `toolwright` commands for tests, each in a process of its own that has loaded its libraries
already: loading them takes most of the processor time of the suite's thousands of commands.

What stands in `orchestrator.cli` is loaded by each command anew. A request is one message: JSON of
words, environment and directory, with the descriptors for standard output, standard error and the
report. The report is the process's id and then, where the process has ended, its status.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
from typing import Any

PRELOADED = (
    "docker",
    "forge.authors.endpoint",
    "orchestrator.app",
    "orchestrator.tasks.task_graph",
    "rich.console",
    "rich.table",
)
MAX_MESSAGE = 1_000_000
REPORT = struct.Struct("ii")


def receive_command(requests: socket.socket) -> dict[str, Any] | None:
    """Wait for requests and fork for each. Returns in the process that is to run a command, with
    that, and in the first one with None, when nobody can ask any more.
    """
    while True:
        said, descriptors = _receive(requests)
        if not said:
            return None
        if os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            continue
        # The process between the two waits for the command's end, whatever the command does.
        requests.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        output, errors, report = descriptors
        identity = os.fork()
        if identity:
            os.close(output)
            os.close(errors)
            os.write(report, REPORT.pack(identity, 0))
            _, status = os.waitpid(identity, 0)
            os.write(report, REPORT.pack(identity, os.waitstatus_to_exitcode(status)))
            os._exit(0)
        os.close(report)
        _take_descriptors(output, errors)
        command: dict[str, Any] = json.loads(said)
        return command


def _receive(requests: socket.socket) -> tuple[bytes, list[int]]:
    descriptors = array.array("i")
    room = socket.CMSG_SPACE(3 * descriptors.itemsize)
    said, ancillary, _, _ = requests.recvmsg(MAX_MESSAGE, room)
    for _, kind, data in ancillary:
        if kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data)
    return said, list(descriptors)


def _take_descriptors(output: int, errors: int) -> None:
    """Standard input is empty, the others lead to whoever asked."""
    for descriptor, standard in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (errors, 2)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def run_command(command: dict[str, Any]) -> None:
    """The command, as `python -m orchestrator` runs it."""
    os.environ.clear()
    os.environ.update(command["environment"])
    os.chdir(command["directory"])
    sys.argv = ["toolwright", *command["words"]]
    importlib.import_module("orchestrator.cli.entry").main()


def main() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    # Nobody waits for the processes between.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    command = receive_command(socket.socket(fileno=int(sys.argv[1])))
    if command is not None:
        run_command(command)


if __name__ == "__main__":
    main()
