"""The bundles on disk: `<home>/servers/<name>/`, kept in step with the store.

What a person sees and edits lies there directly; the version that was proved lies beside it, in
`history/<version>/`, so that an edit that fails its proofs takes nothing out of use.

The store's transaction is the moment a version becomes real. A new one is staged beside the old
one and flushed before it, and put in place after it; whatever a crash leaves between, `recover`
finishes or takes back by asking the store which digest was published.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from registry.errors import Unknown
from registry.files import flush_directory, locked
from registry.records import Entry
from registry.store import Store
from sandbox import report as stage_report
from sandbox.bundle import NAME, Bundle, read_bundle, read_regular, write_bundle
from sandbox.errors import BundleInvalid
from sandbox.report import StageReport

STAGING, RETIRED = ".staging", ".retired"
HISTORY, TESTS = "history", "tests"
MAX_TEST_BYTES = 4 * 1024 * 1024
LOCK = "catalogue"

_LEFTOVER = re.compile(r"\.(staging|retired)-[a-z][a-z0-9_]{0,39}-[0-9a-f]{16}\Z")


@dataclass(frozen=True)
class Inconsistency:
    """One place where files and rows disagree. `name` is the server's or the directory's."""

    name: str
    kind: Literal["missing", "changed", "unreadable", "unregistered", "leftover"]
    detail: str


def directory(home: Path, name: str) -> Path:
    """Where the current version of a server lives. Raises ValueError for what is no name."""
    if not NAME.match(name):
        raise ValueError(f"{name!r} is not a server's name")
    return home / "servers" / name


def install(
    home: Path,
    store: Store,
    bundle: Bundle,
    entry: Entry,
    reports: tuple[StageReport, ...] = (),
    *,
    now: float,
    tests: Mapping[str, bytes] | None = None,
    job: tuple[str, int] | None = None,
) -> Entry:
    """Put a version's files and rows in place together: both, or neither.

    `tests` are files of `tests/` by name. Raises what `Store.publish` raises, and OSError where the
    disk is full or read-only; the version before is untouched then.
    """
    servers = directory(home, bundle.name).parent
    servers.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(servers / LOCK), ExitStack() as undo:
        staged = servers / f"{STAGING}-{bundle.name}-{secrets.token_hex(8)}"
        undo.callback(shutil.rmtree, staged, ignore_errors=True)
        _stage(staged, bundle, reports, tests or {})
        registered = store.publish(entry, reports, now=now, job=job)
        undo.pop_all()
        _settle(home, store, bundle.name)
    return registered


def load(home: Path, name: str, digest: str) -> Bundle:
    """The bundle of a server whose digest is the registered one. Raises BundleInvalid.

    Finds it also in the moment between its registration and its being put in place, and under a
    person's edits.
    """
    for _, bundle in _copies(home, name, digest):
        return bundle
    reason = "the files are missing or are not those that were registered and proved"
    raise BundleInvalid(str(directory(home, name)), "bundle.toml", reason)


def read_test(home: Path, name: str, digest: str, file: str) -> bytes | None:
    """A file of `tests/` beside the version of that digest; None where there is none.

    Raises BundleInvalid for what is no plain file or larger than 4 MiB.
    """
    for copy, _ in _copies(home, name, digest):
        if (copy / TESTS / file).exists():
            return test_content(copy, file)
    return None


def test_content(place: Path, file: str) -> bytes | None:
    """A file of `tests/` in a bundle's directory, as `read_test`."""
    path = place / TESTS / file
    if (place / TESTS).is_symlink() or not path.exists():
        return None
    return read_regular(path, MAX_TEST_BYTES)


def _copies(home: Path, name: str, digest: str) -> Iterator[tuple[Path, Bundle]]:
    """Where a server's files with that digest lie."""
    place = directory(home, name)
    kept = sorted((place / HISTORY).glob("*")) if (place / HISTORY).is_dir() else ()
    for candidate in (place, *_leftovers(home, STAGING, name), *kept):
        try:
            bundle = read_bundle(candidate)
        except BundleInvalid:
            continue
        if bundle.name == name and bundle.digest() == digest:
            yield candidate, bundle


def recover(home: Path, store: Store) -> tuple[str, ...]:
    """Finish or take back what a crash interrupted; the names concerned. Run at start, any time."""
    servers = home / "servers"
    if not servers.is_dir():
        return ()
    with locked(servers / LOCK):
        names = sorted({path.name.split("-")[1] for path in _leftovers(home)})
        for name in names:
            _settle(home, store, name)
    return tuple(names)


def check(home: Path, store: Store) -> tuple[Inconsistency, ...]:
    """Every place where the files and the store disagree. Changes nothing.

    `unregistered` and `changed` directories may be a person's edits that were not proved yet.
    """
    servers = home / "servers"
    entries = {entry.name: entry for entry in store.entries()}
    found = [problem for entry in entries.values() if (problem := _check_entry(home, entry))]
    leftovers = _leftovers(home)
    for path in sorted(servers.iterdir()) if servers.is_dir() else ():
        if path in leftovers:
            detail = "left by an interrupted installation; a restart settles it"
            found.append(Inconsistency(path.name, "leftover", detail))
        elif path.name not in entries and not path.name.startswith("."):
            detail = "there are files, but the store does not know the server"
            found.append(Inconsistency(path.name, "unregistered", detail))
    return tuple(found)


def _check_entry(home: Path, entry: Entry) -> Inconsistency | None:
    """What is wrong with a server's files; nothing where it was archived with them."""
    place = directory(home, entry.name)
    if not place.is_dir() and entry.state == "archived":
        return None
    if not place.is_dir():
        return Inconsistency(entry.name, "missing", f"{place} is not there")
    try:
        digest = read_bundle(place).digest()
    except BundleInvalid as error:
        return Inconsistency(entry.name, "unreadable", str(error))
    if digest == entry.digest:
        return None
    return Inconsistency(
        entry.name, "changed", f"the files have digest {digest}, {entry.digest} is registered"
    )


def _stage(
    staged: Path, bundle: Bundle, reports: tuple[StageReport, ...], tests: Mapping[str, bytes]
) -> None:
    staged.mkdir()
    write_bundle(bundle, staged)
    texts = {f"{report.stage}.json": _report_bytes(report) for report in reports}
    _write_folder(staged / "reports", texts)
    _write_folder(staged / TESTS, tests)
    (staged / HISTORY).mkdir()
    proved = staged / HISTORY / str(bundle.version)
    proved.mkdir()
    write_bundle(bundle, proved)
    flush_directory(staged)
    flush_directory(staged.parent)


def _report_bytes(report: StageReport) -> bytes:
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


def _settle(home: Path, store: Store, name: str) -> None:
    """Bring one server's directory to what the store says. Needs the lock.

    Every step is a rename, and each state between two of them is one that this function settles.
    """
    place = directory(home, name)
    digest = _registered_digest(store, name)
    if _digest_of(place) != digest:
        staged = next((p for p in _leftovers(home, STAGING, name) if _digest_of(p) == digest), None)
        if staged is not None:
            if place.exists():
                place.rename(_beside(place, RETIRED))
            staged.rename(place)
            flush_directory(place.parent)
    for retired in _leftovers(home, RETIRED, name):
        if place.exists():
            _keep(retired, place / HISTORY)
        else:
            retired.rename(place)
    for path in _leftovers(home, STAGING, name):
        shutil.rmtree(path, ignore_errors=True)
    if place.parent.is_dir():
        flush_directory(place.parent)


def _registered_digest(store: Store, name: str) -> str:
    try:
        return store.entry(name).digest
    except Unknown:
        return ""


def _digest_of(path: Path) -> str | None:
    try:
        return read_bundle(path).digest()
    except BundleInvalid:
        return None


def _keep(retired: Path, history: Path) -> None:
    """Move a retired version, and the history it carries, into the history of its successor."""
    history.mkdir(exist_ok=True)
    carried = retired / HISTORY
    for earlier in sorted(carried.iterdir()) if carried.is_dir() else ():
        earlier.rename(_free(history, earlier.name))
    with suppress(FileNotFoundError):
        carried.rmdir()
    try:
        bundle = read_bundle(retired)
    except BundleInvalid:
        retired.rename(_free(history, "unreadable"))
    else:
        proved = history / str(bundle.version)
        if _digest_of(proved) == bundle.digest():
            # Moved aside whole, for `_settle` to delete: a half-deleted version must not be kept.
            proved.rename(_beside(history.parent, STAGING))
        retired.rename(_free(history, str(bundle.version)))
    flush_directory(history)


def _free(folder: Path, name: str) -> Path:
    path = folder / name
    return path if not path.exists() else folder / f"{name}-{secrets.token_hex(4)}"


def _beside(place: Path, kind: str) -> Path:
    return place.with_name(f"{kind}-{place.name}-{secrets.token_hex(8)}")


def _leftovers(home: Path, kind: str = "", name: str = "") -> tuple[Path, ...]:
    kinds = (kind,) if kind else (STAGING, RETIRED)
    servers = home / "servers"
    found = (path for one in kinds for path in sorted(servers.glob(f"{one}-{name or '*'}-*")))
    return tuple(path for path in found if _LEFTOVER.match(path.name))
