"""The first run of the component, after which its memory is what all instances begin with."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import c_uint32

from wasmtime import Engine, Store
from wasmtime.component import Component

from sandbox.engines.wasm.fiber import ComponentCall, instantiate_component
from sandbox.engines.wasm.host import DeterministicInputs, HostServices, ImportHost
from sandbox.engines.wasm.memory import LinearMemory, MemoryCreator, MemoryImage
from sandbox.session.recording import LOADING

SETTLE, LIST = "settle", "list objects"
"""Lines for images/wasm/guest.py: it ends its run with its memory in order, or answers with the
addresses of its objects."""
MAX_LIST = 16 * 1024 * 1024
PYTHON = (3, 14)
IMMORTAL, LEAST_IMMORTAL = 5 << 28, 1 << 30
"""The reference count of immortal objects in that version, and from which on one is immortal, where
pointers have 32 bits. See `Include/refcount.h` of CPython."""


class SettlingGuest:
    """The state of an instance that gets one line."""

    def __init__(self, line: str) -> None:
        self.key, self.line_bytes = 1, MAX_LIST
        self.surroundings: HostServices | None = None
        self.record = DeterministicInputs(LOADING)
        self.asked: str | None = None
        self.answer: str | None = None
        self.told: str | None = None
        self.line: str | None = line
        self.refused = ""


class SettlingRun:
    """A run of an instance that begins with `image`, up to its answer to `line`, or its end.

    Use as a context manager. Raises WasmtimeError.
    """

    def __init__(
        self,
        engine: Engine,
        component: Component,
        memories: MemoryCreator,
        image: MemoryImage,
        line: str,
    ) -> None:
        host, store, self._guest = ImportHost(engine, component), Store(engine), SettlingGuest(line)
        host.enter_instance(self._guest)
        memories.begin_with(image)
        instance = instantiate_component(host.linker, store, component)
        self.memory: LinearMemory = memories.get_made()
        self._call = ComponentCall(store, instance.get_func(store, "run"), lambda: None)

    def __enter__(self) -> SettlingRun:
        # Told "" before it took the line.
        while not self._call.poll() and not self._guest.told:
            pass
        self._call.raise_trap()
        return self

    def __exit__(self, *_: object) -> None:
        self._call.close()

    @property
    def answer(self) -> str:
        return self._guest.told or ""


def settle_memory(
    engine: Engine, component: Component, memories: MemoryCreator, image: MemoryImage
) -> bytes:
    """Let an instance that begins with `image` come to rest, and return its memory.

    What every instance would do first is done then, and its objects are immortal. The memory may
    have grown: builds differ in where things lie. Raises WasmtimeError.
    """
    with SettlingRun(engine, component, memories, image, SETTLE) as run:
        # Another instance, so that this one keeps nothing of the list.
        settled = run.memory.take_image()
        with SettlingRun(engine, component, memories, settled, LIST) as listing:
            major, minor, *objects = map(int, listing.answer.split())
        if (major, minor) == PYTHON:
            _make_immortal(run.memory, objects)
        return run.memory.read()


def _make_immortal(memory: LinearMemory, objects: Iterable[int]) -> None:
    """Set reference counts so that they never change, and no page is copied because of them."""
    for address in objects:
        count = c_uint32.from_address(memory.get_address(address, 4))
        if count.value < LEAST_IMMORTAL:
            count.value = IMMORTAL
