"""Which of our functions a piece of work enters, on every thread that takes part in it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType
from typing import Any

from orchestrator import chores
from orchestrator.processes.signals import Signals
from tests.functional.home import ROOT

FOLDERS = tuple(f"{ROOT}/{name}/" for name in ("forge", "orchestrator", "registry", "sandbox"))
FAR_END = f"{ROOT}/sandbox/engines/wasm/"
"""What on Docker runs in the container: the far end of the pipe."""
CHORES = frozenset(
    chore.__code__
    for chore in (
        chores.encode_tools,
        chores.load_ahead,
        chores.run_chores,
        chores.take_up_edits,
        chores.watch_descriptions,
    )
)
"""What comes by the clock, whatever is called; taking up work is not of them."""
_is_chore = ContextVar("_is_chore", default=False)
"""Of a chore's task, and of the threads that work for it."""


@dataclass
class Trace:
    """The code that was entered between `begin` and `end`.

    A comprehension, a lambda or a nested function is a function of its own where it is named, and
    belongs to the one around it where it is not.
    """

    entered: set[CodeType] = field(default_factory=set)
    _counts: bool = False
    _until: CodeType | None = None

    def begin(self, until: FunctionType | None = None) -> None:
        """Count what is entered up to a function, itself included, where one is named."""
        self.entered = set()
        self._until = until.__code__ if until else None
        self._counts = True

    def end(self) -> None:
        self._counts = False

    @property
    def functions(self) -> dict[str, str]:
        """The functions that were entered, each with its module."""
        return {_name(code): _module(code) for code in self.entered}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Listen on this thread and on those that the block starts."""
        before = sys.getprofile()
        sys.setprofile(self._hear)
        threading.setprofile(self._hear)
        try:
            yield
        finally:
            threading.setprofile(None)
            sys.setprofile(before)

    def _hear(self, frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code in CHORES:
            _is_chore.set(True)
        place = frame.f_code.co_filename
        if self._counts and event == "call" and place.startswith(FOLDERS):
            if not (place.startswith(FAR_END) or _is_chore.get() or _is_watch(frame)):
                self.entered.add(frame.f_code)
                self._counts = frame.f_code is not self._until


def _is_watch(frame: FrameType | None) -> bool:
    """Whether it is of the watch over the database, which goes on all the time."""
    while frame is not None:
        if frame.f_code.co_qualname.startswith(f"{Signals.__name__}."):
            return True
        frame = frame.f_back
    return False


def _module(code: CodeType) -> str:
    return code.co_filename.removeprefix(f"{ROOT}/").removesuffix(".py").replace("/", ".")


def _name(code: CodeType) -> str:
    named = [part for part in code.co_qualname.split(".") if not part.startswith("<")]
    return f"{_module(code)}.{'.'.join(named)}"
