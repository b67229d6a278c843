"""Archives and bundles of strangers: whatever they hold, nothing gets out of its directory."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.bundle.model import read_bundle
from sandbox.errors import ArchiveRefused, BundleInvalid
from sandbox.packages.archive import ArchiveBounds, unpack_archive
from tests.sandbox.packages.test_archive import a_tar, a_zip

GOOD = Path(__file__).parents[1] / "fixtures" / "bad_bundles" / "good"


def with_pax(headers: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("plain")
        info.pax_headers = headers
        archive.addfile(info)
    return stream.getvalue()


def with_flags(flags: int) -> bytes:
    """A zip whose only member claims to be encrypted."""
    made = bytearray(a_zip({"plain": b"x"}))
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = made.index(signature) + place
        made[at : at + 2] = struct.pack("<H", flags)
    return bytes(made)


def damaged(archive: bytes) -> bytes:
    made = bytearray(archive)
    made[made.index(b"content")] ^= 1
    return bytes(made)


def stored(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


HOSTILE = {
    "pax-path": with_pax({"path": "../outside"}),
    "pax-link": a_tar({"l": b""}, type=tarfile.SYMTYPE, linkname="../outside"),
    "pax-size": with_pax({"size": "99999999999"}),
    "hard-link-out": a_tar({"l": b""}, type=tarfile.LNKTYPE, linkname="/etc/passwd"),
    "long-name": a_tar({"../" * 60 + "outside": b"x"}),
    "nul-in-name": stored({"ab": b"x", "plain": b"y"}).replace(b"ab", b"a\0"),
    "file-as-directory": stored({"a": b"x", "a/b": b"y"}),
    "one-name-in-two-forms": stored({"caf\u00e9": b"x", "cafe\u0301": b"y"}),
    "encrypted": with_flags(1),
    "damaged": damaged(stored({"a": b"content"})),
    "zip-of-links": a_zip({"l": b"/etc"}, 0o120777),
    "direction-in-name": stored({"a\u202egnp.exe": b"x"}),
    "stream-name": stored({"a:stream": b"x"}),
    "device-name": stored({"AUX.txt": b"x"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_leaves_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArchiveRefused):
        unpack_archive(HOSTILE[name], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    assert not (tmp_path.parent / "outside").exists()


@pytest.mark.parametrize("pack", [stored, a_tar])
def test_a_plain_archive_is_unpacked(
    pack: Callable[[dict[str, bytes]], bytes], tmp_path: Path
) -> None:
    files = {"a": b"content", "d/caf\u00e9.txt": b"x"}
    assert set(unpack_archive(pack(files), tmp_path / "out")) == set(files)
    assert (tmp_path / "out" / "a").read_bytes() == b"content"


def test_a_directory_of_very_many_entries_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Each entry takes 46 bytes in the file and a kilobyte in memory."""
    entry = b"PK\x01\x02" + bytes(42)
    count = 500_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, count * 46, 0, 0)
    with pytest.raises(ArchiveRefused, match="more than"):
        unpack_archive(entry * count + end, tmp_path / "out")
    few = stored({str(n): b"" for n in range(40)})
    assert len(unpack_archive(few, tmp_path / "few", ArchiveBounds(files=40))) == 40


def a_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def a_large_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(33 * 1024 * 1024)


def a_set_id_file(path: Path) -> None:
    path.write_text("x")
    path.chmod(0o4755)


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_directory(path: Path) -> None:
    path.mkdir()


def copied(to: Path) -> Path:
    to.mkdir()
    for path in GOOD.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


@pytest.mark.parametrize("name", ["server.py", "tools.json", "bundle.toml", "spec.json"])
@pytest.mark.parametrize("make", [a_link, a_large_file, a_set_id_file, a_pipe, a_directory])
def test_a_bundle_of_anything_but_plain_files_is_not_read(
    name: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    place = copied(tmp_path / "bundle")
    assert read_bundle(place).name
    (place / name).unlink()
    make(place / name)
    with pytest.raises(BundleInvalid, match=name):
        read_bundle(place)


@pytest.mark.parametrize("name", ["../x", "/etc", "a/b", "", "A", "x" * 200, "a\\u0000", "nul\\n"])
def test_a_bundle_whose_name_is_no_name_is_not_read(name: str, tmp_path: Path) -> None:
    place = copied(tmp_path / "bundle")
    head = (place / "bundle.toml").read_text()
    own = read_bundle(place).name
    (place / "bundle.toml").write_text(head.replace(f'name = "{own}"', f'name = "{name}"', 1))
    with pytest.raises(BundleInvalid):
        read_bundle(place)
