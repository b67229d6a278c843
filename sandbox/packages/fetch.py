"""Fetching of npm and PyPI packages by npm and pip in containers, locked by their digests.

None of a package's code runs while it is fetched: there are no install scripts and no building from
source, and a fetching container can start no process. Packages come from the registry alone, by
name and version: whatever names git, a URL or a path is refused before it is asked for.
"""

from __future__ import annotations

import configparser
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sandbox.bundle.launch import LockedPackage
from sandbox.bundle.packages import normalize_name
from sandbox.engines.docker.engine import connect_engine
from sandbox.engines.docker.layers import PLACE, FetchedProgram, PythonTarget
from sandbox.errors import PackageUnusable
from sandbox.packages.container import LABELS, WORK, FetchJob, run_fetch
from sandbox.packages.images import build_npm_image, build_pip_image
from sandbox.packages.registries import Registry, is_on_registry, load_npm, load_pypi

INPUT = f"{WORK}/in"
MAX_JSON = 16 * 1024 * 1024
MAX_LOCAL = 512 * 1024 * 1024
NPM_FLAGS = (
    *("--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--no-progress"),
    *("--no-update-notifier", "--save-exact", "--loglevel=error"),
    *(f"--userconfig={WORK}/npmrc", f"--globalconfig={WORK}/global", f"--cache={WORK}/cache"),
)

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


def fetch_tree(spec: str, directory: Path, labels: Mapping[str, str] = LABELS) -> dict[str, Any]:
    """Fetch an npm package and its dependencies into an empty directory; returns npm's lock file.

    `spec` is `NAME[@VERSION]` or the path of a `.tgz`. Raises PackageUnusable, and what the engine
    raises.
    """
    files = _read_local(spec, ".tgz")
    if not files and not _NPM.match(spec):
        raise PackageUnusable(f"{spec[:200]!r} is no npm package: give NAME[@VERSION] or a .tgz.")
    registry = load_npm()
    local = next(iter(files), "")
    wanted = f"{INPUT}/{local}" if local else spec
    arguments = (*NPM_FLAGS, f"--registry={registry.index}", "--", wanted)
    hosts = [str(target).removesuffix(":443").removesuffix(":80") for target in registry.hosts]
    order = {"arguments": arguments, "local": local, "hosts": hosts}
    with closing(connect_engine()) as client:
        image = build_npm_image(client, lambda line: None, labels)
        job = FetchJob(image, registry, order, files, node=True)
        run_fetch(client, job, directory, labels)
    return _read_json(directory / "package-lock.json")


def fetch_npm(
    spec: str,
    directory: Path,
    binary: str = "",
    arguments: Sequence[str] = (),
    labels: Mapping[str, str] = LABELS,
) -> FetchedProgram:
    """Fetch an npm package (`fetch_tree`). `binary` names one of its programs, by default its only
    one, or the one of the package's name. Raises like `fetch_tree`.
    """
    locked = fetch_tree(spec, directory, labels)
    packages = locked.get("packages")
    if not isinstance(packages, dict):
        raise PackageUnusable("npm wrote no lock file of version 2 or 3.")
    lock = tuple(_read_npm_lock(packages, load_npm()))
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
        lock,
    )


def fetch_pypi(
    specs: Sequence[str],
    directory: Path,
    python: PythonTarget | None = None,
    *,
    script: str = "",
    module: str = "",
    arguments: Sequence[str] = (),
    labels: Mapping[str, str] = LABELS,
) -> FetchedProgram:
    """Fetch PyPI packages and their dependencies as wheels into an empty directory, for the base
    image's Python or another one.

    The command runs the console script `script`, by default of the first package's name, or
    `module` as `python -m` does. Specs are `NAME[==VERSION]` or paths of wheels. Raises like
    `fetch_tree`.
    """
    files: dict[str, bytes] = {}
    wanted = []
    for spec in specs:
        local = {} if _PYPI.match(spec) else _read_local(spec, ".whl")
        if not local and not _PYPI.match(spec):
            told = f"{spec[:200]!r} is no PyPI package"
            raise PackageUnusable(f"{told}: give NAME[==VERSION] or the path of a wheel.")
        files |= local
        wanted.append(f"{INPUT}/{next(iter(local))}" if local else spec)
    lock = _install_wheels(("--", *wanted), directory, python, files, labels)
    first = lock[0] if (wheel := specs[0]).endswith(".whl") else _find_locked(lock, wheel)
    if module:
        command = ("python3", "-P", "-m", module)
    else:
        command = ("python3", "-P", "-c", _build_entry(directory, script or first.name))
    return FetchedProgram(first.name, first.version, (*command, *arguments), lock)


def fetch_wheels(
    specs: Sequence[str],
    directory: Path,
    python: PythonTarget | None = None,
    *,
    labels: Mapping[str, str] = LABELS,
) -> tuple[LockedPackage, ...]:
    """Fetch PyPI packages (`NAME[==VERSION]`) and their dependencies as wheels into an empty
    directory; returns their lock. Raises like `fetch_tree`.
    """
    for spec in specs:
        if not _PYPI.match(spec):
            raise PackageUnusable(f"{spec[:200]!r} is no PyPI package: give NAME[==VERSION].")
    return _install_wheels(("--", *specs), directory, python, {}, labels)


def fetch_locked(
    lock: Sequence[LockedPackage],
    directory: Path,
    python: PythonTarget | None = None,
    *,
    labels: Mapping[str, str] = LABELS,
) -> None:
    """Fetch exactly these packages into an empty directory.

    Raises like `fetch_tree`, PackageUnusable also if a digest is not the locked one.
    """
    for package in lock:
        if not _PYPI.match(f"{package.name}=={package.version}"):
            raise PackageUnusable(f"{package.name[:200]!r} is no PyPI package of one version.")
    listed = "".join(f"{p.name}=={p.version} --hash={p.digest}\n" for p in lock)
    flags = ("--require-hashes", "--no-deps", "-r", f"{INPUT}/requirements.txt")
    files = {"requirements.txt": listed.encode()}
    _install_wheels(flags, directory, python, files, labels)


def _install_wheels(
    wanted: Sequence[str],
    directory: Path,
    python: PythonTarget | None,
    files: Mapping[str, bytes],
    labels: Mapping[str, str],
) -> tuple[LockedPackage, ...]:
    registry = load_pypi()
    flags = ["--index-url", registry.index]
    for url in registry.more:
        flags += ["--extra-index-url", url]
    for target in sorted(map(str, registry.plain)):
        flags += ["--trusted-host", target]
    order: dict[str, Any] = {"arguments": (*flags, *wanted)}
    if python is not None:
        order["python"] = [python.version, python.machine]
    with closing(connect_engine()) as client:
        image = build_pip_image(client, lambda line: None)
        job = FetchJob(image, registry, order, files)
        report = run_fetch(client, job, directory, labels)
    # Python reads them in its own directories alone, and this will be none of these.
    for path in directory.glob("*.pth"):
        path.unlink()
    return tuple(_read_pip_lock(_parse_json(report, "pip's report"), registry, files))


def _read_local(spec: str, suffix: str) -> dict[str, bytes]:
    """The content of a package's archive by its name; empty if there is no such file."""
    path = Path(spec)
    if not spec.endswith(suffix) or not path.is_file():
        return {}
    if path.stat().st_size > MAX_LOCAL:
        raise PackageUnusable(f"{spec[:200]} is larger than {MAX_LOCAL} bytes.")
    return {path.name: path.read_bytes()}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_JSON)
    except OSError as error:
        raise PackageUnusable(f"{path.name} of the package cannot be read: {error}.") from error
    return _parse_json(text, f"{path.name} of the package")


def _parse_json(text: str | bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PackageUnusable(f"{what} cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise PackageUnusable(f"{what} is no JSON object.")
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


def _read_npm_lock(packages: dict[str, Any], registry: Registry) -> list[LockedPackage]:
    locked = []
    for number, (path, package) in enumerate(packages.items()):
        if not path or package.get("inBundle"):
            continue
        origin = str(package.get("resolved", ""))
        own = number == 1 and origin.startswith("file:")
        if package.get("link") or not (own or is_on_registry(origin, registry)):
            raise PackageUnusable(
                f"{path[:200]} comes from {origin[:200] or 'a path'} and not from the registry. "
                "Packages are taken from the registry alone, by name and version."
            )
        if not package.get("integrity"):
            raise PackageUnusable(f"{path[:200]} has no digest, and cannot be locked.")
        name = path.rpartition("node_modules/")[2]
        locked.append(LockedPackage(name, str(package["version"]), str(package["integrity"])))
    return locked


def _read_pip_lock(
    report: dict[str, Any], registry: Registry, files: Mapping[str, bytes]
) -> list[LockedPackage]:
    """The lock of an installation report (pip documentation, "Installation Report")."""
    own = {f"file://{INPUT}/{name}" for name in files}
    locked = []
    for item in report.get("install", ()):
        about, origin = item["metadata"], item["download_info"]
        url = unquote(str(origin.get("url", "")))
        if url not in own and (item.get("is_direct") or not is_on_registry(url, registry)):
            raise PackageUnusable(
                f"{about['name']} comes from {url[:200]} and not from the index. "
                "Packages are taken from the index alone, by name and version."
            )
        digest = origin.get("archive_info", {}).get("hashes", {}).get("sha256")
        if not digest:
            raise PackageUnusable(f"{about['name']} has no digest, and cannot be locked.")
        locked.append(LockedPackage(about["name"], about["version"], f"sha256:{digest}"))
    if not locked:
        raise PackageUnusable("pip fetched nothing.")
    return locked


def _find_locked(lock: Sequence[LockedPackage], spec: str) -> LockedPackage:
    match = _PYPI.match(spec)
    wanted = normalize_name(match["name"] if match else spec)
    for package in lock:
        if normalize_name(package.name) == wanted:
            return package
    raise PackageUnusable(f"pip fetched no {spec[:200]}.")


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
