"""Building and caching of the WASM component that all servers of the WASM engine run in.

It is CPython with the runtime (images/base/runtime), images/wasm/guest.py and the standard-library
modules that servers may import, built by componentize-py and compiled to machine code by wasmtime.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

from wasmtime import Config, Engine, WasmtimeError
from wasmtime.component import Component

from sandbox.bundle.modules import MODULES
from sandbox.engines.wasm.fiber import disable_concurrency, set_stack_size
from sandbox.errors import ComponentBuildFailed, ComponentMissing

EXTRA_MODULES = frozenset({"random", "time"})
"""Not allowed by the static stage, but harmless here: the host gives recorded inputs."""
BUILD_SECONDS = 300.0
MAX_OUTPUT = 4000
MAX_WASM_STACK = 2 * 1024 * 1024
"""About what CPython needs to reach its own limit of C recursion."""
HOST_STACK = 1024 * 1024
"""Stack of a call that is reserved for the host's functions."""
SOURCES = (
    "wasm/world.wit",
    "wasm/guest.py",
    "wasm/chance.py",
    "wasm/event_loop.py",
    "base/runtime/toolwright",
)
ZONES = "tzdata"
_COMMAND = "import sys, componentize_py; sys.exit(componentize_py.script())"

Progress = Callable[[str], None]


class LoadedComponent:
    """The component, mapped into this process and ready to be instantiated.

    `digest` names this build: two builds of the same sources order sets differently.
    """

    def __init__(self, engine: Engine, component: Component, digest: str) -> None:
        self.engine, self.component, self.digest = engine, component, digest


def build_component(cache: Path, progress: Progress) -> LoadedComponent:
    """Build and compile the component unless the cache has it; older ones are removed from it.

    Takes 20 s of CPU and no network. `progress` gets one line per step. Raises
    ComponentBuildFailed.
    """
    with contextlib.suppress(ComponentMissing):
        return load_component(cache)
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="toolwright-") as scratch:
            progress("building the WASM component")
            wasm = _build_wasm(Path(scratch))
            progress("compiling the WASM component")
            machine_code = _compile_wasm(wasm)
        kept = _store_machine_code(cache, machine_code)
    except OSError as error:
        raise ComponentBuildFailed(str(cache), str(error)) from error
    for other in cache.glob("*.cwasm"):
        if other != kept:
            with contextlib.suppress(OSError):
                other.unlink()
    return load_component(cache)


def load_component(cache: Path) -> LoadedComponent:
    """Map the cached component. Raises ComponentMissing.

    The file is machine code: it is only used if no other user can have written it.
    """
    found = sorted(cache.glob(f"{_compute_version()}-*.cwasm"))
    if not found:
        raise ComponentMissing(f"none of this version in {cache}")
    path = found[-1]
    engine = Engine(_build_config())
    try:
        _check_owner(cache)
        _check_owner(path)
        component = Component.deserialize_file(engine, str(path))
    except (OSError, WasmtimeError) as error:
        raise ComponentMissing(f"{path}: {str(error)[:300]}") from error
    return LoadedComponent(engine, component, path.stem)


def _build_config() -> Config:
    config = Config()
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
    """A digest of the component's sources, its tools and the target machine."""
    total = hashlib.sha256()
    for name, content in sorted(_read_sources().items()):
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    for package in ("componentize-py", "wasmtime", ZONES):
        total.update(f"{package} {metadata.version(package)}\n".encode())
    target = (sys.platform, platform.machine(), MAX_WASM_STACK, list_modules())
    return hashlib.sha256(total.digest() + repr(target).encode()).hexdigest()[:16]


def list_modules() -> tuple[str, ...]:
    """The modules that a server may import in this engine, sorted."""
    return tuple(sorted(MODULES | EXTRA_MODULES))


def _read_sources() -> dict[str, bytes]:
    """The sources of the component by their path in the build."""
    found: dict[str, bytes] = {}
    for name in SOURCES:
        entry = resources.files("images").joinpath(*name.split("/"))
        found.update(_walk_files(entry, entry.name))
    return found


def _walk_files(entry: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if entry.is_file():
        yield name, entry.read_bytes()
        return
    for inner in entry.iterdir():
        if inner.name != "__pycache__":
            yield from _walk_files(inner, f"{name}/{inner.name}")


def _render_engine_data() -> str:
    """The source of `engine_data`: the modules' names and the time zones' contents."""
    root = resources.files(ZONES)
    names = root.joinpath("zones").read_text(encoding="utf-8").split()
    zones = {n: root.joinpath("zoneinfo", *n.split("/")).read_bytes() for n in names}
    return f"MODULES = {list_modules()!r}\nZONES = {zones!r}\n"


def _build_wasm(scratch: Path) -> bytes:
    """Build the component with componentize-py; returns WASM. Raises ComponentBuildFailed."""
    for name, content in {
        **_read_sources(),
        "engine_data.py": _render_engine_data().encode(),
    }.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    output = scratch / "component.wasm"
    options = ["-d", "world.wit", "-w", "server", "componentize", "-p", ".", "-o", output.name]
    try:
        done = subprocess.run(
            [sys.executable, "-c", _COMMAND, *options, "guest"],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        reason = f"no end after {BUILD_SECONDS:g} s"
        raise ComponentBuildFailed("componentize-py", reason) from error
    if done.returncode or not output.exists():
        told = done.stdout.decode(errors="replace")[-MAX_OUTPUT:]
        raise ComponentBuildFailed("componentize-py", told)
    return output.read_bytes()


def _compile_wasm(wasm: bytes) -> bytes:
    try:
        return bytes(Component(Engine(_build_config()), wasm).serialize())
    except WasmtimeError as error:
        raise ComponentBuildFailed("wasmtime", str(error)[:MAX_OUTPUT]) from error


def _store_machine_code(cache: Path, machine_code: bytes) -> Path:
    """Write the machine code into the cache, atomically."""
    name = f"{_compute_version()}-{hashlib.sha256(machine_code).hexdigest()[:16]}.cwasm"
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


def _check_owner(path: Path) -> None:
    """Raises OSError for a path that another user owns or can write to. No check on Windows."""
    if not hasattr(os, "getuid"):
        return
    status = path.lstat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(f"{path.name} can be written by others than this user")
    if stat.S_ISLNK(status.st_mode):
        raise OSError(f"{path.name} is a symbolic link")
