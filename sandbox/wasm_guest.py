"""One instance of the component: a server's whole world, run by whichever thread calls it."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from typing import Any

from wasmtime import Store, WasmtimeError
from wasmtime import _ffi as ffi

from sandbox.runner import Limits
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_host import Host, Surroundings
from sandbox.wasm_recording import LOADING, Inputs

MAX_REASON = 300
MEMORY_FACTOR = 2
"""Linear memory is fragmented and never handed back: for the same answer it takes about twice the
memory of a container."""
MAX_TABLE_ELEMENTS = 100_000
CPU_BURST_SECONDS = 0.1
MAX_PAUSE_SECONDS = 0.05
_CONTINUE = 0
_Tick = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.POINTER(ffi.wasmtime_context_t),
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint8),
)
_NO_FINALIZER = ctypes.cast(0, ctypes.CFUNCTYPE(None, ctypes.c_void_p))


class GuestTrapped(Exception):
    """The instance stopped in the middle and is of no more use; the message says why."""


class GuestCut(Exception):
    """The instance was cut from outside."""


class Guest:
    """An instance that has run nothing but the component's own code so far.

    Made by `GuestFactory`. Only one thread at a time may call it; any may cut it.
    """

    def __init__(self, factory: GuestFactory, limits: Limits) -> None:
        self.used = False
        self._factory, self._cpus = factory, limits.cpus
        self._cut = threading.Event()
        self._started = (0.0, 0.0)
        self._store = Store(factory.loaded.engine)
        self._key = factory.watch(self, self._store)
        memory = MEMORY_FACTOR * limits.memory_mb * 1024 * 1024
        self._store.set_limits(memory, MAX_TABLE_ELEMENTS)
        self._store.set_epoch_deadline(1)
        try:
            instance = factory.host.linker.instantiate(self._store, factory.loaded.component)
            self._handle: Any = instance.get_func(self._store, "handle")
        except WasmtimeError as error:
            self.close()
            raise GuestTrapped(_reason(error)) from error

    def call(self, line: str, inputs: Inputs, surroundings: Surroundings, seed: str = "") -> str:
        """Hand over a line; the answer. `seed` is for Python's `random`.

        Raises GuestTrapped or GuestCut; after either only `close` may follow.
        """
        self._started = (time.monotonic(), time.thread_time())
        self._factory.host.enter(surroundings, inputs)
        try:
            if self._cut.is_set():
                raise GuestCut
            answer: str = self._handle(self._store, line, seed)
            self._handle.post_return(self._store)
        except WasmtimeError as error:
            if self._cut.is_set():
                raise GuestCut from error
            raise GuestTrapped(_reason(error)) from error
        finally:
            self._factory.host.leave()
        return answer

    def cut(self) -> None:
        """Stop what runs, and let nothing run again. From any thread; does not wait."""
        self._cut.set()
        self._factory.tick()

    def ticked(self) -> bool:
        """In the thread that runs it: pause while ahead of its share of a CPU; False to stop."""
        wall, cpu = self._started
        spent = time.thread_time() - cpu - CPU_BURST_SECONDS
        pause = spent / self._cpus - (time.monotonic() - wall)
        if pause > 0:
            self._cut.wait(min(pause, MAX_PAUSE_SECONDS))
        return not self._cut.is_set()

    def close(self) -> None:
        """Give its memory back. Idempotent; not while it runs."""
        self._factory.forget(self._key)
        self._store.close()


class GuestFactory:
    """Makes guests of one component.

    An epoch ends with `tick`: every guest that runs then looks at itself (`Guest.ticked`).
    """

    def __init__(self, loaded: LoadedComponent) -> None:
        self.loaded = loaded
        self.host = Host(loaded)
        self._keys = itertools.count(1)
        self._watched: dict[int, Guest] = {}
        # wasmtime-py does not wrap this function of the C API, whose store.h documents it.
        self._callback = _Tick(self._ticked)

    def make(self, limits: Limits) -> Guest:
        """A fresh guest whose interpreter is awake. Raises GuestTrapped."""
        guest = Guest(self, limits)
        guest.call("", LOADING, _Nowhere())
        return guest

    def tick(self) -> None:
        self.loaded.engine.increment_epoch()

    def watch(self, guest: Guest, store: Store) -> int:
        """Have ticks reach the guest; returns what `forget` takes."""
        key = next(self._keys)
        self._watched[key] = guest
        ffi.wasmtime_store_epoch_deadline_callback(store.ptr(), self._callback, key, _NO_FINALIZER)
        return key

    def forget(self, key: int) -> None:
        self._watched.pop(key, None)

    def _ticked(self, context: Any, key: int, delta: Any, kind: Any) -> int:
        delta[0], kind[0] = 1, _CONTINUE
        guest = self._watched.get(key)
        if guest is not None and guest.ticked():
            return 0
        error = ffi.wasmtime_error_new(b"cut")
        return ctypes.cast(error, ctypes.c_void_p).value or 0


class _Nowhere:
    """No way out: for a guest that nobody has called yet."""

    def exchange(self, params: str) -> str:
        raise WasmtimeError("there is no call whose request this could be")

    def log(self, text: str) -> None:
        return


def _reason(error: WasmtimeError) -> str:
    """The cause that ends wasmtime's account of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:MAX_REASON] if lines else "unknown"
