"""The brake: one object per process that every dispatch, container and egress asks first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sandbox.errors import Frozen


class Brake:
    """Engaged while Toolwright is frozen. Engaging runs what was registered with `on_engage`.

    Callbacks must not block; they close sockets and start kills. Not thread-safe: one event loop.
    """

    def __init__(self) -> None:
        self._callbacks: dict[object, Callable[[], None]] = {}
        self.engaged = False

    def check(self) -> None:
        """Raises Frozen while engaged."""
        if self.engaged:
            raise Frozen

    def engage(self) -> None:
        if not self.engaged:
            self.engaged = True
            for callback in tuple(self._callbacks.values()):
                callback()

    def release(self) -> None:
        self.engaged = False

    @contextmanager
    def on_engage(self, callback: Callable[[], None]) -> Iterator[None]:
        """Have `callback` run when the brake engages, for the time of the block."""
        key = object()
        self._callbacks[key] = callback
        try:
            yield
        finally:
            del self._callbacks[key]
