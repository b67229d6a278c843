"""Files that hold the older part of the audit: gzip, one JSON object a line.

The first line names the archive before it; each further one is an audit row and, where it is about
a call that was moved out of the database as well, that call's row, and the call's recording where
there was one. Rows are ordered by chain and sequence. The newest archive's digest is in the audit
itself (`audit.archived`), each one's predecessor in its first line, so that none can be changed,
left out or put in.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from registry.database.canonical import to_compact_json
from registry.database.files import write_atomically
from registry.errors import ArchiveUnusable
from registry.models import AuditRow

FORMAT = "toolwright-audit-1"
MAX_LINE = 128 * 1024 * 1024
_FIELDS = tuple(field.name for field in fields(AuditRow))


@dataclass(frozen=True)
class ArchiveName:
    """A file's name, without a directory, and the sha256 of its bytes."""

    file: str
    sha256: str


@dataclass(frozen=True)
class ArchivedRow:
    """A row of an archive. `call` is the row of the call that it is about, where that was moved
    too; `recording` is the call's packed recording, where there is one. `with_recording` is False
    for archives of the format that had no recordings.
    """

    row: AuditRow
    call: Mapping[str, Any] | None = None
    recording: bytes | None = None
    with_recording: bool = True


def write_archive(
    directory: Path, file: str, previous: ArchiveName | None, rows: Iterable[ArchivedRow]
) -> ArchiveName:
    """Write an archive, flushed to disk, and return its name with its digest."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    buffer = io.BytesIO()
    # mtime 0: the same rows make the same bytes.
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed:
        head = {"format": FORMAT, "previous": previous and vars(previous)}
        packed.write(to_compact_json(head).encode() + b"\n")
        for archived in rows:
            packed.write(to_compact_json(_to_json(archived)).encode() + b"\n")
    content = buffer.getvalue()
    write_atomically(directory / file, content)
    return ArchiveName(file, hashlib.sha256(content).hexdigest())


def list_archives(directory: Path, newest: ArchiveName | None) -> tuple[ArchiveName, ...]:
    """The archive of that name and those before it, newest first. Raises ArchiveUnusable."""
    found: list[ArchiveName] = []
    while newest is not None:
        path = _check_digest(directory, newest)
        if newest in found:
            raise ArchiveUnusable(str(path), "the archives name each other in a circle")
        found.append(newest)
        newest = _read_previous(path)
    return tuple(found)


def read_archive(directory: Path, name: ArchiveName) -> Iterator[ArchivedRow]:
    """The rows of an archive whose digest was checked. Raises ArchiveUnusable."""
    path = directory / name.file
    lines = _read_lines(path)
    next(lines, None)
    for line in lines:
        try:
            yield _from_json(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ArchiveUnusable(str(path), f"a line cannot be read: {error}") from error


def _to_json(archived: ArchivedRow) -> dict[str, Any]:
    audit = [getattr(archived.row, name) for name in _FIELDS]
    recording = archived.recording and base64.b64encode(archived.recording).decode()
    return {"audit": audit, "call": archived.call and dict(archived.call), "recording": recording}


def _from_json(value: Any) -> ArchivedRow:
    recording = value.get("recording")
    return ArchivedRow(
        AuditRow(**dict(zip(_FIELDS, value["audit"], strict=True))),
        value["call"],
        None if recording is None else base64.b64decode(recording, validate=True),
        with_recording="recording" in value,
    )


def _check_digest(directory: Path, name: ArchiveName) -> Path:
    """The path of an archive whose content has the named digest. Raises ArchiveUnusable."""
    if Path(name.file).name != name.file:
        raise ArchiveUnusable(name.file, "its name is no plain file name")
    path = directory / name.file
    total = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                total.update(chunk)
    except OSError as error:
        raise ArchiveUnusable(str(path), error.strerror or str(error)) from error
    if total.hexdigest() != name.sha256:
        raise ArchiveUnusable(str(path), "its content is not what the audit says")
    return path


def _read_previous(path: Path) -> ArchiveName | None:
    try:
        head = json.loads(next(_read_lines(path), b""))
        previous = head["previous"]
        if head["format"] != FORMAT:
            raise ArchiveUnusable(str(path), f"its format is {head['format']!r}")
        return previous and ArchiveName(str(previous["file"]), str(previous["sha256"]))
    except (ValueError, TypeError, KeyError) as error:
        raise ArchiveUnusable(str(path), f"its first line cannot be read: {error}") from error


def _read_lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(MAX_LINE):
                yield line
    except (OSError, EOFError) as error:
        raise ArchiveUnusable(str(path), str(error)) from error
