"""A small file system of the test's own, which it can fill up."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

MEGABYTES = 8


@dataclass(frozen=True)
class Disk:
    directory: Path

    @property
    def _filler(self) -> Path:
        return self.directory / "filler"

    def fill(self, left: int = 0) -> None:
        """Leave that many bytes free, as near as pages allow."""
        with self._filler.open("ab", buffering=0) as file, suppress(OSError):
            while (free := shutil.disk_usage(self.directory).free - left) > 0:
                file.write(b"\0" * min(free, 65536))
        assert shutil.disk_usage(self.directory).free <= left

    def empty(self) -> None:
        self._filler.unlink()


@contextmanager
def small_disk(directory: Path) -> Iterator[Disk]:
    """A tmpfs there until the block ends. Skips the test where nobody may mount one.

    It is mounted in a process's own namespaces, which needs no root, and seen through that
    process's root directory (`man 5 proc`, /proc/pid/root).
    """
    mount = f'mount -t tmpfs -o size={MEGABYTES}m,mode=0700 tmpfs "$0" && echo && exec cat'
    namespaces = ["unshare", "--user", "--map-root-user", "--mount"]
    process = subprocess.Popen(
        [*namespaces, "sh", "-c", mount, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        assert process.stdout is not None
        if not process.stdout.readline():
            pytest.skip("a small disk needs the right to mount a tmpfs in a user namespace")
        yield Disk(Path(f"/proc/{process.pid}/root{directory}"))
