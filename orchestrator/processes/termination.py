"""SIGTERM to a process that serves: it ends as at the end of its input, and is not cut short."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

TERMINATED = 128 + signal.SIGTERM
"""The exit status of a process that SIGTERM ended."""


def run_until_terminated(serving: Coroutine[Any, Any, None]) -> None:
    """Run what serves to its end. Raises SystemExit where SIGTERM cancelled it."""
    try:
        asyncio.run(serving)
    except asyncio.CancelledError:
        raise SystemExit(TERMINATED) from None


def cancel_at_sigterm() -> None:
    """Have the first SIGTERM cancel the running task. What the task closes then is not cut short by
    another one: a client that waits for our end sends several.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def end() -> None:
        ignore_sigterm()
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)


def ignore_sigterm() -> None:
    """Have SIGTERM do nothing any more: the process ends already."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: None)
