"""What upstreams asked for, shared by the processes of one home.

Each origin has an empty file, whose modification time is when its pause ends: read in a
microsecond, written without a lock. It holds back and lets nothing through, so nothing in it is
believed further than that: whoever writes there by hand makes calls wait, at most `longest`.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.policy import Origin

MAX_ORIGINS = 256
STALE_SECONDS = 0.05
"""How old what is known of an origin may be: what a reader need not look at again."""


@dataclass
class Pauses:
    """The pauses in a directory. Times are epoch seconds.

    Losing one loses nothing else, so what cannot be read or written is passed over.
    """

    directory: Path
    longest: float
    ticks: Callable[[], float] = time.monotonic
    _known: dict[Origin, tuple[float, float]] = field(default_factory=dict)
    _names: dict[Origin, str] = field(default_factory=dict)

    def until(self, origin: Origin, wall: float) -> float:
        """Until when nobody may ask the origin; 0 where anybody may."""
        looked, until = self._known.get(origin, (-1.0, 0.0))
        now = self.ticks()
        if not 0 <= now - looked < STALE_SECONDS:
            until = self._look(origin)
            if len(self._known) >= MAX_ORIGINS:
                self._known.clear()
            self._known[origin] = now, until
        return min(until, wall + self.longest) if until > wall else 0.0

    def pause(self, origin: Origin, until: float, wall: float) -> None:
        """Tell every process of the home; a pause that lasts longer already stays.

        Past 256 origins what has expired goes, and then what ends first.
        """
        path = self.directory / self._name(origin)
        with suppress(OSError):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._look(origin) < until:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
                os.utime(path, (wall, until))
                self._prune(wall)
        self._known.pop(origin, None)

    def _look(self, origin: Origin) -> float:
        try:
            return os.lstat(f"{self.directory}/{self._name(origin)}").st_mtime
        except OSError:
            return 0.0

    def _name(self, origin: Origin) -> str:
        if origin not in self._names:
            if len(self._names) >= MAX_ORIGINS:
                self._names.clear()
            self._names[origin] = hashlib.sha256(str(origin).encode()).hexdigest()[:32]
        return self._names[origin]

    def _prune(self, wall: float) -> None:
        found = sorted(_ends(self.directory))
        beyond = len(found) - MAX_ORIGINS
        if beyond <= 0:
            return
        for number, (until, name) in enumerate(found):
            if until <= wall or number < beyond:
                with suppress(OSError):
                    os.unlink(self.directory / name)


def _ends(directory: Path) -> Iterator[tuple[float, str]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                yield entry.stat(follow_symlinks=False).st_mtime, entry.name
