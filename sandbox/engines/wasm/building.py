"""Building of the WASM component by componentize-py, from the runtime and the modules of servers.

A wheel brings the component built (scripts/wheel_hook.py): all who installed one version have the
same one. In a checkout it is built on first use. This module runs while a wheel is built, where
hardly any dependency is installed: it loads none.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

from sandbox.bundle.modules import MODULES
from sandbox.errors import ComponentBuildFailed

EXTRA_MODULES = frozenset({"random", "time"})
"""Not allowed by the static stage, but harmless here: the host gives recorded inputs."""
BUILD_SECONDS = 1200.0
"""Ten seconds of work, on a machine that does much else."""
MAX_OUTPUT = 4000
SOURCES = (
    "wasm/world.wit",
    "wasm/guest.py",
    "wasm/chance.py",
    "wasm/event_loop.py",
    "base/runtime/toolwright",
)
SHIPPED, SHIPPED_DIGEST = "component.wasm", "component.sha256"
"""What a wheel brings in images/wasm."""
BUILDER = "componentize-py"
ZONES = "tzdata"
_COMMAND = "import sys, componentize_py; sys.exit(componentize_py.script())"


@dataclass(frozen=True)
class ShippedComponent:
    """A component that was built before: its file, and the digest that its builder noted."""

    file: Traversable
    digest: str

    def read(self) -> bytes:
        """Raises ComponentBuildFailed where the file is not what was built, OSError."""
        content = self.file.read_bytes()
        if hashlib.sha256(content).hexdigest() != self.digest:
            reason = "it is not what was built. Install Toolwright again."
            raise ComponentBuildFailed(str(self.file), reason)
        return content


def find_shipped(directory: Traversable | None = None) -> ShippedComponent | None:
    """The component of this installation; None in a checkout."""
    place = directory or resources.files("images").joinpath("wasm")
    noted = place.joinpath(SHIPPED_DIGEST)
    if not noted.is_file():
        return None
    return ShippedComponent(place.joinpath(SHIPPED), noted.read_text(encoding="ascii").strip())


def compute_sources_digest() -> bytes:
    """A digest of what a component is built of, and of the tools that build it."""
    total = hashlib.sha256()
    for name, content in sorted(_read_sources().items()):
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    for package in (BUILDER, ZONES):
        total.update(f"{package} {_find_version(package)}\n".encode())
    total.update(repr(list_modules()).encode())
    return total.digest()


def _find_version(package: str) -> str:
    """The version that is installed, "" for none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def list_modules() -> tuple[str, ...]:
    """The modules that a server may import in this engine, sorted."""
    return tuple(sorted(MODULES | EXTRA_MODULES))


def build_wasm(scratch: Path) -> bytes:
    """Build the component in an empty directory; returns WASM. Takes 10 s of CPU and no network.

    Raises ComponentBuildFailed.
    """
    missing = [package for package in (BUILDER, ZONES) if not _find_version(package)]
    if missing:
        reason = f"not installed. `python -m pip install {' '.join(missing)}` installs it."
        raise ComponentBuildFailed(BUILDER, reason)
    for name, content in {
        **_read_sources(),
        "engine_data.py": _render_engine_data().encode(),
    }.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    output = scratch / SHIPPED
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
        raise ComponentBuildFailed(BUILDER, f"no end after {BUILD_SECONDS:g} s") from error
    if done.returncode or not output.exists():
        raise ComponentBuildFailed(BUILDER, done.stdout.decode(errors="replace")[-MAX_OUTPUT:])
    return output.read_bytes()


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
