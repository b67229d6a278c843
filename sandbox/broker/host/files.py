"""Files of the host that a forged server may read, list or write, by its `fs:` permissions.

Every use opens the path from the root, one component after the other, and follows no symbolic
link, so that a granted path cannot be redirected.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sandbox.bundle.permissions import Permission, check_path
from sandbox.bundle.plain_files import DIRECTORY, open_plain_path, read_plain_file
from sandbox.errors import PathRefused

MAX_BYTES = 8 * 1024 * 1024
MAX_ENTRIES = 10_000


@dataclass(frozen=True)
class LocalFiles:
    """Files under the granted paths. `private` are Toolwright's own paths, which are never given.

    Every method raises PathRefused, for a path that was not granted or does not exist.
    """

    granted: Sequence[Permission]
    private: tuple[Path, ...] = ()

    def read_file(self, path: str) -> bytes:
        """The whole content of a regular file, at most `MAX_BYTES`."""
        self._check_granted(path, writing=False)
        return read_plain_file(path, MAX_BYTES)

    def list_entries(self, path: str) -> bytes:
        """The entries of a directory as a JSON list of `{"name", "kind", "size"}`, by name.

        `kind` is `file`, `directory` or `other`, which cannot be opened.
        """
        self._check_granted(path, writing=False)
        entries: list[dict[str, str | int]] = []
        with open_plain_path(path, DIRECTORY) as descriptor, os.scandir(descriptor) as found:
            for entry in found:
                if len(entries) >= MAX_ENTRIES:
                    raise PathRefused(path, f"it has more than {MAX_ENTRIES} entries")
                status = entry.stat(follow_symlinks=False)
                size = status.st_size if stat.S_ISREG(status.st_mode) else 0
                entries.append(
                    {"name": entry.name, "kind": _classify_mode(status.st_mode), "size": size}
                )
        entries.sort(key=lambda entry: str(entry["name"]))
        return json.dumps(entries).encode("utf-8", "replace")

    def write_file(self, path: str, content: bytes) -> None:
        """Write a regular file atomically, replacing any before."""
        self._check_granted(path, writing=True)
        if len(content) > MAX_BYTES:
            raise PathRefused(path, f"it would be larger than {MAX_BYTES} bytes")
        folder, name = os.path.split(path)
        with open_plain_path(folder, DIRECTORY) as directory:
            mode = _choose_mode(directory, name, path)
            fresh = f".{name[:100]}.{secrets.token_hex(4)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                descriptor = os.open(fresh, flags, mode, dir_fd=directory)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(descriptor)
                os.replace(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError as error:
                with suppress(OSError):
                    os.unlink(fresh, dir_fd=directory)
                raise PathRefused(path, error.strerror or str(error)) from error

    def _check_granted(self, path: str, writing: bool) -> None:
        """Raises PathRefused unless a granted path contains this one."""
        if os.path.normpath(path) != path or not path.startswith("/") or "\0" in path:
            raise PathRefused(path[:300], "it is no absolute path in its plain form")
        for permission in self.granted:
            root = Path(permission.name)
            inside = Path(path) == root or root in Path(path).parents
            if permission.kind == "fs" and inside and (permission.writable or not writing):
                check_path(permission.name, self.private)
                return
        raise PathRefused(
            path[:300], f"it was not granted to be {'written' if writing else 'read'}"
        )


def _choose_mode(directory: int, name: str, path: str) -> int:
    """The permission bits of the file that is replaced; 0644 for a new one. Raises PathRefused."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused(path, "what is there is no plain file")
    return stat.S_IMODE(status.st_mode) & 0o777


def _classify_mode(mode: int) -> str:
    return "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "other"
