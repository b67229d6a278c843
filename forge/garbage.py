"""The search for cycles of objects that nobody uses, put off while a description is read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_blocks = 0
"""How many blocks go on, in all threads."""
_was_enabled = False


@contextmanager
def postpone_collection() -> Iterator[None]:
    """A block, or a function, in which the interpreter looks for no cycles. For what makes many
    objects and no cycles, as reading and compiling do: looking takes a tenth of their time.
    """
    _begin_block()
    try:
        yield
    finally:
        _end_block()


def _begin_block() -> None:
    global _blocks, _was_enabled
    with _lock:
        if not _blocks:
            _was_enabled = gc.isenabled()
            gc.disable()
        _blocks += 1


def _end_block() -> None:
    global _blocks
    with _lock:
        _blocks -= 1
        if not _blocks and _was_enabled:
            gc.enable()
