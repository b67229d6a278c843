"""Unpacking of what is not trusted, bounded and regular files only: archives (zip and tar), and the
stream of files that a fetching container sends.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import shutil
import stat
import struct
import sys
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol, cast

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
_MACHINE_CODE = (".pth", "._pth", ".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo")
"""What an interpreter runs or loads because it is there, and nobody can read."""
_INTERPRETER = frozenset(
    name.casefold() for name in (*sys.stdlib_module_names, "sitecustomize", "usercustomize")
)
_TREE_PATH, _TREE_NAME, _TREE_DEPTH = 2000, 255, 100
_LENGTH = struct.Struct("!I")
_MAX_HEADER = 16 * 1024


@dataclass(frozen=True)
class ArchiveBounds:
    """Limits of an archive. Sizes are bytes; `ratio` is unpacked to packed size of the whole."""

    files: int = 10_000
    file_bytes: int = 64 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024
    archive_bytes: int = 128 * 1024 * 1024
    ratio: float = 200.0


TREE_BOUNDS = ArchiveBounds(
    files=200_000, file_bytes=2 * 1024 * 1024 * 1024, total_bytes=2 * 1024 * 1024 * 1024
)
"""Limits of a fetched tree: those of a third-party server's image."""


class _Content(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class _Member:
    """One file of an archive: its name as written, and its content."""

    name: str
    content: _Content
    executable: bool = False


def unpack_archive(
    archive: bytes, directory: Path, bounds: ArchiveBounds | None = None
) -> tuple[str, ...]:
    """Unpack a zip or a tar (plain, gzip, bzip2 or xz) into a new directory; returns the names.

    Raises ArchiveRefused, and then leaves nothing: for a name that leaves the directory, is
    absolute, or differs from another one in case only; for links, devices, sparse files and set-id
    bits; for encrypted members; for machine code, and for modules in the place of Python's own;
    past the bounds; and if `directory` exists. Files get mode 0644 whatever the archive says.
    """
    return _unpack(archive, directory, bounds or ArchiveBounds(), code=False)


def unpack_package(archive: bytes, directory: Path, bounds: ArchiveBounds) -> tuple[str, ...]:
    """Unpack an archive that is a program for a container, as `unpack_archive` does but for its
    rules about code.
    """
    return _unpack(archive, directory, bounds, code=True)


def _unpack(
    archive: bytes, directory: Path, bounds: ArchiveBounds, *, code: bool
) -> tuple[str, ...]:
    if len(archive) > bounds.archive_bytes:
        raise ArchiveRefused("", f"it is larger than {bounds.archive_bytes} bytes")
    try:
        directory.mkdir(mode=0o755)
    except FileExistsError as error:
        raise ArchiveRefused(str(directory), "the directory to unpack into is there") from error
    unpacked = False
    try:
        names = _unpack_members(archive, directory, bounds, code)
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


def _unpack_members(
    archive: bytes, directory: Path, bounds: ArchiveBounds, code: bool
) -> tuple[str, ...]:
    names: dict[str, str] = {}
    total = 0
    for member in _iterate_members(archive, bounds):
        parts = _safe_parts(member.name)
        if not code:
            _check_code(member.name, parts)
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


def unpack_tree(
    stream: IO[bytes], directory: Path, bounds: ArchiveBounds = TREE_BOUNDS
) -> tuple[str, ...]:
    """Write the files that a fetching container sent (`images/fetch/`) into an empty directory;
    returns their names.

    They are a program for another container, so that any code and any name of Linux is taken.
    Raises ArchiveRefused for a name that leaves the directory or is there twice, past the bounds,
    and for a stream that breaks off.
    """
    names: list[str] = []
    room = bounds.total_bytes
    try:
        for member in _iterate_tree(stream):
            parts = check_tree_name(member.name)
            if len(names) >= bounds.files:
                raise ArchiveRefused(member.name, f"it has more than {bounds.files} files")
            path = directory.joinpath(*parts)
            room -= _write_member(member, path, directory, min(room, bounds.file_bytes))
            names.append(member.name)
    except UNREADABLE as error:
        raise ArchiveRefused("", f"it cannot be read: {error}") from error
    return tuple(names)


def read_header(stream: IO[bytes], limit: int = _MAX_HEADER) -> dict[str, Any]:
    """The next JSON object of a fetching container's stream; empty at its end. Raises
    ArchiveRefused.
    """
    prefix = stream.read(_LENGTH.size)
    length = _LENGTH.unpack(prefix)[0] if len(prefix) == _LENGTH.size else limit + 1
    if length > limit:
        raise ArchiveRefused("", "what the container sent breaks off")
    try:
        header = json.loads(stream.read(length)) if length else {}
    except (ValueError, RecursionError) as error:
        raise ArchiveRefused("", f"what the container sent cannot be read: {error}") from error
    if not isinstance(header, dict):
        raise ArchiveRefused("", "what the container sent is no JSON object")
    return header


def _iterate_tree(stream: IO[bytes]) -> Iterator[_Member]:
    while header := read_header(stream):
        name, size = header.get("path"), header.get("size")
        if not isinstance(name, str) or not isinstance(size, int) or size < 0:
            raise ArchiveRefused("", "what the container sent names no file")
        content = _Slice(stream, size)
        yield _Member(name, content, header.get("executable") is True)
        if content.left:
            raise ArchiveRefused(name, "what the container sent breaks off")


class _Slice:
    """The next `left` bytes of a stream."""

    def __init__(self, stream: IO[bytes], left: int) -> None:
        self.left, self._stream = left, stream

    def read(self, size: int) -> bytes:
        data = self._stream.read(min(size, self.left))
        self.left -= len(data)
        return data


def check_tree_name(name: str) -> list[str]:
    """The parts of a file's name in a fetched tree. Raises ArchiveRefused."""
    parts = name.split("/")
    if len(name) > _TREE_PATH or len(parts) > _TREE_DEPTH:
        raise ArchiveRefused(name, "its name is too long or too deep")
    for part in parts:
        control = any(ord(character) < 32 for character in part)
        if part in ("", ".", "..") or control or len(part.encode()) > _TREE_NAME:
            raise ArchiveRefused(name, "its name leads elsewhere, or is no plain one")
    return parts


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
        if stripped != "." and (not plain or not part.isprintable() or set(part) & _NOT_IN_NAMES):
            raise ArchiveRefused(name, "its name leads elsewhere, or is no plain one")
        if part.partition(".")[0].lower() in _RESERVED:
            raise ArchiveRefused(name, "its name is a device's on some systems")
    return parts


def _check_code(name: str, parts: list[str]) -> None:
    """Raises ArchiveRefused for a file that an interpreter with this directory on its path would
    load unasked, or in place of a module of its own.
    """
    last = parts[-1].casefold()
    if last.endswith(_MACHINE_CODE) or ".so." in last:
        raise ArchiveRefused(name, "it is machine code, or is run without being imported")
    if last.endswith((".py", ".pyw")) and parts[0].casefold().partition(".")[0] in _INTERPRETER:
        raise ArchiveRefused(name, "it would take the place of a module of Python's")


def _write_member(member: _Member, path: Path, directory: Path, room: int) -> int:
    """Write a member's content and return its size. Parents are created inside the directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if directory.resolve() not in path.parent.resolve().parents and path.parent != directory:
        raise ArchiveRefused(member.name, "its name leads elsewhere")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    size = 0
    mode = 0o755 if member.executable else 0o644
    with contextlib.closing(os.fdopen(os.open(path, flags, mode), "wb")) as file:
        while chunk := member.content.read(CHUNK):
            size += len(chunk)
            if size > room:
                raise ArchiveRefused(member.name, "it unpacks to more than allowed")
            file.write(chunk)
    return size
