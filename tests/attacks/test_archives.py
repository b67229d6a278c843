"""Archives and bundles of strangers: whatever they hold, nothing gets out of its directory."""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.bundle.model import read_bundle
from sandbox.errors import ArchiveRefused, BundleInvalid
from sandbox.packages.archive import ArchiveBounds, unpack_archive, unpack_tree
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
@pytest.mark.parametrize(
    "name",
    [
        *("json.py", "JSON.py", "json/__init__.py", "json/decoder.py", "_ast.py", "re.pyw"),
        *("sitecustomize.py", "usercustomize/__init__.py", "site.py", "email/a/b.py"),
        *("a.pth", "d/a.PTH", "fast.so", "d/fast.cpython-312-x86_64-linux-gnu.so", "fast.so.1"),
        *("fast.pyd", "fast.dll", "fast.dylib", "a.pyc", "d/__pycache__/a.cpython-312.pyc"),
    ],
)
def test_an_archive_brings_no_code_that_runs_unread_or_as_python_s_own(
    pack: Callable[[dict[str, bytes]], bytes], name: str, tmp_path: Path
) -> None:
    with pytest.raises(ArchiveRefused, match=r"machine code|module of Python"):
        unpack_archive(pack({"server.py": b"", name: b"x"}), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pack", [stored, a_tar])
def test_an_archive_s_own_code_is_unpacked(
    pack: Callable[[dict[str, bytes]], bytes], tmp_path: Path
) -> None:
    names = ("server.py", "tests/json.py", "json.txt", "data/so.md", "re", "email/note.txt")
    files = dict.fromkeys(names, b"x")
    assert set(unpack_archive(pack(files), tmp_path / "out")) == set(files)


def stream(*files: tuple[object, bytes], end: bytes = bytes(4), **more: object) -> io.BytesIO:
    """What a fetching container sends: names with contents."""
    sent = io.BytesIO()
    for name, content in files:
        header = json.dumps({"path": name, "size": len(content), **more}).encode()
        sent.write(struct.pack("!I", len(header)) + header + content)
    sent.write(end)
    sent.seek(0)
    return sent


@pytest.mark.parametrize(
    "sent",
    [
        *(
            stream((name, b"x"))
            for name in ("../a", "/a", "a/../../b", "a//b", ".", "", "a/", "a\0")
        ),
        *(
            stream((name, b"x"))
            for name in (7, None, "n" * 300, "d/" * 200 + "a", "a\nb", "\ud800")
        ),
        stream(("a", b"x"), ("a", b"y")),
        stream(("a", b"x"), ("a/b", b"y")),
        *(stream(("a", b"x"), size=size) for size in (-1, 2**40, "1", 1.5)),
        stream(("a", b"x"), end=b""),
        stream(("a", b"x"), end=b"\xff\xff\xff\xff"),
        stream(("a", b"x"), end=b"\0\0\0\2[]"),
        stream(("a", b"x"), end=b"\0\0\0\2{"),
        stream(*((f"f{number}", b"") for number in range(5))),
        stream(("a", bytes(1000)), ("b", bytes(1000))),
    ],
)
def test_what_a_fetching_container_sends_stays_in_its_directory_and_bounds(
    sent: io.BytesIO, tmp_path: Path
) -> None:
    place = tmp_path / "tree"
    place.mkdir()
    with pytest.raises(ArchiveRefused):
        unpack_tree(sent, place, ArchiveBounds(files=4, total_bytes=1500))
    assert list(tmp_path.iterdir()) == [place]
    assert all(not path.is_symlink() for path in place.rglob("*"))


def test_the_files_of_a_fetching_container_are_written(tmp_path: Path) -> None:
    files = {"json.py": b"x", "a.so": b"y" * 100_000, "d/aux.js": b"", "d/ two words": b"z"}
    assert set(unpack_tree(stream(*files.items()), tmp_path)) == set(files)
    assert (tmp_path / "a.so").read_bytes() == b"y" * 100_000
    unpack_tree(stream(("run", b"x"), executable=True), tmp_path)
    assert os.access(tmp_path / "run", os.X_OK)
    assert not os.access(tmp_path / "json.py", os.X_OK)


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
