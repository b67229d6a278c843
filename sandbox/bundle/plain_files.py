"""Opening paths of the host without following a symbolic link, however late one is put there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.errors import PathRefused

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_plain_file(path: str, limit: int) -> bytes:
    """The whole content of a regular file that no symbolic link leads to. Raises PathRefused."""
    with open_plain_path(path, _FILE) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PathRefused(path, "it is no plain file")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read(limit + 1)
    if len(content) > limit:
        raise PathRefused(path, f"it is larger than {limit} bytes")
    return content


@contextmanager
def open_plain_path(path: str, flags: int) -> Iterator[int]:
    """A descriptor of the path, opened without following a link. Raises PathRefused."""
    current = os.open("/", DIRECTORY)
    try:
        names = path.strip("/").split("/")
        for position, name in enumerate(names):
            last = position == len(names) - 1
            following = os.open(name, flags if last else DIRECTORY, dir_fd=current)
            os.close(current)
            current = following
        yield current
    except OSError as error:
        raise PathRefused(path[:300], error.strerror or str(error)) from error
    finally:
        os.close(current)
