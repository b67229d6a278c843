"""Stores of a throttle's times: in memory, or in files shared by the processes of one home."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from sandbox.clock import Clock
from sandbox.wire.policy import Origin

try:
    import fcntl
except ImportError:  # Windows: two processes may take the same turn.
    fcntl = None  # type: ignore[assignment]

MAX_PAUSE = 3600.0
"""Seconds; the longest pause that is kept, whatever an upstream asks for."""
MAX_FILES = 256
"""Of each kind, in a home."""
STALE_SECONDS = 0.05
"""Age up to which a pause that was read from a file is taken to be current."""
CLOCKS_DIFFER = 0.001
LOCK_TRIES = 100
_NANO = 1_000_000_000


class ThrottleStore(Protocol):
    """Pauses that origins asked for, and turns that servers took. Times are of `clock.now`."""

    def pause_origin(self, origin: Origin, seconds: float, clock: Clock) -> bool:
        """Pause the origin; False if a pause that lasts as long holds already."""
        ...

    def get_pause_left(self, origin: Origin, clock: Clock) -> float:
        """Seconds until the origin's pause ends; zero or less if there is none."""
        ...

    def take_turn(
        self, server: str, origin: Origin, step: float, patience: float, clock: Clock
    ) -> float:
        """Seconds to the server's next turn at the origin. If that is at most `patience`, the turn
        is taken and the next one comes `step` seconds later.
        """
        ...


class MemoryStore:
    """The times of one process."""

    def __init__(self) -> None:
        self._pauses: dict[Origin, float] = {}
        self._turns: dict[tuple[str, Origin], float] = {}

    def pause_origin(self, origin: Origin, seconds: float, clock: Clock) -> bool:
        until = clock.now() + seconds
        # Two clocks do not agree to the last digit.
        later = until > self._pauses.get(origin, 0.0) + CLOCKS_DIFFER
        if later:
            self._pauses[origin] = until
        return later

    def get_pause_left(self, origin: Origin, clock: Clock) -> float:
        return self._pauses.get(origin, 0.0) - clock.now()

    def take_turn(
        self, server: str, origin: Origin, step: float, patience: float, clock: Clock
    ) -> float:
        ahead = self.get_turn_left(server, origin, clock)
        if ahead <= patience:
            self.set_turn(server, origin, ahead + step, clock)
        return ahead

    def get_turn_left(self, server: str, origin: Origin, clock: Clock) -> float:
        """Seconds to the server's next turn, without taking it."""
        now = clock.now()
        return max(0.0, self._turns.get((server, origin), now) - now)

    def set_turn(self, server: str, origin: Origin, ahead: float, clock: Clock) -> None:
        self._turns[server, origin] = clock.now() + ahead


class FileStore:
    """The times of a home's processes, and this process's own.

    Each pause and each turn is an empty file whose modification time is its end. A file can only
    delay requests, at most by `MAX_PAUSE`, so a forged one does no other harm. Errors of reading
    and writing are ignored: this process's own times hold anyway.
    """

    def __init__(self, home: Path, ticks: Callable[[], float] = time.monotonic) -> None:
        self._own = MemoryStore()
        self._pauses = _TimeFiles(home / "pauses", bounded=True)
        self._turns = _TimeFiles(home / "turns", bounded=False)
        self._ticks = ticks
        self._known: dict[Origin, tuple[float, float]] = {}

    def pause_origin(self, origin: Origin, seconds: float, clock: Clock) -> bool:
        later = self._own.pause_origin(origin, seconds, clock)
        if later:
            wall = clock.get_wall_time()
            with suppress(OSError), self._pauses.open_file(str(origin), wall) as file:
                if file.read_end() < wall + seconds:
                    file.set_end(wall, wall + seconds)
            self._known.pop(origin, None)
        return later

    def get_pause_left(self, origin: Origin, clock: Clock) -> float:
        wall = clock.get_wall_time()
        shared = self._read_pause_end(origin) - wall
        if shared > 0:
            self._own.pause_origin(origin, min(shared, MAX_PAUSE), clock)
        return self._own.get_pause_left(origin, clock)

    def take_turn(
        self, server: str, origin: Origin, step: float, patience: float, clock: Clock
    ) -> float:
        ahead = self._own.get_turn_left(server, origin, clock)
        wall = clock.get_wall_time()
        with suppress(OSError), self._turns.open_file(f"{server} {origin}", wall) as file:
            shared = file.read_end() - wall
            # Nobody takes a turn that is further away: the clock was set back, or it is no turn at
            # all.
            ahead = max(ahead, shared if shared <= patience + step else 0.0)
            if ahead <= patience:
                file.set_end(wall, wall + ahead + step)
        if ahead <= patience:
            self._own.set_turn(server, origin, ahead + step, clock)
        return ahead

    def _read_pause_end(self, origin: Origin) -> float:
        """The end of the pause in the origin's file, cached for `STALE_SECONDS` so that most
        requests cost no system call.
        """
        looked, until = self._known.get(origin, (-1.0, 0.0))
        now = self._ticks()
        if not 0 <= now - looked < STALE_SECONDS:
            until = self._pauses.read_end(str(origin))
            if len(self._known) >= MAX_FILES:
                self._known.clear()
            self._known[origin] = now, until
        return until


@dataclass(frozen=True)
class _TimeFile:
    """An open file whose modification time is a moment, in seconds since 1970."""

    path: Path
    descriptor: int

    def read_end(self) -> float:
        return os.fstat(self.descriptor).st_mtime_ns / _NANO

    def set_end(self, wall: float, until: float) -> None:
        os.utime(self.path, ns=(int(wall * _NANO), int(until * _NANO)))


@dataclass(frozen=True)
class _TimeFiles:
    """The empty files of a directory, one per name. Past `MAX_FILES`, expired ones are removed, and
    if `bounded` also those that expire first.
    """

    directory: Path
    bounded: bool

    def read_end(self, name: str) -> float:
        """The time of a name, in seconds since 1970; 0 if there is none."""
        try:
            return os.lstat(f"{self.directory}/{_hash_name(name)}").st_mtime
        except OSError:
            return 0.0

    @contextmanager
    def open_file(self, name: str, wall: float) -> Iterator[_TimeFile]:
        """Open the file of a name, created if missing; locked unless another process keeps it."""
        path = self.directory / _hash_name(name)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            self._prune_files(wall)
            _create_expired(path, wall)
        flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags)
        try:
            _lock_file(descriptor)
            yield _TimeFile(path, descriptor)
        finally:
            os.close(descriptor)

    def _prune_files(self, wall: float) -> None:
        found = sorted(_list_ends(self.directory))
        beyond = len(found) - MAX_FILES + 1
        for number, (until, name) in enumerate(found if beyond > 0 else ()):
            if until < wall or (self.bounded and number < beyond):
                with suppress(OSError):
                    os.unlink(self.directory / name)


def _create_expired(path: Path, wall: float) -> None:
    """Create a file that has expired: the present time would be a pause or turn that nobody took.

    It gets its name last and only where that is free: another process may have created it
    meanwhile, and its time would be taken away.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        os.utime(fresh, (wall, 0))
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        with suppress(OSError):
            os.unlink(fresh)


@lru_cache(MAX_FILES)
def _hash_name(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _list_ends(directory: Path) -> Iterator[tuple[float, str]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                yield entry.stat(follow_symlinks=False).st_mtime, entry.name


def _lock_file(descriptor: int) -> None:
    """Try to lock a file, without waiting: a process stopped while it holds the lock would hold up
    the event loop of this one.
    """
    for _ in range(LOCK_TRIES if fcntl is not None else 0):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
