"""The kill switch: one object per process, checked before every dispatch, container and egress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sandbox.errors import Frozen


class KillSwitch:
    """Engaged while Toolwright is frozen. Engaging runs the callbacks registered with `on_engage`.

    Callbacks must not block; they close sockets and start kills. Not thread-safe: one event loop.
    """

    def __init__(self) -> None:
        self._callbacks: dict[object, Callable[[], None]] = {}
        self.engaged = False

    def raise_if_engaged(self) -> None:
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
        """Register `callback` to run on engaging, for the duration of the block."""
        key = object()
        self._callbacks[key] = callback
        try:
            yield
        finally:
            del self._callbacks[key]
