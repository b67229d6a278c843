"""Fetching of npm and PyPI packages by the user's own clients, locked by their digests.

None of a package's code runs while it is fetched: no install scripts, no building from source.
"""

from __future__ import annotations

import configparser
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.bundle.launch import LockedPackage
from sandbox.errors import PackageUnusable

PLACE = "/opt/server"
"""The directory of a fetched tree in the image."""
SECONDS = 600.0
MAX_OUTPUT = 2000
MAX_JSON = 64 * 1024 * 1024

_NPM = re.compile(
    r"(?P<name>(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*)(?:@[\w.^~<>=*-]+)?\Z"
)
_PYPI = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[A-Za-z0-9,._-]+\])?"
    r"(?:(?:==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!_,<>=~-]+)?\Z"
)
_ENTRY = re.compile(r"(?P<module>[A-Za-z_][\w.]*)\s*:\s*(?P<name>[A-Za-z_][\w.]*)\s*(?:\[.*\])?\Z")
RUN_ENTRY = (
    "import functools, importlib, sys; sys.argv[0] = {script!r}; "
    "sys.exit(functools.reduce(getattr, {path!r}, importlib.import_module({module!r}))())"
)


@dataclass(frozen=True)
class FetchedProgram:
    """A fetched program: its command once the tree is copied to `PLACE`, and its lock."""

    name: str
    version: str
    command: tuple[str, ...]
    lock: tuple[LockedPackage, ...]


@dataclass(frozen=True)
class PythonTarget:
    """The interpreter that wheels are fetched for: version (`3.12`) and machine (`x86_64`)."""

    version: str
    machine: str


def fetch_tree(spec: str, directory: Path) -> dict[str, Any]:
    """Fetch an npm package and its dependencies into an empty directory; returns npm's lock file.

    `spec` is `NAME[@VERSION]` or the path of a `.tgz`. Raises PackageUnusable.
    """
    local = spec.endswith(".tgz") and Path(spec).is_file()
    if not local and not _NPM.match(spec):
        raise PackageUnusable(f"{spec[:200]!r} is no npm package: give NAME[@VERSION] or a .tgz.")
    (directory / "package.json").write_text('{"private": true}\n')
    flags = ("--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--no-progress")
    wanted = str(Path(spec).absolute()) if local else spec
    _run_command(("npm", "install", *flags, "--save-exact", "--", wanted), directory)
    return _read_json(directory / "package-lock.json")


def fetch_npm(
    spec: str, directory: Path, binary: str = "", arguments: Sequence[str] = ()
) -> FetchedProgram:
    """Fetch an npm package (`fetch_tree`). `binary` names one of its programs, by default its only
    one, or the one of the package's name. Raises PackageUnusable.
    """
    locked = fetch_tree(spec, directory)
    packages = locked.get("packages")
    if not isinstance(packages, dict):
        raise PackageUnusable("npm wrote no lock file of version 2 or 3. Update npm and try again.")
    name = _find_requested_name(packages)
    top = directory / "node_modules" / name
    about = _read_json(top / "package.json")
    program = _find_program(about, name, binary)
    if not (top / program).is_file() or ".." in Path(program).parts:
        raise PackageUnusable(f"{name} has no file {program[:200]}, which it says is its program.")
    return FetchedProgram(
        name,
        str(about.get("version", "")),
        ("node", f"{PLACE}/node_modules/{name}/{os.path.normpath(program)}", *arguments),
        tuple(_read_npm_lock(packages)),
    )


def fetch_pypi(
    specs: Sequence[str],
    directory: Path,
    python: PythonTarget,
    *,
    script: str = "",
    module: str = "",
    arguments: Sequence[str] = (),
) -> FetchedProgram:
    """Fetch PyPI packages and their dependencies as wheels into an empty directory.

    The command runs the console script `script`, by default of the first package's name, or
    `module` as `python -m` does.
    Specs are `NAME[==VERSION]` or paths of wheels. Raises PackageUnusable.
    """
    for spec in specs:
        if not _PYPI.match(spec) and not (spec.endswith(".whl") and Path(spec).is_file()):
            told = f"{spec[:200]!r} is no PyPI package"
            raise PackageUnusable(f"{told}: give NAME[==VERSION] or the path of a wheel.")
    lock = _install_wheels(("--", *specs), directory, python)
    first = lock[0] if (wheel := specs[0]).endswith(".whl") else _find_locked(lock, wheel)
    if module:
        command = ("python3", "-P", "-m", module)
    else:
        command = ("python3", "-P", "-c", _build_entry(directory, script or first.name))
    return FetchedProgram(first.name, first.version, (*command, *arguments), lock)


def fetch_wheels(
    specs: Sequence[str], directory: Path, python: PythonTarget
) -> tuple[LockedPackage, ...]:
    """Fetch PyPI packages (`NAME[==VERSION]`) and their dependencies as wheels into an empty
    directory; returns their lock. Raises PackageUnusable.
    """
    for spec in specs:
        if not _PYPI.match(spec):
            raise PackageUnusable(f"{spec[:200]!r} is no PyPI package: give NAME[==VERSION].")
    return _install_wheels(("--", *specs), directory, python)


def fetch_locked(lock: Sequence[LockedPackage], directory: Path, python: PythonTarget) -> None:
    """Fetch exactly these packages into an empty directory.

    Raises PackageUnusable, also if a digest is not the locked one.
    """
    listed = directory.parent / "requirements.txt"
    lines = (f"{p.name}=={p.version} --hash={p.digest}\n" for p in lock)
    listed.write_text("".join(lines))
    _install_wheels(("--require-hashes", "--no-deps", "-r", str(listed)), directory, python)


def _install_wheels(
    wanted: Sequence[str], directory: Path, python: PythonTarget
) -> tuple[LockedPackage, ...]:
    report = directory.parent / "report.json"
    flags = ["--target", str(directory), "--only-binary", ":all:", "--no-compile", "--quiet"]
    flags += ["--no-input", "--disable-pip-version-check", "--report", str(report)]
    _run_command(
        (*_find_pip(), "install", *flags, *_choose_platform_flags(python), *wanted), directory
    )
    return tuple(_read_pip_lock(_read_json(report)))


def _run_command(command: Sequence[str], directory: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        told = f"{command[0]} is not installed. Install it and try again."
        raise PackageUnusable(told) from error
    except subprocess.TimeoutExpired as error:
        raise PackageUnusable(f"{command[0]} took longer than {SECONDS:g} s.") from error
    if done.returncode:
        told = (done.stderr or done.stdout).strip()[-MAX_OUTPUT:]
        raise PackageUnusable(f"{command[0]} could not fetch the package:\n{told}")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(MAX_JSON))
    except (OSError, ValueError, RecursionError) as error:
        raise PackageUnusable(f"{path.name} of the package cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise PackageUnusable(f"{path.name} of the package is no JSON object.")
    return value


def _find_requested_name(packages: dict[str, Any]) -> str:
    asked = packages.get("", {}).get("dependencies")
    if not isinstance(asked, dict) or len(asked) != 1:
        raise PackageUnusable("npm's lock file does not say which package was asked for.")
    name = str(next(iter(asked)))
    if not _NPM.match(name):
        raise PackageUnusable(f"{name[:200]!r} is not a package name.")
    return name


def _find_program(about: dict[str, Any], name: str, wanted: str) -> str:
    """The file of a package's program (npm docs, package.json, "bin")."""
    own = name.rpartition("/")[2]
    programs = about.get("bin")
    programs = {own: programs} if isinstance(programs, str) else programs
    if not isinstance(programs, dict) or not programs:
        raise PackageUnusable(f"{name} has no program to start.")
    if not wanted:
        wanted = own if own in programs or len(programs) > 1 else next(iter(programs))
    if wanted not in programs:
        known = ", ".join(map(str, programs))[:300]
        told = f"{name} has no program {wanted}, but {known}"
        raise PackageUnusable(f"{told}. Name one: `npx -p {name} PROGRAM`.")
    return str(programs[wanted])


def _read_npm_lock(packages: dict[str, Any]) -> list[LockedPackage]:
    locked = []
    for path, package in packages.items():
        if not path:
            continue
        if package.get("link") or not package.get("integrity"):
            if package.get("inBundle"):
                continue
            raise PackageUnusable(f"{path[:200]} has no digest, and cannot be locked.")
        name = path.rpartition("node_modules/")[2]
        locked.append(LockedPackage(name, str(package["version"]), str(package["integrity"])))
    return locked


def _find_pip() -> tuple[str, ...]:
    if importlib.util.find_spec("pip"):
        return sys.executable, "-m", "pip"
    for name in ("pip3", "pip"):
        if shutil.which(name):
            return (name,)
    raise PackageUnusable("pip is not installed. Install it and try again.")


def _choose_platform_flags(python: PythonTarget) -> list[str]:
    """pip's flags for another interpreter or machine than ours; none for the same."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if (ours, os.uname().machine) == (python.version, python.machine) and sys.platform == "linux":
        return []
    flags = ["--python-version", python.version, "--implementation", "cp"]
    for tag in ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34", "linux"):
        flags += ["--platform", f"{tag}_{python.machine}"]
    return flags


def _read_pip_lock(report: dict[str, Any]) -> list[LockedPackage]:
    """The lock of an installation report (pip documentation, "Installation Report")."""
    locked = []
    for item in report.get("install", ()):
        about, origin = item["metadata"], item["download_info"].get("archive_info", {})
        digest = origin.get("hashes", {}).get("sha256")
        if not digest:
            raise PackageUnusable(f"{about['name']} has no digest, and cannot be locked.")
        locked.append(LockedPackage(about["name"], about["version"], f"sha256:{digest}"))
    if not locked:
        raise PackageUnusable("pip fetched nothing.")
    return locked


def _find_locked(lock: Sequence[LockedPackage], spec: str) -> LockedPackage:
    match = _PYPI.match(spec)
    wanted = _normalize_name(match["name"] if match else spec)
    for package in lock:
        if _normalize_name(package.name) == wanted:
            return package
    raise PackageUnusable(f"pip fetched no {spec[:200]}.")


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _build_entry(directory: Path, script: str) -> str:
    """Python code that runs a console script (Python packaging, "Entry points specification")."""
    known: list[str] = []
    for path in sorted(directory.glob("*.dist-info/entry_points.txt")):
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        try:
            parser.read_string(path.read_text(errors="replace"))
        except configparser.Error:
            continue
        scripts = dict(parser["console_scripts"]) if "console_scripts" in parser else {}
        known += scripts
        match = _ENTRY.match(scripts.get(script, ""))
        if match:
            return RUN_ENTRY.format(
                script=script, path=match["name"].split("."), module=match["module"]
            )
    told = ", ".join(known)[:300] or "none"
    raise PackageUnusable(f"there is no script {script}. The packages have: {told}.")
