"""Starts a `toolwright` process by the command server whose socket's path is the first word, for
clients that start a command by themselves. It passes on its standard streams, its signals and the
process's status. It imports only what loads at once.
"""

import json
import os
import signal
import socket
import struct
import sys

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> int:
    path, *words = sys.argv[1:]
    request = {
        "module": "orchestrator.cli.entry",
        "words": words,
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "alone": False,
        "deaf": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    }
    # What comes before the process is there is passed on then.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
        # The process alone has its streams now: their other ends notice when it ends.
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        identity = receive(server)
        for number in PASSED_ON:
            signal.signal(number, lambda number, frame: pass_on(identity, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        status = receive(server)
    if status < 0:
        if -status in PASSED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def receive(server: socket.socket) -> int:
    (value,) = struct.unpack("i", server.recv(4))
    return int(value)


def pass_on(identity: int, number: int) -> None:
    try:
        os.kill(identity, number)
    except ProcessLookupError:
        # It has just ended, and its status is on its way.
        pass


sys.exit(main())
