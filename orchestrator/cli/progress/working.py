"""A line on a terminal that says that something is being done, once it takes longer than a moment.

Loads no more than the standard library: it is shown while the rest is being loaded.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import TypeVar

PATIENCE_SECONDS = 0.2
"""How long nothing is said; people notice about 0.3 s."""
PERIOD_SECONDS = 0.1
T = TypeVar("T")


class WorkingLine:
    """Context manager that shows `text` with the seconds passed on standard error, and wipes that
    at its end. Nothing is shown where that is no terminal, or with `quiet`.
    """

    def __init__(self, text: str, quiet: bool = False) -> None:
        self._text = text
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._shown = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> WorkingLine:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        if self._shown:
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None

    def _show(self) -> None:
        began = time.monotonic()
        if self._stop.wait(PATIENCE_SECONDS):
            return
        while True:
            # Carriage return, and "erase to the end of the line" (ECMA-48, 8.3.41).
            sys.stderr.write(f"\r{self._text} {time.monotonic() - began:.1f} s\x1b[K")
            sys.stderr.flush()
            if self._stop.wait(PERIOD_SECONDS):
                break
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


@asynccontextmanager
async def open_shown(
    opened: AbstractAsyncContextManager[T], quiet: bool = False
) -> AsyncIterator[T]:
    """Enter a context that takes a while, and leave it, with a line that says so."""
    closing = WorkingLine("closing", quiet)
    async with AsyncExitStack() as stack:
        stack.callback(closing.stop)
        with WorkingLine("starting", quiet):
            value = await stack.enter_async_context(opened)
        stack.callback(closing.start)
        yield value
