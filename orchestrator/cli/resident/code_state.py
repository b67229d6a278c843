"""A check that the code on disk is still the one that a process was started with."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

FOLDERS = ("forge", "orchestrator", "registry", "sandbox")
PERIOD_SECONDS = 1.0


class CodeState:
    """The files of our packages below a directory, as they were when this was made; looked at
    again after so many seconds at the earliest.
    """

    def __init__(self, directory: str, seconds: float = PERIOD_SECONDS) -> None:
        self._directory, self._seconds = directory, seconds
        self._state = self._read_state()
        self._looked = time.monotonic()

    def is_current(self) -> bool:
        """Whether none was changed, added or removed when it was looked at."""
        now = time.monotonic()
        if now - self._looked >= self._seconds:
            self._looked = now
            return self._read_state() == self._state
        return True

    def _read_state(self) -> tuple[int, int, int]:
        """How many files there are, their bytes, and the sum of their times in nanoseconds."""
        found = [os.stat(path) for path in self._find_files()]
        return len(found), sum(f.st_size for f in found), sum(f.st_mtime_ns for f in found)

    def _find_files(self) -> Iterator[str]:
        for folder in FOLDERS:
            for place, _, names in os.walk(os.path.join(self._directory, folder)):
                yield from (os.path.join(place, name) for name in names if name.endswith(".py"))
