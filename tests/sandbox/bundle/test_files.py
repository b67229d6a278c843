"""Files of a bundle are read from directories that may be anybody's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.bundle.model import read_regular_file
from sandbox.errors import BundleInvalid


def test_a_file_is_read_whole_up_to_the_limit_and_not_beyond(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    for size in (0, 1, 100):
        path.write_bytes(b"x" * size)
        assert read_regular_file(path, 100) == b"x" * size
    path.write_bytes(b"x" * 101)
    with pytest.raises(BundleInvalid, match="larger than 100 bytes"):
        read_regular_file(path, 100)


def test_a_file_with_more_in_it_than_it_says_is_not_read() -> None:
    with pytest.raises(BundleInvalid, match="grew while it was read"):
        read_regular_file(Path("/proc/self/status"))


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    os.chmod(tmp_path / "real", 0o4600)
    for name in ("link", "pipe", "real"):
        with pytest.raises(BundleInvalid):
            read_regular_file(tmp_path / name)
