"""The one component that every server of the WASM engine is loaded into: building and keeping it.

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

from sandbox.errors import ComponentBuildFailed, ComponentMissing
from sandbox.static.modules import MODULES
from sandbox.wasm_fiber import set_stack, without_concurrency

EXTRA_MODULES = frozenset({"random", "time"})
"""What the static stage does not allow, but is harmless here: the host's record answers for it."""
BUILD_SECONDS = 300.0
MAX_OUTPUT = 4000
MAX_WASM_STACK = 2 * 1024 * 1024
"""CPython's own limits on recursion in C need about this much before they are reached."""
HOST_STACK = 1024 * 1024
"""What the host's functions may use of a call's stack."""
SOURCES = ("wasm/world.wit", "wasm/guest.py", "wasm/chance.py", "base/runtime/toolwright")
ZONES = "tzdata"
_COMMAND = "import sys, componentize_py; sys.exit(componentize_py.script())"

Progress = Callable[[str], None]


class LoadedComponent:
    """The component, mapped into this process, to be instantiated any number of times.

    `digest` names what was built: two builds of the same sources order sets differently.
    """

    def __init__(self, engine: Engine, component: Component, digest: str) -> None:
        self.engine, self.component, self.digest = engine, component, digest


def build_component(cache: Path, progress: Progress) -> LoadedComponent:
    """The component, built and compiled unless the cache has it; older ones there are removed.

    Takes 20 s of CPU and no network. `progress` gets one line per step. Raises
    ComponentBuildFailed.
    """
    with contextlib.suppress(ComponentMissing):
        return load_component(cache)
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="toolwright-") as scratch:
            progress("building the WASM component")
            wasm = _componentized(Path(scratch))
            progress("compiling the WASM component")
            machine_code = _compiled(wasm)
        kept = _keep(cache, machine_code)
    except OSError as error:
        raise ComponentBuildFailed(str(cache), str(error)) from error
    for other in cache.glob("*.cwasm"):
        if other != kept:
            with contextlib.suppress(OSError):
                other.unlink()
    return load_component(cache)


def load_component(cache: Path) -> LoadedComponent:
    """Map the cached component. Raises ComponentMissing.

    The file is machine code: it is used only where nobody but this user can have written it.
    """
    found = sorted(cache.glob(f"{_version()}-*.cwasm"))
    if not found:
        raise ComponentMissing(f"none of this version in {cache}")
    path = found[-1]
    engine = Engine(_config())
    try:
        _check_owner(cache)
        _check_owner(path)
        component = Component.deserialize_file(engine, str(path))
    except (OSError, WasmtimeError) as error:
        raise ComponentMissing(f"{path}: {str(error)[:300]}") from error
    return LoadedComponent(engine, component, path.stem)


def _config() -> Config:
    config = Config()
    config.epoch_interruption = True
    config.max_wasm_stack = MAX_WASM_STACK
    set_stack(config, MAX_WASM_STACK + HOST_STACK)
    without_concurrency(config)
    config.cranelift_nan_canonicalization = True
    config.wasm_relaxed_simd_deterministic = True
    config.wasm_threads = False
    return config


def _version() -> str:
    """A digest of all that the machine code is made of and for."""
    total = hashlib.sha256()
    for name, content in sorted(_sources().items()):
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    for package in ("componentize-py", "wasmtime", ZONES):
        total.update(f"{package} {metadata.version(package)}\n".encode())
    target = (sys.platform, platform.machine(), MAX_WASM_STACK, modules())
    return hashlib.sha256(total.digest() + repr(target).encode()).hexdigest()[:16]


def modules() -> tuple[str, ...]:
    """What a server may import in this engine."""
    return tuple(sorted(MODULES | EXTRA_MODULES))


def _sources() -> dict[str, bytes]:
    """The sources of the component by their path in the build."""
    found: dict[str, bytes] = {}
    for name in SOURCES:
        entry = resources.files("images").joinpath(*name.split("/"))
        found.update(_files(entry, entry.name))
    return found


def _files(entry: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if entry.is_file():
        yield name, entry.read_bytes()
        return
    for inner in entry.iterdir():
        if inner.name != "__pycache__":
            yield from _files(inner, f"{name}/{inner.name}")


def _data() -> str:
    """The source of `engine_data`: the modules' names and the time zones' contents."""
    root = resources.files(ZONES)
    names = root.joinpath("zones").read_text(encoding="utf-8").split()
    zones = {n: root.joinpath("zoneinfo", *n.split("/")).read_bytes() for n in names}
    return f"MODULES = {modules()!r}\nZONES = {zones!r}\n"


def _componentized(scratch: Path) -> bytes:
    """The component as WASM."""
    for name, content in {**_sources(), "engine_data.py": _data().encode()}.items():
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


def _compiled(wasm: bytes) -> bytes:
    try:
        return bytes(Component(Engine(_config()), wasm).serialize())
    except WasmtimeError as error:
        raise ComponentBuildFailed("wasmtime", str(error)[:MAX_OUTPUT]) from error


def _keep(cache: Path, machine_code: bytes) -> Path:
    """Put the machine code in its place, whole or not at all."""
    name = f"{_version()}-{hashlib.sha256(machine_code).hexdigest()[:16]}.cwasm"
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
    """Raises OSError for what another user owns or can write to; Windows has no such modes."""
    if not hasattr(os, "getuid"):
        return
    status = path.lstat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(f"{path.name} can be written by others than this user")
    if stat.S_ISLNK(status.st_mode):
        raise OSError(f"{path.name} is a symbolic link")
