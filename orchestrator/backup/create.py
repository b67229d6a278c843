"""Making a backup of a home: one consistent point of it, while its processes run."""

from __future__ import annotations

import importlib.metadata
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.approvals.signing_key import sign_audit
from orchestrator.settings import Settings
from registry.audit.heads import HEADS, KEY
from registry.backup.archive import (
    Source,
    Tell,
    check_free_space,
    describe_member,
    sum_sizes,
    write_backup,
)
from registry.backup.manifest import (
    AUDIT,
    CHECKPOINTS,
    DATABASE,
    INSTANCE,
    PIN,
    PUSH,
    SERVERS,
    VAULT,
    Manifest,
)
from registry.database.files import lock_file
from registry.database.readonly import connect_readonly
from registry.database.tables import HEAD
from registry.errors import BackupFailed, PinUnusable
from registry.secrets.pin import read_public_key
from registry.secrets.signing import compute_fingerprint
from registry.secrets.vault import read_key_place
from registry.servers.files import LOCK
from registry.store import Store


@dataclass(frozen=True)
class BackupReport:
    """`sha256` is the file's. `vault_key` says where the vault's key is, which is not in the file;
    "" where there is no vault. `left_out` are files of servers that are no regular files.
    """

    file: str
    sha256: str
    bytes: int
    files: int
    made: float
    vault_key: str
    left_out: tuple[str, ...]


def create_backup(settings: Settings, file: Path, *, replace: bool, tell: Tell) -> BackupReport:
    """Write a backup of the home. Raises BackupFailed, DatabaseUnusable, OSError."""
    file = file.absolute()
    _check_place(settings, file, replace)
    with Store.open(settings.database_url) as store:
        sign_audit(settings, store.audit)
        database = store.path
    needed = 2 * sum_sizes(_iterate_paths(settings, database))
    check_free_space(file.parent, needed, shutil.disk_usage(file.parent).free)
    with tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as work:
        sources, left_out = _collect_sources(settings, database, Path(work), tell)
        manifest = Manifest(
            made=time.time(),
            toolwright=importlib.metadata.version("toolwright"),
            schema=HEAD,
            instance=settings.instance,
            key=_find_fingerprint(settings.pin),
            vault_key=read_key_place(settings.vault) if VAULT in sources else "",
            members=tuple(describe_member(name, sources[name]) for name in sorted(sources)),
        )
        digest = write_backup(file, manifest, sources, replace=replace, tell=tell)
    return BackupReport(
        file=str(file),
        sha256=digest,
        bytes=file.stat().st_size,
        files=len(manifest.members),
        made=manifest.made,
        vault_key=manifest.vault_key,
        left_out=left_out,
    )


def _check_place(settings: Settings, file: Path, replace: bool) -> None:
    if not file.parent.is_dir():
        raise BackupFailed(f"there is no directory {file.parent}")
    if file.resolve().is_relative_to(settings.home.resolve()):
        raise BackupFailed(f"{file} is in the home, and would be lost with it")
    if file.is_dir() or (file.exists() and not replace):
        raise BackupFailed(f"{file} is there already; --force replaces it")


def _iterate_paths(settings: Settings, database: Path) -> Iterator[Path]:
    yield from (database, database.with_name(f"{database.name}-wal"), settings.checkpoints)
    for directory in (settings.heads, settings.servers):
        yield from (path for path in directory.rglob("*") if path.is_file())


def _collect_sources(
    settings: Settings, database: Path, work: Path, tell: Tell
) -> tuple[dict[str, Source], tuple[str, ...]]:
    """The content of each member, none of which changes any more, and what was left out.

    The signed heads are read before the database, since they must not name rows that it has not,
    and the archives after it, since it must not name archives that are not there. No version is
    installed meanwhile, so that files and rows agree.
    """
    settings.servers.mkdir(mode=0o700, exist_ok=True)
    with lock_file(settings.servers / LOCK):
        sources: dict[str, Source] = dict(_read_heads(settings.heads))
        tell("database")
        sources[DATABASE] = _copy_database(database, work / DATABASE)
        servers, left_out = _copy_servers(settings.servers, work / SERVERS)
    if settings.checkpoints.is_file():
        tell("checkpoints")
        sources[CHECKPOINTS] = _copy_database(settings.checkpoints, work / CHECKPOINTS)
    for path in sorted(settings.heads.glob("*.gz")):
        sources[f"{AUDIT}/{path.name}"] = path
    sources |= servers
    small = ((VAULT, settings.vault), (PIN, settings.pin), (PUSH, settings.push))
    for name, path in (*small, (INSTANCE, settings.home / INSTANCE)):
        with suppress(FileNotFoundError):
            sources[name] = path.read_bytes()
    return sources, left_out


def _read_heads(directory: Path) -> Iterator[tuple[str, bytes]]:
    for name in (HEADS, KEY):
        with suppress(FileNotFoundError):
            yield f"{AUDIT}/{name}", (directory / name).read_bytes()


def _copy_database(path: Path, copy: Path) -> Path:
    """One consistent state of a database that others write meanwhile, with all that its journal
    holds (https://www.sqlite.org/backup.html).
    """
    try:
        with (
            closing(connect_readonly(path, 60)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            copy.chmod(0o600)
            source.backup(target)
            # A file by itself: whoever opens it finds no journal beside it.
            target.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise BackupFailed(f"{path} cannot be read: {error}") from error
    return copy


def _copy_servers(directory: Path, copy: Path) -> tuple[dict[str, Path], tuple[str, ...]]:
    found: dict[str, Path] = {}
    left_out = []
    for path in sorted(directory.rglob("*")):
        parts = path.relative_to(directory).parts
        # Locks, and what an interrupted installation left, belong to nobody.
        if len(parts) < 2 or parts[0].startswith(".") or "__pycache__" in parts:
            continue
        name = "/".join((SERVERS, *parts))
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            left_out.append(name)
        elif path.is_file():
            found[name] = copy.joinpath(*parts)
            found[name].parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, found[name], follow_symlinks=False)
    return found, tuple(left_out)


def _find_fingerprint(pin: Path) -> str:
    try:
        public = read_public_key(pin)
    except PinUnusable:
        return ""
    return compute_fingerprint(public) if public else ""
