"""A command at a pseudo-terminal of its own, as a person would type it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_shell(
    command: str, environment: Mapping[str, str], place: Path
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The shell that runs a command in a directory, and the terminal that it is at. The block is to
    wait for its end.
    """
    parent, child = pty.openpty()
    with subprocess.Popen(
        ["/bin/bash", "-c", command],
        stdin=child,
        stdout=child,
        stderr=child,
        env=dict(environment),
        cwd=place,
        start_new_session=True,
    ) as process:
        os.close(child)
        try:
            yield process, parent
        finally:
            os.close(parent)


def read_terminal(terminal: int, seconds: float) -> str:
    """What is shown next; "" at the end, and where nothing comes for so many seconds."""
    ready, _, _ = select.select([terminal], [], [], seconds)
    try:
        return os.read(terminal, 65_536).decode("utf-8", "replace") if ready else ""
    except OSError:
        # What Linux tells once nobody has the other end open.
        return ""
