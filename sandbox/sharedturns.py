"""Whose turn is next, shared by the processes of one home.

Each server and origin has an empty file, whose modification time is when the next request may
leave. Whoever writes there by hand makes one call wait, as long as any may.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: two processes may take the same turn.
    fcntl = None  # type: ignore[assignment]

MAX_FILES = 256
TRIES = 100
_NANO = 1_000_000_000


@dataclass(frozen=True)
class SharedTurns:
    """The turns in a directory. What cannot be read or written is passed over: it paces and lets
    nothing through that would be held otherwise.
    """

    directory: Path

    def take(self, name: str, step: float, wall: float, ahead: float, patience: float) -> float:
        """Seconds from `wall` (seconds since 1970) to the next turn, at least `ahead`; it is taken,
        and the one after it comes `step` later, unless that is more than `patience` seconds.
        """
        path = self.directory / hashlib.sha256(name.encode()).hexdigest()[:32]
        with suppress(OSError):
            with self._held(path, wall) as descriptor:
                stored = os.fstat(descriptor).st_mtime_ns / _NANO - wall
                # Nobody takes a turn that is further away: the clock was set back, or it is no
                # turn at all.
                ahead = max(ahead, stored if stored <= patience + step else 0.0)
                if ahead <= patience:
                    os.utime(path, ns=(int(wall * _NANO), int((wall + ahead + step) * _NANO)))
        return ahead

    @contextmanager
    def _held(self, path: Path, wall: float) -> Iterator[int]:
        """The file, locked but where another process keeps it."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            self._prune(wall)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.utime(path, (wall, 0))
        flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags)
        try:
            _lock(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _prune(self, wall: float) -> None:
        """Past a number of files those go whose turn is over."""
        found = [*self.directory.iterdir()]
        for path in found if len(found) >= MAX_FILES else ():
            with suppress(OSError):
                if path.lstat().st_mtime < wall:
                    path.unlink()


def _lock(descriptor: int) -> None:
    """Lock a file unless another process, stopped in the middle of it, keeps it: waiting for that
    would hold up all that this one does.
    """
    for _ in range(TRIES if fcntl is not None else 0):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
