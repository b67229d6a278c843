"""PyPI packages that a forged server's code imports, locked in its bundle.

Only wheels are used, so that no code of a package runs before it is imported in the sandbox.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.bundle.credential import quote_toml
from sandbox.bundle.launch import LockedPackage
from sandbox.errors import PackageUnusable

MAX_DEPENDENCIES = 64
MAX_MODULES = 200
MAX_RECORD = 8 * 1024 * 1024
OURS = frozenset({"toolwright", "server", "serve", "pytest"})
"""Modules of the sandbox, which no package may replace."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?\Z")
_VERSION = re.compile(r"[A-Za-z0-9.!+_-]{1,60}\Z")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_MODULE = re.compile(r"[A-Za-z_]\w{0,99}\Z", re.ASCII)
_NATIVE = (".so", ".pyd", ".dylib")


@dataclass(frozen=True)
class Dependency:
    """One wheel: `digest` is its file's, `modules` what it adds at the top level of imports, and
    `native` whether it has machine code.
    """

    name: str
    version: str
    digest: str
    modules: tuple[str, ...] = ()
    native: bool = False

    @property
    def locked(self) -> LockedPackage:
        return LockedPackage(self.name, self.version, self.digest)

    def __str__(self) -> str:
        return f"{self.name} {self.version}" + (" (with machine code)" if self.native else "")


def normalize_name(name: str) -> str:
    """The normalized name of a package (PEP 503; Python packaging, "Name normalization")."""
    return re.sub(r"[-_.]+", "-", name).lower()


def collect_modules(packages: Sequence[Dependency]) -> frozenset[str]:
    """The top-level modules of these packages, which code may import."""
    return frozenset(module for package in packages for module in package.modules)


def read_dependencies(directory: Path, lock: Sequence[LockedPackage]) -> tuple[Dependency, ...]:
    """Read the locked packages that were fetched into a directory, with their modules.

    Raises PackageUnusable for more than MAX_DEPENDENCIES packages, for a package without a list of
    its files, and for modules that would replace those of the interpreter or of the sandbox.
    """
    if len(lock) > MAX_DEPENDENCIES:
        raise PackageUnusable(f"{len(lock)} packages are more than {MAX_DEPENDENCIES}.")
    records = {
        normalize_name(path.parent.name.split("-")[0]): path for path in _find_records(directory)
    }
    return tuple(
        _read_dependency(package, records.get(normalize_name(package.name))) for package in lock
    )


def _find_records(directory: Path) -> Iterator[Path]:
    yield from sorted(directory.glob("*.dist-info/RECORD"))


def _read_dependency(package: LockedPackage, record: Path | None) -> Dependency:
    if record is None or record.stat().st_size > MAX_RECORD:
        raise PackageUnusable(f"{package.name[:100]} does not say which files it has.")
    with record.open(newline="", encoding="utf-8", errors="replace") as file:
        files = [row[0] for row in csv.reader(file) if row]
    modules = sorted({module for path in files if (module := _find_top_module(path))})
    for module in modules:
        if module in sys.stdlib_module_names or module in OURS:
            told = f"{package.name[:100]} brings a module {module}, which is there already"
            raise PackageUnusable(f"{told}. Leave it out.")
    native = any(path.endswith(_NATIVE) or ".so." in path for path in files)
    made = tuple(modules[:MAX_MODULES])
    return Dependency(package.name, package.version, package.digest, made, native)


def _find_top_module(path: str) -> str:
    """The top-level module that a file belongs to; "" for none."""
    first, slash, rest = path.partition("/")
    name = first if slash else first.partition(".")[0]
    is_code = rest.endswith((".py", *_NATIVE)) if slash else first.endswith((".py", *_NATIVE))
    return name if is_code and _MODULE.match(name) else ""


def parse_dependencies(listed: Any) -> tuple[Dependency, ...]:
    """The packages of `bundle.toml`. Raises ValueError that says which is wrong."""
    if not isinstance(listed, list) or len(listed) > MAX_DEPENDENCIES:
        raise ValueError(f"packages is no list of at most {MAX_DEPENDENCIES} tables")
    return tuple(_parse_dependency(number, item) for number, item in enumerate(listed))


def _parse_dependency(number: int, item: Any) -> Dependency:
    flat: Mapping[str, Any] = item if isinstance(item, dict) else {}
    for key, pattern in (("name", _NAME), ("version", _VERSION), ("digest", _DIGEST)):
        if not isinstance(flat.get(key), str) or not pattern.match(flat[key]):
            raise ValueError(f"packages[{number}]: {key} is none")
    modules = flat.get("modules", [])
    fitting = isinstance(modules, list) and all(isinstance(m, str) for m in modules)
    if not fitting or not all(map(_MODULE.match, modules)) or OURS & {*modules}:
        raise ValueError(f"packages[{number}]: modules is no list of names of modules")
    native = flat.get("native", False) is True
    return Dependency(flat["name"], flat["version"], flat["digest"], tuple(modules), native)


def render_dependencies(packages: Sequence[Dependency]) -> Iterator[str]:
    """The lines of `bundle.toml`."""
    for package in packages:
        yield from ("", "[[packages]]")
        yield f"name = {quote_toml(package.name)}"
        yield f"version = {quote_toml(package.version)}"
        yield f"digest = {quote_toml(package.digest)}"
        yield f"modules = [{', '.join(map(quote_toml, package.modules))}]"
        if package.native:
            yield "native = true"
