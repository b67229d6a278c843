"""Ends epochs at intervals, so that what runs in the WASM engine is looked at."""

from __future__ import annotations

import threading

from wasmtime import Engine

TICK_SECONDS = 0.01


class Ticker:
    """A thread that ends an epoch every TICK_SECONDS while that is needed, and else sleeps."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._needs = 0
        self._awake, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="wasm ticker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._awake.set()
        self._thread.join()

    def need(self) -> None:
        """Epochs end from now on until no one has said this for a whole one. From any thread."""
        self._needs += 1
        if not self._awake.is_set():
            self._awake.set()

    def _run(self) -> None:
        while not self._over.is_set():
            self._awake.wait()
            seen = self._needs
            self._over.wait(TICK_SECONDS)
            self._engine.increment_epoch()
            if self._needs == seen:
                self._awake.clear()
                # Whoever came between the question and the answer found it awake.
                if self._needs != seen or self._over.is_set():
                    self._awake.set()
