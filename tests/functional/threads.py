"""On which threads functions run, seen by the interpreter's profile hook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Threads:
    """The names of the functions that were entered, by whether on the thread that listens."""

    def __init__(self) -> None:
        self.here: set[str] = set()
        self.elsewhere: set[str] = set()
        self._own = threading.get_ident()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen on this thread, and on those that begin in the block."""
        before = sys.getprofile()
        sys.setprofile(self._hear)
        threading.setprofile(self._hear)
        try:
            yield
        finally:
            threading.setprofile(None)
            sys.setprofile(before)

    def _hear(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            own = threading.get_ident() == self._own
            (self.here if own else self.elsewhere).add(frame.f_code.co_name)
