"""Linear memories of instances, which begin as an image.

An image is the memory of the component, or of an instance in which a server was loaded. The
component's part is mapped copy on write from its file, so that what an instance only reads is there
once; the pages that a server changed are copied. wasmtime has no such images of servers, so the
memories are made here. See `wasmtime_config_host_memory_creator_set` in `config.h` of wasmtime.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import re
import sys
import threading
from collections.abc import Iterable, Sequence
from ctypes import byref
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from wasmtime import Config
from wasmtime import _ffi as ffi

MAPS_MEMORIES = sys.platform == "linux"
"""Elsewhere wasmtime makes the memories, and there are no images of servers."""
_NO_ACCESS, _READ_WRITE = 0, 3
_PRIVATE, _FIXED, _ANONYMOUS, _NO_RESERVE = 0x02, 0x10, 0x20, 0x4000
_POPULATE_READ, _POPULATE_WRITE = 22, 23
"""Advice that Linux takes since 5.14; an older one refuses it, and nothing is done."""
_MAP_FAILED = ctypes.c_void_p(-1).value
_VECTOR, _MAX_VECTORS = 2 * ctypes.sizeof(ctypes.c_size_t), 1024
"""The size of a `struct iovec`, and how many of them a call takes. See `writev(2)`."""
_PAGEMAP = "/proc/self/pagemap"
_ENTRY = 8
# Bits 63, 62 and 61 of an entry: in memory, in swap, a page of a file. See `pagemap.rst` of Linux.
_IS_OWN = bytes(ord("x") if b & 0xC0 and not b & 0x20 else ord("-") for b in range(256))
_Finalizer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class ComponentMemory:
    """The memory of the component, page-aligned in an open file."""

    def __init__(self, file: int, offset: int, size: int) -> None:
        self.file, self.offset, self.size = os.dup(file), offset, size

    def read(self, place: int, size: int) -> bytes:
        """Its content at a place, with zeros beyond its end."""
        count = max(0, min(size, self.size - place))
        return os.pread(self.file, count, self.offset + place).ljust(size, b"\0")

    def __del__(self) -> None:
        os.close(self.file)


@dataclass(frozen=True)
class MemoryImage:
    """What a memory begins with: the component's, `changes` at their addresses, and zeros."""

    component: ComponentMemory
    size: int
    changes: tuple[tuple[int, bytes], ...] = ()

    def count_changed(self) -> int:
        """The bytes that are not the component's, which every memory has for itself."""
        return sum(len(content) for _, content in self.changes)

    def write_changes(self, base: int) -> None:
        """Write them to a memory at `base`, which has the component's content."""
        for first in range(0, len(self.changes), _MAX_VECTORS):
            changes = self.changes[first : first + _MAX_VECTORS]
            targets = _list_vectors([(base + place, len(content)) for place, content in changes])
            # One call for all pages: no fault for each, and no thread gets the GIL in between. A
            # sandbox around this process may refuse it.
            written = _libc.process_vm_writev(
                os.getpid(),
                byref(self._sources, first * _VECTOR),
                len(changes),
                targets,
                len(changes),
                0,
            )
            if written != sum(len(content) for _, content in changes):
                for place, content in changes:
                    ctypes.memmove(base + place, content, len(content))

    @cached_property
    def _sources(self) -> Any:
        """Where the content of the changes lies in this process."""
        addresses = (
            ctypes.cast(ctypes.c_char_p(c), ctypes.c_void_p).value for _, c in self.changes
        )
        sizes = (len(content) for _, content in self.changes)
        return _list_vectors(
            [(address or 0, n) for address, n in zip(addresses, sizes, strict=True)]
        )


class LinearMemory:
    """The memory of one instance. Beyond its size lie pages without access, which wasm code that
    reaches for them traps at: wasmtime leaves out the checks that they make needless.
    """

    def __init__(self, image: MemoryImage, reserved: int, guard: int) -> None:
        """Raises OSError."""
        if not image.size <= reserved:
            raise OSError(f"{image.size} bytes of memory, {reserved} are reserved")
        self.size, self.reserved, self._image = image.size, reserved, image
        self._mapped = guard + reserved + guard
        self._start = _map_pages(None, self._mapped, _NO_ACCESS, _ANONYMOUS | _NO_RESERVE)
        self.base = self._start + guard
        try:
            self._fill()
        except OSError:
            self.free()
            raise

    def _fill(self) -> None:
        origin = self._image.component
        flags = _FIXED | _NO_RESERVE
        _map_pages(self.base, origin.size, _READ_WRITE, flags, origin.file, origin.offset)
        self._allow_access(origin.size, self.size)
        self._image.write_changes(self.base)

    def grow(self, size: int) -> None:
        """Raises OSError."""
        if not self.size <= size <= self.reserved:
            raise OSError(f"{size} bytes of memory, {self.reserved} are reserved")
        self._allow_access(self.size, size)
        self.size = size

    def free(self) -> None:
        _libc.munmap(self._start, self._mapped)

    def get_address(self, place: int, size: int) -> int:
        """Where `size` bytes of it lie in this process. Raises ValueError for what is not its."""
        if not 0 <= place <= self.size - size:
            raise ValueError(f"no {size} bytes at {place}")
        return self.base + place

    def read(self) -> bytes:
        return ctypes.string_at(self.base, self.size)

    def take_image(self) -> MemoryImage:
        """Its content as it is now. Pages that were written and are as before are no changes."""
        changes = [
            (start + at, content[at : at + mmap.PAGESIZE])
            for start, end in self.list_changes()
            for content in [ctypes.string_at(self.base + start, end - start)]
            for at in range(0, end - start, mmap.PAGESIZE)
        ]
        component = self._image.component
        changed = [c for c in changes if c[1] != component.read(c[0], mmap.PAGESIZE)]
        return MemoryImage(component, self.size, tuple(changed))

    def include_writes(self, image: MemoryImage) -> MemoryImage:
        """`image`, with its content of the pages that were written to here as changes.

        What begins with it has such pages before it reads or writes. Later each would be mapped to
        be read first, and at a write all CPUs would be told that it is another page.
        """
        changes = dict(image.changes)
        for start, end in self.list_changes():
            for place in range(start, min(end, image.size), mmap.PAGESIZE):
                if place not in changes:
                    changes[place] = image.component.read(place, mmap.PAGESIZE)
        return MemoryImage(image.component, image.size, tuple(sorted(changes.items())))

    def prefault(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Have all pages there before they are read, and of these ranges pages of its own before
        they are written to. Their content is the same.
        """
        _libc.madvise(self.base, self.size, _POPULATE_READ)
        for start, end in ranges:
            if start < end <= self.size:
                _libc.madvise(self.base + start, end - start, _POPULATE_WRITE)

    def list_changes(self) -> list[tuple[int, int]]:
        """Where pages are that are not the component's any more."""
        page = mmap.PAGESIZE
        try:
            with open(_PAGEMAP, "rb", buffering=0) as pagemap:
                count = self.size // page * _ENTRY
                entries = os.pread(pagemap.fileno(), count, self.base // page * _ENTRY)
        except OSError:
            return [(0, self.size)]
        if len(entries) != count:
            return [(0, self.size)]
        kinds = entries[_ENTRY - 1 :: _ENTRY].translate(_IS_OWN)
        return [(run.start() * page, run.end() * page) for run in re.finditer(b"x+", kinds)]

    def _allow_access(self, start: int, end: int) -> None:
        if start < end and _libc.mprotect(self.base + start, end - start, _READ_WRITE):
            raise OSError(ctypes.get_errno(), "no memory to grow into")


class MemoryCreator:
    """Makes the memories of the instances of an engine, in any thread. It has to outlive them."""

    def __init__(self) -> None:
        self._here = threading.local()
        self._live: dict[int, LinearMemory] = {}
        self._keys = itertools.count(1)
        self._get = ffi.wasmtime_memory_get_callback_t(self._get_memory)
        self._grow = ffi.wasmtime_memory_grow_callback_t(self._grow_memory)
        self._free = _Finalizer(self._free_memory)
        create = ffi.wasmtime_new_memory_callback_t(self._create_memory)
        self._creator = ffi.wasmtime_memory_creator(None, create, _Finalizer())

    def add_to_config(self, config: Config) -> None:
        ffi.wasmtime_config_host_memory_creator_set(config.ptr(), byref(self._creator))

    def count_live(self) -> int:
        """The number of memories that are not freed."""
        return len(self._live)

    def begin_with(self, image: MemoryImage) -> None:
        """Let the next memory that is made in this thread begin as this image."""
        self._here.image, self._here.made = image, None

    def get_made(self) -> LinearMemory:
        """The memory that was made in this thread since `begin_with`."""
        made: LinearMemory = self._here.made
        return made

    def _create_memory(
        self,
        env: Any,
        kind: Any,
        minimum: int,
        maximum: int,
        reserved: int,
        guard: int,
        place: Any,
    ) -> int:
        try:
            image: MemoryImage = self._here.image
            if image.size < minimum:
                raise OSError(f"an image of {image.size} bytes for a memory of {minimum}")
            made = LinearMemory(image, reserved, guard)
        except Exception as error:
            # Whatever escaped would be printed, and wasmtime would use a memory that is none.
            return _make_error(error)
        key = next(self._keys)
        self._live[key] = self._here.made = made
        place[0].env, place[0].get_memory = key, self._get
        place[0].grow_memory, place[0].finalizer = self._grow, self._free
        return 0

    def _get_memory(self, key: int, size: Any, capacity: Any) -> int:
        memory = self._live[key]
        size[0], capacity[0] = memory.size, memory.reserved
        return memory.base

    def _grow_memory(self, key: int, size: int) -> int:
        try:
            self._live[key].grow(size)
        except OSError as error:
            return _make_error(error)
        return 0

    def _free_memory(self, key: int) -> None:
        self._live.pop(key).free()


def _map_pages(
    address: int | None, size: int, protection: int, flags: int, file: int = -1, offset: int = 0
) -> int:
    """Raises OSError."""
    found: int = _libc.mmap(address, size, protection, _PRIVATE | flags, file, offset)
    if found == _MAP_FAILED:
        raise OSError(ctypes.get_errno(), "no memory for an instance")
    return found


def _list_vectors(ranges: Sequence[tuple[int, int]]) -> Any:
    """Addresses and sizes as `struct iovec`."""
    return (ctypes.c_size_t * (2 * len(ranges)))(*itertools.chain.from_iterable(ranges))


def _declare_libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = pointer
    libc.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_long]
    libc.munmap.argtypes = [pointer, size]
    libc.mprotect.argtypes = [pointer, size, number]
    libc.madvise.argtypes = [pointer, size, number]
    libc.process_vm_writev.restype = ctypes.c_ssize_t
    vectors = (pointer, ctypes.c_ulong)
    libc.process_vm_writev.argtypes = (number, *vectors, *vectors, ctypes.c_ulong)
    return libc


_libc: Any = _declare_libc() if MAPS_MEMORIES else None


def _make_error(error: Exception) -> int:
    made = ffi.wasmtime_error_new(str(error).encode())
    return ctypes.cast(made, ctypes.c_void_p).value or 0
