"""`python3 -m toolwright [DIRECTORY]`: serve MCP on stdin and stdout."""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys

from .bundle import load, read
from .errors import LoadError
from .pipe import Pipe
from .rehearsal import rehearse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from .bundle import Bundle
    from .calls import Transport

BUNDLE_DIRECTORY = "/bundle"
REHEARSALS = 10
"""Of a process that waits for its bundle, as long as it is asked nothing: after eight CPython 3.11
has specialised what they run.
"""
# Loaded by name, because ssl and http.client cost more to import than the rest takes to start.
STANDALONE = "toolwright.standalone"


def main(arguments: list[str]) -> int:
    """Serve until the end of input. 1 where the image's own bundle cannot be loaded."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    source, sink = _take_pipe()
    try:
        found = read(arguments[0] if arguments else BUNDLE_DIRECTORY)
        bundle = load(found) if found else None
    except LoadError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    for _ in range(REHEARSALS if bundle is None else 0):
        if select.select([source], [], [], 0)[0]:
            break
        rehearse()
    Pipe(source, sink, bundle, _standalone).run()
    return 0


def _take_pipe() -> tuple[BinaryIO, BinaryIO]:
    """The process's stdin and stdout, out of reach of a tool's `input()` and `print()`."""
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(null, 1)
    sys.stdout = sys.stderr
    return os.fdopen(source, "rb", 1 << 16), os.fdopen(sink, "wb", 1 << 16)


def _standalone(bundle: Bundle) -> Transport:
    transport: Transport = importlib.import_module(STANDALONE).StandaloneTransport(
        bundle, os.environ
    )
    return transport


def run() -> None:
    """Serve, and end the process with `main`'s status."""
    status = main(sys.argv[1:])
    sys.stderr.flush()
    # A call that still runs must not keep the process: threads of a tool's code know no end.
    os._exit(status)


if __name__ == "__main__":
    run()
