"""The file of a backup: a gzipped tar (POSIX.1-1988 ustar), the manifest first.

A reader knows from the manifest what follows, in which order and of which size, so that nothing in
the tar is believed: every header has to say exactly that.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from registry.backup.manifest import MANIFEST, BackupMember, Manifest, parse_manifest
from registry.database.files import flush_directory
from registry.errors import BackupFailed, BackupRefused

CHUNK = 1 << 20
BLOCK = tarfile.BLOCKSIZE
MAX_MANIFEST = 32 * 1024 * 1024
MAX_MEMBERS = 100_000
MAX_MEMBER = 8 * 1024**3 - 1
"""Bytes of a member that a ustar header has room for."""
MAX_RATIO, SLACK = 200, 64 * 1024 * 1024
"""Unpacked to packed size of the whole. The slack lets small homes be as empty as they are."""
ROOM = 16 * 1024 * 1024
"""Bytes of a disk that are left free."""
Source = bytes | Path
Tell = Callable[[str], None]
_END = bytes(BLOCK)
_UNREADABLE = (EOFError, zlib.error, tarfile.TarError)


def describe_member(name: str, source: Source) -> BackupMember:
    """The size and digest of a source."""
    total, size = hashlib.sha256(), 0
    for chunk in _iterate_source(source):
        total.update(chunk)
        size += len(chunk)
    if size > MAX_MEMBER:
        raise BackupFailed(f"{name} has {size} bytes, and a backup holds files below 8 GiB")
    return BackupMember(name, size, total.hexdigest())


def write_backup(
    file: Path, manifest: Manifest, sources: Mapping[str, Source], *, replace: bool, tell: Tell
) -> str:
    """Write a backup beside `file` and rename it, mode 0600; returns the SHA-256 of the file.

    `sources` has the content of each member. Raises BackupFailed where one changed since it was
    described, or where `file` is there and not to be replaced, and OSError; then there is no such
    file, or the one that was there before.
    """
    fresh = file.with_name(f".{file.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with _create_file(fresh) as raw:
            with gzip.GzipFile("", "wb", compresslevel=3, fileobj=raw, mtime=0) as packed:
                _write_members(packed, manifest, sources, tell)
            raw.flush()
            os.fsync(raw.fileno())
        digest = describe_member(file.name, fresh).sha256
        _publish_file(fresh, file, replace)
    finally:
        with suppress(OSError):
            fresh.unlink()
    flush_directory(file.parent)
    return digest


def _write_members(
    packed: gzip.GzipFile, manifest: Manifest, sources: Mapping[str, Source], tell: Tell
) -> None:
    content = manifest.to_bytes()
    _write_member(packed, describe_member(MANIFEST, content), content)
    for member in manifest.members:
        if member.size > CHUNK:
            tell(f"{member.name}: {member.size / 1e6:.0f} MB")
        _write_member(packed, member, sources[member.name])
    packed.write(2 * _END)


def _write_member(packed: gzip.GzipFile, member: BackupMember, source: Source) -> None:
    packed.write(_build_header(member))
    total, size = hashlib.sha256(), 0
    for chunk in _iterate_source(source):
        total.update(chunk)
        size += len(chunk)
        packed.write(chunk)
    if (size, total.hexdigest()) != (member.size, member.sha256):
        raise BackupFailed(f"{member.name} changed while it was read")
    packed.write(bytes(-size % BLOCK))


def _build_header(member: BackupMember) -> bytes:
    info = tarfile.TarInfo(member.name)
    info.size, info.mode = member.size, 0o600
    try:
        return info.tobuf(tarfile.USTAR_FORMAT)
    except ValueError as error:
        raise BackupFailed(f"{member.name}: {error}") from error


def _iterate_source(source: Source) -> Iterator[bytes]:
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as opened:
        while chunk := opened.read(CHUNK):
            yield chunk


def write_private_file(file: Path, content: bytes, *, replace: bool) -> None:
    """Write a file of mode 0600 beside and rename it. Raises BackupFailed where it is there."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with _create_file(fresh) as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        _publish_file(fresh, file, replace)
    finally:
        with suppress(OSError):
            fresh.unlink()
    flush_directory(file.absolute().parent)


@contextmanager
def _create_file(path: Path) -> Iterator[IO[bytes]]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as opened:
        yield opened


def _publish_file(fresh: Path, file: Path, replace: bool) -> None:
    if not replace:
        try:
            os.link(fresh, file)
            return
        except FileExistsError as error:
            raise BackupFailed(f"{file} is there already; --force replaces it") from error
        except OSError as error:
            # FAT and some network file systems have no hard links.
            if file.exists():
                raise BackupFailed(f"{file} is there already; --force replaces it") from error
    os.replace(fresh, file)


def read_backup(
    file: Path, directory: Path, check: Callable[[Manifest], None], tell: Tell
) -> Manifest:
    """Unpack a backup into an empty directory, every file of it flushed to disk with mode 0600.

    `check` is given the manifest before anything is written. Raises BackupRefused, and OSError.
    """
    name = str(file)
    try:
        with file.open("rb") as raw, gzip.GzipFile("", "rb", fileobj=raw) as packed:
            stream = _TarStream(name, packed)
            manifest = parse_manifest(name, stream.read_manifest())
            _check_size(name, manifest, os.fstat(raw.fileno()).st_size)
            check(manifest)
            for member in manifest.members:
                if member.size > CHUNK:
                    tell(f"{member.name}: {member.size / 1e6:.0f} MB")
                _unpack_member(stream, member, directory)
            stream.check_end()
    except gzip.BadGzipFile as error:
        raise BackupRefused(name, "it is no backup; `toolwright backup FILE` writes one") from error
    except _UNREADABLE as error:
        raise BackupRefused(name, f"it cannot be read: {error}") from error
    for place in (directory, *(path for path in directory.rglob("*") if path.is_dir())):
        flush_directory(place)
    return manifest


def _check_size(file: str, manifest: Manifest, packed: int) -> None:
    if len(manifest.members) > MAX_MEMBERS:
        raise BackupRefused(file, f"it has more than {MAX_MEMBERS} files")
    if any(member.size > MAX_MEMBER for member in manifest.members):
        raise BackupRefused(file, "one of its files would have more than 8 GiB")
    if manifest.total > MAX_RATIO * packed + SLACK:
        raise BackupRefused(file, "it would unpack to far more than it is")


def _unpack_member(stream: _TarStream, member: BackupMember, directory: Path) -> None:
    stream.read_header(member.name, member.size)
    path = directory.joinpath(*member.name.split("/"))
    for parent in reversed(path.relative_to(directory).parents):
        (directory / parent).mkdir(mode=0o700, exist_ok=True)
    total = hashlib.sha256()
    with _create_file(path) as opened:
        for chunk in stream.iterate_content(member.size):
            total.update(chunk)
            opened.write(chunk)
        opened.flush()
        os.fsync(opened.fileno())
    if total.hexdigest() != member.sha256:
        raise BackupRefused(stream.file, f"{member.name} is not what the manifest says")


class _TarStream:
    """The blocks of a tar, each of which has to be the one that is expected."""

    def __init__(self, file: str, packed: gzip.GzipFile) -> None:
        self.file, self._packed = file, packed

    def read_manifest(self) -> bytes:
        info = self._parse_header(MANIFEST)
        if info.size > MAX_MANIFEST:
            raise BackupRefused(self.file, "its manifest is too large")
        return b"".join(self.iterate_content(info.size))

    def read_header(self, name: str, size: int) -> None:
        if self._parse_header(name).size != size:
            raise BackupRefused(self.file, f"{name} has another size than the manifest says")

    def _parse_header(self, name: str) -> tarfile.TarInfo:
        """The header of a regular file of that name. Of links, devices, directories, sparse files
        and extended headers none is read.
        """
        try:
            info = tarfile.TarInfo.frombuf(self._read_exactly(BLOCK), "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeError, ValueError) as error:
            raise BackupRefused(self.file, f"it is no backup: {error}") from error
        if info.type != tarfile.REGTYPE or info.linkname or info.name != name or info.size < 0:
            raise BackupRefused(self.file, f"{info.name[:80]!r} is in the place of {name}")
        return info

    def iterate_content(self, size: int) -> Iterator[bytes]:
        left = size
        while left:
            chunk = self._read_exactly(min(CHUNK, left))
            left -= len(chunk)
            yield chunk
        if any(self._read_exactly(-size % BLOCK)):
            raise BackupRefused(self.file, "something is between its files")

    def check_end(self) -> None:
        rest = self._packed.read(64 * BLOCK + 1)
        if len(rest) < 2 * BLOCK or len(rest) > 64 * BLOCK or any(rest):
            raise BackupRefused(self.file, "something follows its last file, or its end is missing")

    def _read_exactly(self, size: int) -> bytes:
        content = self._packed.read(size)
        if len(content) != size:
            raise BackupRefused(self.file, "it breaks off")
        return content


def check_free_space(directory: Path, needed: int, free: int) -> None:
    """Raises BackupFailed where a directory's disk has not that much room, and some to spare."""
    if needed + ROOM > free:
        raise BackupFailed(
            f"{directory} has {free / 1e6:.0f} MB free and {(needed + ROOM) / 1e6:.0f} MB may be "
            "needed"
        )


def sum_sizes(paths: Iterable[Path]) -> int:
    """The bytes of files; those that are gone count nothing."""
    total = 0
    for path in paths:
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total
