"""Compiling and caching of the WASM component that all servers of the WASM engine run in.

It is CPython with the runtime (images/base/runtime), images/wasm/guest.py and the standard-library
modules that servers may import: brought by the wheel or built here (building.py), and compiled to
machine code by wasmtime.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import stat
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from wasmtime import Config, Engine, WasmtimeError
from wasmtime.component import Component

from sandbox.engines.wasm.building import (
    MAX_OUTPUT,
    build_wasm,
    compute_sources_digest,
    find_shipped,
)
from sandbox.engines.wasm.building import list_modules as list_modules
from sandbox.engines.wasm.encoding import UnexpectedComponent
from sandbox.engines.wasm.fiber import disable_concurrency, set_stack_size
from sandbox.engines.wasm.memory import (
    MAPS_MEMORIES,
    ComponentMemory,
    MemoryCreator,
    MemoryImage,
)
from sandbox.engines.wasm.merging import merge_modules
from sandbox.engines.wasm.settling import settle_memory
from sandbox.engines.wasm.splitting import WASM_PAGE, split_memory
from sandbox.errors import ComponentBuildFailed, ComponentMissing

MAX_COMPONENTS = 4
"""Of so many versions the cache keeps a component, 44 MB each."""
MAX_WASM_STACK = 2 * 1024 * 1024
"""About what CPython needs to reach its own limit of C recursion."""
HOST_STACK = 1024 * 1024
"""Stack of a call that is reserved for the host's functions."""
_POSIX = hasattr(os, "getuid")
_DIRECTORY = getattr(os, "O_DIRECTORY", 1)

Progress = Callable[[str], None]


_MEMORY_PLACE = struct.Struct("<QQ")
"""The end of a file in the cache: where the component's memory lies in it, and its size."""


class LoadedComponent:
    """The component, mapped into this process and ready to be instantiated.

    `digest` names this build: two builds of the same sources order sets differently. Instances
    begin with `image`, and `memories` makes them; None where wasmtime does.
    """

    def __init__(
        self,
        engine: Engine,
        component: Component,
        digest: str,
        memories: MemoryCreator | None = None,
        image: MemoryImage | None = None,
    ) -> None:
        self.engine, self.component, self.digest = engine, component, digest
        self.memories, self.image = memories, image


def build_component(cache: Path, progress: Progress) -> LoadedComponent:
    """Compile the component, and build it where the installation brings none, unless the cache has
    it.

    Takes 10 s of CPU for either, and no network. `progress` gets one line per step. Raises
    ComponentBuildFailed.
    """
    with contextlib.suppress(ComponentMissing):
        return load_component(cache)
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_others(cache)
        wasm = _read_or_build(progress)
        progress("compiling the WASM component")
        machine_code = _compile_wasm(wasm)
        kept = _store_machine_code(cache, machine_code)
    except OSError as error:
        raise ComponentBuildFailed(str(cache), str(error)) from error
    remove_older_components(cache, kept)
    return load_component(cache)


def _read_or_build(progress: Progress) -> bytes:
    shipped = find_shipped()
    if shipped is not None:
        return shipped.read()
    progress("building the WASM component")
    with tempfile.TemporaryDirectory(prefix="toolwright-") as scratch:
        return build_wasm(Path(scratch))


def remove_older_components(cache: Path, kept: Path) -> None:
    """Keep the component of this version and the newest of a few others: installations of several
    versions share a cache, and none takes another's away.
    """
    version = _get_version(kept)
    found: dict[str, list[tuple[float, Path]]] = {}
    for other in cache.glob("*.cwasm"):
        with contextlib.suppress(OSError):
            found.setdefault(_get_version(other), []).append((other.stat().st_mtime, other))
    own = {path for _, path in found.pop(version, []) if path != kept}
    newest = sorted((max(files) for files in found.values()), reverse=True)
    stay = {path for _, path in newest[: MAX_COMPONENTS - 1]}
    for other in own | {path for files in found.values() for _, path in files} - stay:
        with contextlib.suppress(OSError):
            other.unlink()


def _get_version(path: Path) -> str:
    return path.name.partition("-")[0]


def load_component(cache: Path) -> LoadedComponent:
    """Map the cached component. Raises ComponentMissing.

    The file is machine code, and wasmtime's own look at it is no check of who wrote it. So it is
    only mapped if nobody but this user can have written it, and if its content is what was compiled
    here: its name tells the digest. All is asked of what was opened, and that is what is mapped.
    """
    memories = MemoryCreator() if MAPS_MEMORIES else None
    engine = Engine(_build_config(memories))
    wanted = re.compile(re.escape(_compute_version()) + r"-([0-9a-f]{64})\.cwasm\Z")
    try:
        with _open_own(cache, _DIRECTORY) as directory:
            names = filter(wanted.match, os.listdir(directory if _POSIX else cache))
            name = max(names, default=None)
            if name is None:
                raise ComponentMissing(f"none of this version in {cache}")
            with _open_own(cache / name, 0, directory) as file:
                component = _map_file(engine, file, name)
                image = _find_memory(file) if MAPS_MEMORIES else None
    except FileNotFoundError as error:
        raise ComponentMissing(f"none of this version in {cache}") from error
    except (OSError, WasmtimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ComponentMissing(f"{cache}: {reason[:300]}") from error
    return LoadedComponent(engine, component, name.removesuffix(".cwasm"), memories, image)


def _map_file(engine: Engine, file: int, name: str) -> Component:
    """Raises OSError where the content is not what the name says, or WasmtimeError."""
    with open(file, "rb", closefd=False) as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        if not name.endswith(f"-{digest}.cwasm"):
            raise OSError(f"{name} does not hold what was compiled")
        # By its descriptor, so that it is the very file that was looked at.
        opened = f"/proc/self/fd/{file}"
        if os.path.exists(opened):
            return Component.deserialize_file(engine, opened)
        content.seek(0)
        return Component.deserialize(engine, content.read())


def _find_memory(file: int) -> MemoryImage:
    """The memory in a file of the cache that `_map_file` looked at."""
    end = os.fstat(file).st_size
    offset, size = _MEMORY_PLACE.unpack(
        os.pread(file, _MEMORY_PLACE.size, end - _MEMORY_PLACE.size)
    )
    return MemoryImage(ComponentMemory(file, offset, size), size)


def _build_config(memories: MemoryCreator | None) -> Config:
    config = Config()
    if memories:
        memories.add_to_config(config)
    config.epoch_interruption = True
    config.max_wasm_stack = MAX_WASM_STACK
    set_stack_size(config, MAX_WASM_STACK + HOST_STACK)
    disable_concurrency(config)
    # The same recording must give the same bytes on any CPU: no NaN bits, no relaxed SIMD.
    config.cranelift_nan_canonicalization = True
    config.wasm_relaxed_simd_deterministic = True
    config.wasm_threads = False
    return config


def _compute_version() -> str:
    """A digest of the component's content or sources, of wasmtime and of the target machine."""
    shipped = find_shipped()
    content = shipped.digest.encode() if shipped else compute_sources_digest()
    format_ = ("memory apart, one module", MAX_WASM_STACK)
    target = (metadata.version("wasmtime"), sys.platform, platform.machine(), *format_)
    return hashlib.sha256(content + repr(target).encode()).hexdigest()[:16]


def _compile_wasm(wasm: bytes) -> bytes:
    """The content of a file in the cache: machine code, and the memory where that is mapped."""
    try:
        if not MAPS_MEMORIES:
            return bytes(Component(Engine(_build_config(None)), wasm).serialize())
        code, content = split_memory(wasm)
        memories = MemoryCreator()
        engine = Engine(_build_config(memories))
        component = Component(engine, merge_modules(code))
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.flush()
            image = MemoryImage(ComponentMemory(file.fileno(), 0, len(content)), len(content))
            settled = settle_memory(engine, component, memories, image)
        return _append_memory(bytes(component.serialize()), settled)
    except (WasmtimeError, UnexpectedComponent) as error:
        raise ComponentBuildFailed("wasmtime", str(error)[:MAX_OUTPUT]) from error


def _append_memory(machine_code: bytes, memory: bytes) -> bytes:
    # At a multiple of every size that pages have, so that it can be mapped.
    gap = bytes(-len(machine_code) % WASM_PAGE)
    place = _MEMORY_PLACE.pack(len(machine_code) + len(gap), len(memory))
    return b"".join((machine_code, gap, memory, place))


def _store_machine_code(cache: Path, machine_code: bytes) -> Path:
    """Write the machine code into the cache, atomically."""
    name = f"{_compute_version()}-{hashlib.sha256(machine_code).hexdigest()}.cwasm"
    with tempfile.NamedTemporaryFile(dir=cache, delete=False) as file:
        try:
            file.write(machine_code)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, cache / name)
        except OSError:
            os.unlink(file.name)
            raise
    return cache / name


@contextlib.contextmanager
def _open_own(path: Path, flags: int, directory: int | None = None) -> Iterator[int]:
    """Open a directory, or a file in it. Raises OSError if it is a link or anybody but this user
    can read or write it. No check on Windows.
    """
    if not _POSIX:
        # A directory cannot be opened there.
        file = -1 if flags else os.open(path, os.O_RDONLY | os.O_BINARY)  # type: ignore[attr-defined]
    else:
        name, flags = (path if directory is None else path.name), flags | os.O_NOFOLLOW
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC | flags, dir_fd=directory)
    try:
        if _POSIX:
            _check_status(path, os.fstat(file))
        yield file
    finally:
        if file >= 0:
            os.close(file)


def _check_status(path: Path, status: os.stat_result) -> None:
    """Raises OSError."""
    kind = (stat.S_ISREG(status.st_mode) and status.st_nlink == 1) or stat.S_ISDIR(status.st_mode)
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or not kind:
        raise OSError(f"{path.name} can be read or written by others than this user")


def _close_to_others(cache: Path) -> None:
    """Make the cache this user's alone; what lay in it while others could write is removed.

    Raises OSError for a link, or a directory of another user.
    """
    try:
        with _open_own(cache, _DIRECTORY):
            return
    except OSError:
        if not _POSIX:
            raise
    directory = os.open(cache, _DIRECTORY | os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fchmod(directory, 0o700)
        for name in os.listdir(directory):
            if name.endswith(".cwasm"):
                os.unlink(name, dir_fd=directory)
    finally:
        os.close(directory)
