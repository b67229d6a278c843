"""A small file system of the test's own, which it can fill up."""

from __future__ import annotations

import os
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
    """A tmpfs there until the block ends. Skips the test where nobody may mount one."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=0700", "tmpfs", str(directory)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk needs the right to mount a tmpfs")
    try:
        yield Disk(directory)
    finally:
        subprocess.run(["umount", str(directory)], check=True)
