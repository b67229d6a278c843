"""asyncio inside the WASM engine, which has no sockets, and whose time stands still in a call.

Nothing there can be waited for but time, so the loop skips what it would wait: a program comes to
the same end as elsewhere, at once.
"""

from __future__ import annotations

from asyncio import base_events, events
from typing import Any


class SkippingEventLoop(base_events.BaseEventLoop):
    """An event loop without input and output, whose clock is the sum of what it waited for. It is
    its own selector.
    """

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._waited = 0.0

    def time(self) -> float:
        return self._waited

    def select(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Raises RuntimeError where everything waits for something that never comes."""
        if timeout is None:
            raise RuntimeError("every task waits for another: asyncio would wait without end")
        self._waited += max(timeout, 0.0)
        return ()

    def _process_events(self, events: Any) -> None:
        return

    def _write_to_self(self) -> None:
        return


def install() -> None:
    """Let `asyncio.run` use such loops."""
    events.new_event_loop = SkippingEventLoop
