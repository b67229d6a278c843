"""Unpacking of untrusted archives: zip and tar, bounded, regular files only."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import shutil
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, cast

from sandbox.errors import ArchiveRefused

CHUNK = 1 << 16
UNREADABLE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError),
    *(NotImplementedError, RuntimeError, ValueError, MemoryError),
)
"""Exceptions of the standard library on malformed archives."""
MAX_NAME, MAX_DEPTH = 240, 32
ZIP_ENTRY = b"PK\x01\x02"
_NOT_IN_NAMES = frozenset('\\:*?"<>|')
_COMPRESSED: Mapping[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda file: cast(IO[bytes], gzip.open(file)),
    b"BZh": lambda file: cast(IO[bytes], bz2.open(file)),
    b"\xfd7zXZ\x00": lambda file: cast(IO[bytes], lzma.open(file)),
}
_RESERVED = frozenset("con prn aux nul".split())
"""Names that are devices on Windows, with any extension."""


@dataclass(frozen=True)
class ArchiveBounds:
    """Limits of an archive. Sizes are bytes; `ratio` is unpacked to packed size of the whole."""

    files: int = 10_000
    file_bytes: int = 64 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024
    archive_bytes: int = 128 * 1024 * 1024
    ratio: float = 200.0


@dataclass(frozen=True)
class _Member:
    """One file of an archive: its name as written, and its content."""

    name: str
    content: IO[bytes]


def unpack_archive(
    archive: bytes, directory: Path, bounds: ArchiveBounds | None = None
) -> tuple[str, ...]:
    """Unpack a zip or a tar (plain, gzip, bzip2 or xz) into a new directory; returns the names.

    Raises ArchiveRefused, and then leaves nothing: for a name that leaves the directory, is
    absolute, or differs from another one in case only; for links, devices, sparse files and set-id
    bits; for encrypted members; past the bounds; and if `directory` exists. Files get mode 0644
    whatever the archive says.
    """
    bounds = bounds or ArchiveBounds()
    if len(archive) > bounds.archive_bytes:
        raise ArchiveRefused("", f"it is larger than {bounds.archive_bytes} bytes")
    try:
        directory.mkdir(mode=0o755)
    except FileExistsError as error:
        raise ArchiveRefused(str(directory), "the directory to unpack into is there") from error
    unpacked = False
    try:
        names = _unpack_members(archive, directory, bounds)
        unpacked = True
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        OSError,
    ) as error:
        raise ArchiveRefused("", f"it cannot be read: {error}") from error
    except (NotImplementedError, RuntimeError, ValueError, UnicodeError, MemoryError) as error:
        raise ArchiveRefused("", f"it cannot be read: {error}") from error
    finally:
        if not unpacked:
            shutil.rmtree(directory, ignore_errors=True)
    return names


def _unpack_members(archive: bytes, directory: Path, bounds: ArchiveBounds) -> tuple[str, ...]:
    names: dict[str, str] = {}
    total = 0
    for member in _iterate_members(archive, bounds):
        parts = _safe_parts(member.name)
        name = "/".join(parts)
        key = unicodedata.normalize("NFC", name).casefold()
        if key in names:
            raise ArchiveRefused(member.name, "it is there twice")
        if len(names) >= bounds.files:
            raise ArchiveRefused(member.name, f"it has more than {bounds.files} files")
        names[key] = name
        room = min(bounds.file_bytes, bounds.total_bytes - total)
        # One chunk of slack, so that a small archive of compressible files is not a bomb.
        room = min(room, int(bounds.ratio * len(archive)) + CHUNK - total)
        total += _write_member(member, directory.joinpath(*parts), directory, room)
    return tuple(names.values())


def _iterate_members(archive: bytes, bounds: ArchiveBounds) -> Iterator[_Member]:
    if zipfile.is_zipfile(io.BytesIO(archive)):
        # The standard library reads all entries of the directory before it gives out the first.
        if archive.count(ZIP_ENTRY) > 2 * bounds.files:
            raise ArchiveRefused("", f"it has more than {bounds.files} files")
        yield from _iterate_zip(archive)
        return
    with (
        _decompress_tar(archive, bounds) as plain,
        tarfile.open(fileobj=plain, mode="r:") as opened,
    ):
        for number, info in enumerate(opened):
            if number > 2 * bounds.files:
                raise ArchiveRefused(info.name, f"it has more than {bounds.files} files")
            if info.isdir():
                _safe_parts(info.name)
                continue
            _check_kind(info.name, info.type in tarfile.REGULAR_TYPES and not info.issparse())
            _check_mode(info.name, info.mode)
            content = opened.extractfile(info)
            if content is not None:
                yield _Member(info.name, content)


@contextlib.contextmanager
def _decompress_tar(archive: bytes, bounds: ArchiveBounds) -> Iterator[IO[bytes]]:
    """Decompress a tar, within the bounds, before any of its members is read: their headers may
    claim any size.
    """
    opened = next((o for magic, o in _COMPRESSED.items() if archive.startswith(magic)), None)
    if opened is None:
        yield io.BytesIO(archive)
        return
    room = min(bounds.total_bytes + 2 * bounds.files * 1024, int(bounds.ratio * len(archive)))
    with TemporaryFile() as plain, opened(io.BytesIO(archive)) as packed:
        size = 0
        while chunk := packed.read(CHUNK):
            size += len(chunk)
            if size > room + CHUNK:
                raise ArchiveRefused("", "it unpacks to more than allowed")
            plain.write(chunk)
        plain.seek(0)
        yield plain


def _iterate_zip(archive: bytes) -> Iterator[_Member]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for info in opened.infolist():
            mode = info.external_attr >> 16
            if info.is_dir():
                _safe_parts(info.filename)
                continue
            _check_kind(info.filename, stat.S_IFMT(mode) in (0, stat.S_IFREG))
            _check_mode(info.filename, mode)
            if info.flag_bits & 1:
                raise ArchiveRefused(info.filename, "it is encrypted")
            with opened.open(info) as content:
                yield _Member(info.orig_filename, content)


def _check_kind(name: str, plain: bool) -> None:
    if not plain:
        raise ArchiveRefused(name, "it is a link, a device or another special file")


def _check_mode(name: str, mode: int) -> None:
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise ArchiveRefused(name, "it would run as somebody else")


def _safe_parts(name: str) -> list[str]:
    """The parts of a member's name. Raises ArchiveRefused for one that could lead elsewhere."""
    stripped = name[2:] if name.startswith("./") else name
    parts = stripped.rstrip("/").split("/")
    if len(name) > MAX_NAME or len(parts) > MAX_DEPTH:
        raise ArchiveRefused(name, "its name is too long or too deep")
    for part in parts:
        plain = part not in ("", ".", "..") and part == part.strip() and not part.endswith(".")
        if stripped != "." and (
            not plain or not part.isprintable() or set(part) & set('\\:*?"<>|')
        ):
            raise ArchiveRefused(name, "its name leads elsewhere, or is no plain one")
        if part.partition(".")[0].lower() in _RESERVED:
            raise ArchiveRefused(name, "its name is a device's on some systems")
    return parts


def _write_member(member: _Member, path: Path, directory: Path, room: int) -> int:
    """Write a member's content and return its size. Parents are created inside the directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if directory.resolve() not in path.parent.resolve().parents and path.parent != directory:
        raise ArchiveRefused(member.name, "its name leads elsewhere")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    size = 0
    with contextlib.closing(os.fdopen(os.open(path, flags, 0o644), "wb")) as file:
        while chunk := member.content.read(CHUNK):
            size += len(chunk)
            if size > room:
                raise ArchiveRefused(member.name, "it unpacks to more than allowed")
            file.write(chunk)
    return size
