"""Waiting for the next commit of any process, mostly asleep: inotify on the database's log.

`PRAGMA data_version` tells that somebody committed, and has to be asked. A commit writes to the
write-ahead log first, flushes it and counts only then
(https://www.sqlite.org/walformat.html#the_wal_index_file_format). So a write says that it is worth
asking for a while. Without inotify (macOS, no watches left) and on file systems that do not tell
what others write to them, it is always worth asking.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import time
from pathlib import Path

PERIOD_SECONDS = 0.015
"""Between two questions while a commit may come."""
REST_SECONDS = 0.25
"""Between two questions while the log is not written to: for a commit whose flush took longer than
BUSY_SECONDS, and in case that a write is not told after all. A kill grants half a second.
"""
BUSY_SECONDS = 0.5
"""How long after a write a commit may come."""

_MODIFIED, _DELETED, _MOVED = 0x2, 0x400, 0x800
_OVERFLOWED = 0x4000
_EVENT = struct.Struct("iIII")
_READ_BYTES = 4096
_LOCAL = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # Btrfs
        0xCA451A4E,  # bcachefs
        0xF2F52010,  # F2FS
        0x2FC12FC1,  # ZFS
        0x01021994,  # tmpfs
        0x794C7630,  # overlayfs
    }
)
"""File systems (`f_type` of statfs(2)) where inotify sees each write of this machine, in whichever
container. Network file systems and FUSE are not among them.
"""


class CommitWait:
    """Says when to ask whether somebody committed. One thread waits; any may stop it.

    `path` is the database's file, which has to be open in this process: as long as it is, its log
    is not replaced.
    """

    def __init__(self, path: Path) -> None:
        self._log = LogWatch.open(path.with_name(f"{path.name}-wal"))
        self._read_end, self._write_end = os.pipe()
        self._stop = select.poll()
        self._stop.register(self._read_end, select.POLLIN)
        # A commit may be under way.
        self._busy_until = time.monotonic() + BUSY_SECONDS

    @property
    def is_told(self) -> bool:
        """Whether writes are told, so that it rests between them."""
        return self._log is not None

    def wait(self) -> bool:
        """Wait until it is worth asking; False, at once, when it was stopped."""
        if self._log is None or time.monotonic() < self._busy_until:
            stopped = bool(self._stop.poll(PERIOD_SECONDS * 1000))
        else:
            stopped = self._read_end in self._log.poll(self._read_end, REST_SECONDS)
        # Read before the question: what is written after it wakes the next turn.
        self._take_events()
        return not stopped

    def stop(self) -> None:
        """End the waiting."""
        os.write(self._write_end, b"x")

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
        os.close(self._read_end)
        os.close(self._write_end)

    def _take_events(self) -> None:
        if self._log is None:
            return
        written = self._log.read_events()
        if written is None:
            self._log.close()
            self._log = None
        elif written:
            self._busy_until = time.monotonic() + BUSY_SECONDS


class LogWatch:
    """What inotify(7) tells of one file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path) -> LogWatch | None:
        """Watch a file; None where that cannot be relied upon."""
        system = ctypes.CDLL(None)
        if not hasattr(system, "inotify_init1") or not _is_local(system, path):
            return None
        descriptor = system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return None
        mask = ctypes.c_uint32(_MODIFIED | _DELETED | _MOVED)
        if system.inotify_add_watch(descriptor, os.fsencode(path), mask) < 0:
            os.close(descriptor)
            return None
        return cls(descriptor)

    def poll(self, other: int, seconds: float) -> set[int]:
        """Wait for an event or until `other` can be read; which of the two can."""
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        waiting.register(other, select.POLLIN)
        return {descriptor for descriptor, _ in waiting.poll(seconds * 1000)}

    def read_events(self) -> bool | None:
        """Whether the file was written to since; None where it is not watched any more.

        It reads once: a commit writes page by page, and reading until nothing is left would be as
        long as the commit, in turns with it.
        """
        try:
            events = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            return None
        # Events of a watch on a file have no names: all are of one length.
        masks = [mask for _, mask, _, _ in _EVENT.iter_unpack(events)]
        return True if all(mask & (_MODIFIED | _OVERFLOWED) for mask in masks) else None

    def close(self) -> None:
        os.close(self._descriptor)


def _is_local(system: ctypes.CDLL, path: Path) -> bool:
    """Whether each write to the file is told, whoever on this machine writes."""
    buffer = ctypes.create_string_buffer(512)
    if not hasattr(system, "statfs") or system.statfs(os.fsencode(path), buffer) != 0:
        return False
    return ctypes.c_ulong.from_buffer(buffer).value in _LOCAL
