"""The bundles on disk: `<home>/servers/<name>/`, kept consistent with the store.

The files that a person sees and edits lie there directly; the version that was proved lies in
`history/<version>/` below it, so that an edit that fails its proofs takes nothing out of use.

The store's transaction commits a version. Its files are staged below the same directory and
flushed before the transaction, and renamed into place after it; recovery after a crash finishes
or undoes the installation by the digest that the store has.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from registry.database.files import flush_directory, lock_file, try_lock_file
from registry.errors import InstallationUnderWay, RowNotFound
from registry.models import Entry
from registry.servers.entries import ServerTable
from sandbox.bundle import report as stage_report
from sandbox.bundle.model import (
    NAME,
    Bundle,
    find_bundle,
    read_bundle,
    read_regular_file,
    write_bundle,
)
from sandbox.bundle.report import StageReport
from sandbox.errors import BundleInvalid

STAGING, RETIRED = ".staging", ".retired"
UNDER_WAY = ".installing"
"""Below `servers/`, on its file system: what is staged or moved aside. It is empty but during an
installation, so that nothing has to look through all servers for what a crash left.
"""
HISTORY, TESTS = "history", "tests"
MAX_TEST_BYTES = 4 * 1024 * 1024
LOCK = "catalogue"

_LEFTOVER = re.compile(r"\.(staging|retired)-[a-z][a-z0-9_]{0,39}-[0-9a-f]{16}\Z")


@dataclass(frozen=True)
class Inconsistency:
    """A difference between files and rows. `name` is the server's or the directory's."""

    name: str
    kind: Literal["missing", "changed", "unreadable", "unregistered", "leftover"]
    detail: str


def get_server_directory(home: Path, name: str) -> Path:
    """The directory of a server's current version. Raises ValueError for an invalid name."""
    if not NAME.match(name):
        raise ValueError(f"{name!r} is not a server's name")
    return home / "servers" / name


def install_bundle(
    home: Path,
    entries: ServerTable,
    bundle: Bundle,
    entry: Entry,
    reports: tuple[StageReport, ...] = (),
    *,
    now: float,
    tests: Mapping[str, bytes] | None = None,
    job: tuple[str, int] | None = None,
) -> Entry:
    """Install a version's files and rows together: both, or neither.

    `tests` are files of `tests/` by name. Raises what `ServerTable.publish` raises, BundleInvalid
    for a bundle that could not be read again, and OSError where the disk is full or read-only; the
    version before is untouched then.
    """
    servers = get_server_directory(home, bundle.name).parent
    servers.mkdir(mode=0o700, parents=True, exist_ok=True)
    (servers / UNDER_WAY).mkdir(mode=0o700, exist_ok=True)
    with lock_file(servers / LOCK), ExitStack() as undo:
        staged = _name_leftover(servers / bundle.name, STAGING)
        undo.callback(shutil.rmtree, staged, ignore_errors=True)
        _stage_bundle(staged, bundle, reports, tests or {})
        if find_bundle(staged, entry.digest) is None:
            reason = "read again, it is not the bundle that was to be registered"
            raise BundleInvalid(bundle.name, "its files", reason)
        registered = entries.publish(entry, reports, now=now, job=job)
        undo.pop_all()
        _settle_server(home, entries, bundle.name)
    return registered


def load_bundle(home: Path, name: str, digest: str) -> Bundle:
    """Read the bundle of a server with the registered digest. Raises BundleInvalid.

    Also finds it while it is registered but still staged, and where a person edited the files.
    """
    for _, bundle in _iterate_copies(home, name, digest):
        return bundle
    reason = "the files are missing or are not those that were registered and proved"
    raise BundleInvalid(str(get_server_directory(home, name)), "bundle.toml", reason)


def read_test(home: Path, name: str, digest: str, file: str) -> bytes | None:
    """A file of `tests/` beside the version of that digest; None where there is none.

    Raises BundleInvalid for what is no plain file or larger than 4 MiB.
    """
    for copy, _ in _iterate_copies(home, name, digest):
        if (copy / TESTS / file).exists():
            return read_test_content(copy, file)
    return None


def read_test_content(place: Path, file: str) -> bytes | None:
    """A file of `tests/` in a bundle's directory, as `read_test`."""
    path = place / TESTS / file
    if (place / TESTS).is_symlink() or not path.exists():
        return None
    return read_regular_file(path, MAX_TEST_BYTES)


def _iterate_copies(home: Path, name: str, digest: str) -> Iterator[tuple[Path, Bundle]]:
    """The directories, with their bundles, that hold a server's files with that digest."""
    for candidate in _iterate_places(home, name):
        try:
            bundle = find_bundle(candidate, digest)
        except BundleInvalid:
            continue
        if bundle is not None and bundle.name == name:
            yield candidate, bundle


def _iterate_places(home: Path, name: str) -> Iterator[Path]:
    """Where a server's files may be: mostly in the first place, so no other is looked for then."""
    place = get_server_directory(home, name)
    yield place
    yield from _find_leftovers(home, STAGING, name)
    # While another version is installed, the earlier ones are moved aside, then into its history.
    for retired in _find_leftovers(home, RETIRED, name):
        yield retired
        yield from _list_history(retired)
    yield from _list_history(place)


def _list_history(place: Path) -> list[Path]:
    return sorted((place / HISTORY).glob("*"))


def recover_installations(home: Path, entries: ServerTable) -> tuple[str, ...]:
    """Finish or undo the installations that a crash interrupted. Returns the servers' names.

    Can be run at any time.
    """
    servers = home / "servers"
    if not servers.is_dir():
        return ()
    with lock_file(servers / LOCK):
        names = sorted({path.name.split("-")[1] for path in _find_leftovers(home)})
        for name in names:
            _settle_server(home, entries, name)
    return tuple(names)


@contextmanager
def hold_settled(home: Path, entries: ServerTable, name: str) -> Iterator[None]:
    """While it is held, a server's row and files are of one version, but for what a person edits:
    no version is installed, and what a dead process began is settled. Raises InstallationUnderWay
    where somebody installs one just then.
    """
    servers = get_server_directory(home, name).parent
    with try_lock_file(servers / LOCK) as held:
        if not held:
            raise InstallationUnderWay(name)
        if any(path.name.split("-")[1] == name for path in _find_leftovers(home)):
            _settle_server(home, entries, name)
        yield


def check_consistency(home: Path, entries: ServerTable) -> tuple[Inconsistency, ...]:
    """Every place where the files and the store disagree. Changes nothing.

    `unregistered` and `changed` directories may be a person's edits that were not proved yet.
    """
    servers = home / "servers"
    registered = {entry.name: entry for entry in entries.find()}
    found = [problem for entry in registered.values() if (problem := check_entry(home, entry))]
    for path in _find_leftovers(home):
        detail = "left by an interrupted installation; a restart settles it"
        found.append(Inconsistency(path.name, "leftover", detail))
    for path in sorted(servers.iterdir()) if servers.is_dir() else ():
        if path.name not in registered and not path.name.startswith("."):
            detail = "there are files, but the store does not know the server"
            found.append(Inconsistency(path.name, "unregistered", detail))
    return tuple(found)


def check_entry(home: Path, entry: Entry) -> Inconsistency | None:
    """The problem with a server's files; None also where it is archived and has none."""
    place = get_server_directory(home, entry.name)
    if not place.is_dir() and entry.state == "archived":
        return None
    if not place.is_dir():
        return Inconsistency(entry.name, "missing", f"{place} is not there")
    try:
        digest = read_bundle(place).compute_digest()
    except BundleInvalid as error:
        return Inconsistency(entry.name, "unreadable", str(error))
    if digest == entry.digest:
        return None
    return Inconsistency(
        entry.name, "changed", f"the files have digest {digest}, {entry.digest} is registered"
    )


def _stage_bundle(
    staged: Path, bundle: Bundle, reports: tuple[StageReport, ...], tests: Mapping[str, bytes]
) -> None:
    staged.mkdir()
    write_bundle(bundle, staged)
    texts = {f"{report.stage}.json": _render_report(report) for report in reports}
    _write_folder(staged / "reports", texts)
    _write_folder(staged / TESTS, tests)
    (staged / HISTORY).mkdir()
    proved = staged / HISTORY / str(bundle.version)
    proved.mkdir()
    write_bundle(bundle, proved)
    flush_directory(staged)
    flush_directory(staged.parent)


def _render_report(report: StageReport) -> bytes:
    return (json.dumps(stage_report.to_json(report), indent=1) + "\n").encode()


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir()
    for name, content in files.items():
        if Path(name).name != name:
            raise ValueError(f"{name!r} is not a file name")
        with (folder / name).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    flush_directory(folder)


def _settle_server(home: Path, servers: ServerTable, name: str) -> None:
    """Make one server's directory match the store. The caller holds the lock.

    Every step is a rename, and from every state between two of them this function can go on.
    """
    place = get_server_directory(home, name)
    digest = _get_registered_digest(servers, name)
    if _read_digest(place) != digest:
        staged = next(
            (p for p in _find_leftovers(home, STAGING, name) if _read_digest(p) == digest), None
        )
        if staged is not None:
            if place.exists():
                place.rename(_name_leftover(place, RETIRED))
            staged.rename(place)
            _flush_servers(place.parent)
    for retired in _find_leftovers(home, RETIRED, name):
        if place.exists():
            _move_to_history(retired, place / HISTORY)
        else:
            retired.rename(place)
    for path in _find_leftovers(home, STAGING, name):
        shutil.rmtree(path, ignore_errors=True)
    _flush_servers(place.parent)


def _flush_servers(servers: Path) -> None:
    """Make renames between the servers and what is under way durable."""
    for directory in (servers, servers / UNDER_WAY):
        if directory.is_dir():
            flush_directory(directory)


def _get_registered_digest(servers: ServerTable, name: str) -> str:
    try:
        return servers.get(name).digest
    except RowNotFound:
        return ""


def _read_digest(path: Path) -> str | None:
    try:
        return read_bundle(path).compute_digest()
    except BundleInvalid:
        return None


def _move_to_history(retired: Path, history: Path) -> None:
    """Move a retired version, and the history it carries, into the history of its successor."""
    history.mkdir(exist_ok=True)
    carried = retired / HISTORY
    for earlier in sorted(carried.iterdir()) if carried.is_dir() else ():
        earlier.rename(_find_free_path(history, earlier.name))
    with suppress(FileNotFoundError):
        carried.rmdir()
    try:
        bundle = read_bundle(retired)
    except BundleInvalid:
        retired.rename(_find_free_path(history, "unreadable"))
    else:
        proved = history / str(bundle.version)
        if _read_digest(proved) == bundle.compute_digest():
            # Moved aside whole, for `_settle_server` to delete: a half-deleted version must not
            # be kept.
            proved.rename(_name_leftover(history.parent, STAGING))
        retired.rename(_find_free_path(history, str(bundle.version)))
    flush_directory(history)


def _find_free_path(folder: Path, name: str) -> Path:
    path = folder / name
    return path if not path.exists() else folder / f"{name}-{secrets.token_hex(4)}"


def _name_leftover(place: Path, kind: str) -> Path:
    """Where a version of the server whose directory is `place` is staged or moved aside."""
    return place.parent / UNDER_WAY / f"{kind}-{place.name}-{secrets.token_hex(8)}"


def _find_leftovers(home: Path, kind: str = "", name: str = "") -> tuple[Path, ...]:
    kinds = (kind,) if kind else (STAGING, RETIRED)
    under_way = home / "servers" / UNDER_WAY
    found = (path for one in kinds for path in sorted(under_way.glob(f"{one}-{name or '*'}-*")))
    return tuple(path for path in found if _LEFTOVER.match(path.name))
