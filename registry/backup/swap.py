"""Putting a restored home in the place of the present one, whole or not at all.

The restored files are complete and flushed in `<home>/.restore/new` before the file `commit` is
made there; up to that moment the present home is the home. From it on the restored one is: what is
left to do are renames, which whoever opens the home next finishes before anything else. The whole
directory is not renamed, since a home may be a mount point.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from registry.backup.manifest import (
    AUDIT,
    CHECKPOINTS,
    DATABASE,
    PIN,
    PUSH,
    SERVERS,
    VAULT,
)
from registry.database.files import flush_directory, lock_file, write_atomically

PLACE, NEW, OLD, COMMIT = ".restore", "new", "old", "commit"
_JOURNALS = tuple(
    f"{name}{suffix}" for name in (DATABASE, CHECKPOINTS) for suffix in ("-wal", "-shm")
)
# The journals go first: beside another database they would be taken for its own.
REPLACED = (*_JOURNALS, DATABASE, CHECKPOINTS, SERVERS, AUDIT, VAULT, "vault.key", PIN, PUSH)
"""What a restore takes away, and puts in the place of it what the backup has."""


def get_staging_directory(home: Path) -> Path:
    """Where a restored home is made ready."""
    return home / PLACE / NEW


@contextmanager
def hold_restore_lock(home: Path) -> Iterator[None]:
    """One restore of a home at a time, and nobody finishes it meanwhile."""
    with lock_file(home / "restore"):
        yield


def prepare_staging(home: Path) -> Path:
    """An empty staging directory; what an earlier restore left is removed. Under the lock."""
    shutil.rmtree(home / PLACE, ignore_errors=True)
    staging = get_staging_directory(home)
    staging.mkdir(mode=0o700, parents=True)
    return staging


def discard_staging(home: Path) -> None:
    """Remove what was made ready, unless it is the home already. Under the lock."""
    if not (home / PLACE / COMMIT).exists():
        shutil.rmtree(home / PLACE, ignore_errors=True)


def commit_swap(home: Path) -> None:
    """Make what was staged the home. Under the lock; the staged files are flushed."""
    staged = [name for name in REPLACED if (home / PLACE / NEW / name).exists()]
    for directory in (home / PLACE / NEW, home / PLACE, home):
        flush_directory(directory)
    write_atomically(home / PLACE / COMMIT, json.dumps(staged).encode())
    _move_everything(home)


def finish_swap(home: Path) -> None:
    """Finish a restore that was committed and interrupted. Others who finish it wait."""
    with hold_restore_lock(home):
        if (home / PLACE / COMMIT).exists():
            _move_everything(home)


def _move_everything(home: Path) -> None:
    """Each step may have been done before."""
    place = home / PLACE
    new, old = place / NEW, place / OLD
    staged = json.loads((place / COMMIT).read_bytes())
    old.mkdir(mode=0o700, exist_ok=True)
    for name in REPLACED:
        if name not in staged and (home / name).exists():
            os.rename(home / name, old / name)
    for name in REPLACED:
        if name in staged and (new / name).exists():
            if (home / name).exists():
                os.rename(home / name, old / name)
            os.rename(new / name, home / name)
    for directory in (old, new, home):
        flush_directory(directory)
    (place / COMMIT).unlink()
    flush_directory(place)
    shutil.rmtree(place, ignore_errors=True)
