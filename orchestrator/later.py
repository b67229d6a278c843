"""Parts that take long to load, loaded when they are first asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """What `load` returns. It is called once, in whatever thread asks first; where it raises, the
    next one tries again.
    """

    def __init__(self, load: Callable[[], T]) -> None:
        self._load, self._lock = load, threading.Lock()
        self._loaded: list[T] = []

    def get(self) -> T:
        if not self._loaded:
            with self._lock:
                if not self._loaded:
                    self._loaded.append(self._load())
        return self._loaded[0]

    async def fetch(self) -> T:
        """The same, loaded beside the event loop."""
        return self._loaded[0] if self._loaded else await asyncio.to_thread(self.get)
