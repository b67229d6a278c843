"""Crash-safe files: atomic replacement, private secrets, and locks between processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: no advisory locks; rename is atomic there as well.
    fcntl = None  # type: ignore[assignment]


def write_atomically(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file by another one, flushed to disk. A failure leaves the old one untouched."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        _write_new_file(fresh, content, mode)
        os.replace(fresh, path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
    flush_directory(path.parent)


def create_secret(path: Path, content: bytes) -> bytes:
    """The content of a private file, which is created with `content` where it does not exist.

    Where several processes create it at once, all get the content of the same one.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    if not path.exists():
        try:
            _write_new_file(fresh, content, 0o600)
            with suppress(FileExistsError):
                os.link(fresh, path)
        finally:
            with suppress(OSError):
                fresh.unlink()
        flush_directory(path.parent)
    return path.read_bytes()


def create_private_file(path: Path) -> None:
    """Create an empty file that only its owner reads, unless there is one: arguments and results of
    calls are nobody else's business, whatever directory a home is.
    """
    # One that is there is not opened: closing it would take the locks of this process's other
    # connections to a database, and another process that closes its last one would then take the
    # log away from under them (https://www.sqlite.org/howtocorrupt.html, 2.2).
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def flush_directory(directory: Path) -> None:
    """Make renames in a directory durable (`man 2 fsync`, on directories)."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold the lock that belongs to a file, over all processes. The lock is a file beside it."""
    beside = path.with_name(f".{path.name}.lock")
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def try_lock_file(path: Path) -> Iterator[bool]:
    """Hold the lock that belongs to a file, as `lock_file`; False where somebody else holds it."""
    beside = path.with_name(f".{path.name}.lock")
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _write_new_file(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
