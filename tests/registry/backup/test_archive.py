"""The file of a backup: what was written comes back, and what is anything else is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.backup.archive import (
    MAX_MEMBERS,
    Source,
    check_free_space,
    describe_member,
    read_backup,
    write_backup,
)
from registry.backup.manifest import FORMAT, MANIFEST, Manifest
from registry.errors import BackupFailed, BackupRefused

SOURCES: dict[str, Source] = {
    "toolwright.db": b"database" * 1000,
    "instance": b"abc",
    "audit/heads.jsonl": b"{}\n",
    "servers/dns/server.py": b"# code\n",
}


def manifest_of(sources: dict[str, Source]) -> Manifest:
    members = tuple(describe_member(name, source) for name, source in sources.items())
    return Manifest(1.0, "1.2.3", "0001", "abc", "", "", members)


def told(_line: str) -> None: ...


def written(file: Path, sources: dict[str, Source] = SOURCES, *, replace: bool = False) -> Path:
    write_backup(file, manifest_of(sources), sources, replace=replace, tell=told)
    return file


def unpacked(file: Path, directory: Path) -> dict[str, bytes]:
    directory.mkdir()
    read_backup(file, directory, lambda manifest: None, told)
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_what_was_written_comes_back_for_this_user_alone(tmp_path: Path) -> None:
    file = written(tmp_path / "home.tgz")
    assert unpacked(file, tmp_path / "back") == SOURCES
    assert file.stat().st_mode & 0o777 == 0o600
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "back").rglob("*")}
    assert modes == {0}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    # Any other program can read it.
    with tarfile.open(file) as opened:
        assert opened.getnames() == [MANIFEST, *SOURCES]


def test_a_file_that_is_there_is_replaced_only_where_that_was_said(tmp_path: Path) -> None:
    file = tmp_path / "home.tgz"
    file.write_text("mine")
    with pytest.raises(BackupFailed, match="--force"):
        written(file)
    assert (file.read_text(), len(list(tmp_path.iterdir()))) == ("mine", 1)
    written(file, replace=True)
    assert unpacked(file, tmp_path / "back") == SOURCES


def test_what_changes_while_it_is_read_makes_no_backup(tmp_path: Path) -> None:
    source = tmp_path / "growing"
    source.write_text("before")
    sources: dict[str, Source] = {**SOURCES, "audit/archive.jsonl.gz": source}
    manifest = manifest_of(sources)
    source.write_text("after it")
    with pytest.raises(BackupFailed, match="changed"):
        write_backup(tmp_path / "home.tgz", manifest, sources, replace=False, tell=told)
    assert [path.name for path in tmp_path.iterdir()] == ["growing"]


def test_room_is_asked_for_before_anything_is_written(tmp_path: Path) -> None:
    check_free_space(tmp_path, 10, 10**9)
    with pytest.raises(BackupFailed, match="free"):
        check_free_space(tmp_path, 10**9, 10**9)


Member = tuple[tarfile.TarInfo, bytes]


def file_member(name: str, content: bytes, /, **changes: Any) -> Member:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in changes.items():
        setattr(info, field, value)
    return info, content


def packed(members: Sequence[Member], form: int = tarfile.USTAR_FORMAT, tail: bytes = b"") -> bytes:
    out = io.BytesIO()
    for info, content in members:
        out.write(info.tobuf(form) + content + bytes(-len(content) % 512))
    return gzip.compress(out.getvalue() + bytes(1024) + tail)


def manifest_json(named: Sequence[tuple[str, int, str]], **changes: Any) -> bytes:
    said = {
        "format": FORMAT,
        "made": 1.0,
        "toolwright": "1",
        "schema": "0001",
        "instance": "abc",
        "key": "",
        "vault_key": "",
        "members": [list(one) for one in named],
    }
    return json.dumps(said | changes).encode()


def plain(name: str, content: bytes) -> tuple[str, int, str]:
    return name, len(content), hashlib.sha256(content).hexdigest()


GOOD = (("toolwright.db", b"database"), ("instance", b"abc"))


def archive(
    *more: tuple[str, bytes], named: Sequence[tuple[str, int, str]] | None = None, **changes: Any
) -> bytes:
    files = (*GOOD, *more)
    manifest = manifest_json([plain(*one) for one in files] if named is None else named, **changes)
    return packed([file_member(MANIFEST, manifest), *(file_member(*one) for one in files)])


def replaced(**changes: Any) -> bytes:
    """The last file is of another kind, or has another header, than the manifest says."""
    manifest = manifest_json([plain(*one) for one in GOOD])
    last = file_member("instance", b"abc", **changes)
    content = b"" if "type" in changes else last[1]
    last[0].size = len(content) if "size" not in changes else changes["size"]
    return packed([file_member(MANIFEST, manifest), file_member(*GOOD[0]), (last[0], content)])


def named_only(name: str) -> bytes:
    return archive(named=[*(plain(*one) for one in GOOD), plain(name, b"x")])


ZEROS = "0" * 64
HOSTILE: dict[str, Callable[[], bytes]] = {
    "a symbolic link": lambda: replaced(type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "a hard link": lambda: replaced(type=tarfile.LNKTYPE, linkname="toolwright.db"),
    "a device": lambda: replaced(type=tarfile.CHRTYPE),
    "a directory": lambda: replaced(type=tarfile.DIRTYPE),
    "a pipe": lambda: replaced(type=tarfile.FIFOTYPE),
    "a sparse file": lambda: replaced(type=tarfile.GNUTYPE_SPARSE),
    "an extended header": lambda: replaced(type=tarfile.XHDTYPE),
    "a long name": lambda: replaced(type=tarfile.GNUTYPE_LONGNAME),
    "another name": lambda: replaced(name="vault.json"),
    "an absolute path": lambda: named_only("/etc/cron.d/x"),
    "a path out of the home": lambda: named_only("servers/../../x"),
    "a path out of the audit": lambda: named_only("audit/../x"),
    "a file that no home has": lambda: named_only("x.sh"),
    "the address of a control plane": lambda: named_only("control.json"),
    "a hidden file of the audit": lambda: named_only("audit/.x"),
    "a file beside the servers": lambda: named_only("servers/x"),
    "a name with a line end": lambda: named_only("servers/dns/a\nb"),
    "a name that is too long": lambda: named_only("servers/dns/" + "a/" * 60 + "x" * 200),
    "a file twice": lambda: archive(("instance", b"abd")),
    "another digest": lambda: archive(named=[("toolwright.db", 8, ZEROS), plain(*GOOD[1])]),
    "another size": lambda: archive(named=[("toolwright.db", 7, ZEROS), plain(*GOOD[1])]),
    "a negative size": lambda: archive(named=[("toolwright.db", -1, ZEROS), plain(*GOOD[1])]),
    "a member that is missing": lambda: archive(
        named=[*(plain(*o) for o in GOOD), plain("pin.json", b"")]
    ),
    "a member that was not named": lambda: archive(named=[plain(*GOOD[0])]),
    "no database": lambda: packed([file_member(MANIFEST, manifest_json([]))]),
    "another format": lambda: archive(format="toolwright-backup-9"),
    "no manifest": lambda: packed([file_member(*one) for one in GOOD]),
    "a manifest that nests": lambda: packed([file_member(MANIFEST, b"[" * 100_000)]),
    "a manifest without end": lambda: packed([file_member(MANIFEST, b"{}", size=8 * 1024**3 - 1)]),
    "too many files": lambda: archive(
        named=[
            *(plain(*o) for o in GOOD),
            *((f"servers/a/{n}", 0, ZEROS) for n in range(MAX_MEMBERS)),
        ]
    ),
    "a bomb": lambda: archive(named=[("toolwright.db", 2**33 - 2, ZEROS), plain(*GOOD[1])]),
    "a larger file than a backup holds": lambda: archive(
        named=[("toolwright.db", 2**33, ZEROS), plain(*GOOD[1])]
    ),
    "something after its end": lambda: packed(
        [
            file_member(MANIFEST, manifest_json([plain(*o) for o in GOOD])),
            *(file_member(*o) for o in GOOD),
        ],
        tail=b"x",
    ),
    "no end": lambda: archive()[:-20],
    "no gzip": lambda: gzip.decompress(archive()),
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_backup_is_refused_and_writes_nothing_beside(name: str, tmp_path: Path) -> None:
    file, place = tmp_path / "hostile.tgz", tmp_path / "place"
    file.write_bytes(HOSTILE[name]())
    with pytest.raises(BackupRefused):
        unpacked(file, place)
    names = {path.relative_to(place).as_posix() for path in place.rglob("*")}
    assert names <= {"toolwright.db", "instance"}
    assert not any(path.is_symlink() for path in place.rglob("*"))
    assert {path.name for path in tmp_path.iterdir()} == {"hostile.tgz", "place"}


def test_the_backup_that_the_hostile_ones_are_made_of_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "good.tgz"
    file.write_bytes(archive())
    assert unpacked(file, tmp_path / "place") == dict(GOOD)


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_backup_with_another_byte_is_the_same_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, by: int
) -> None:
    place = tmp_path_factory.mktemp("altered")
    content = bytearray(archive())
    # The first ten bytes are gzip's header: a time and a flag that say nothing of the content.
    position = 10 + at % (len(content) - 10)
    content[position] ^= by
    (place / "altered.tgz").write_bytes(content)
    try:
        assert unpacked(place / "altered.tgz", place / "back") == dict(GOOD)
    except BackupRefused:
        pass
