"""Unpacking what strangers packed."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import ArchiveRefused
from sandbox.packages.archive import ArchiveBounds, unpack_archive

Files = dict[str, bytes]
SMALL = ArchiveBounds(files=4, file_bytes=100_000, total_bytes=150_000)


def a_zip(files: Files, mode: int = 0o644) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def a_tar(files: Files, compression: str = "", **changes: object) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=f"w:{compression}") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for attribute, value in changes.items():
                setattr(info, attribute, value)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


PACKERS: tuple[Callable[[Files], bytes], ...] = (
    a_zip,
    a_tar,
    lambda files: a_tar(files, "gz"),
    lambda files: a_tar(files, "bz2"),
    lambda files: a_tar(files, "xz"),
)


@pytest.mark.parametrize("pack", PACKERS)
def test_plain_files_are_unpacked_with_plain_modes(
    pack: Callable[[Files], bytes], tmp_path: Path
) -> None:
    files = {"bundle.toml": b"name", "tests/deep/case.json": b"{}"}
    assert set(unpack_archive(pack(files), tmp_path / "out")) == set(files)
    for name, content in files.items():
        path = tmp_path / "out" / name
        assert path.read_bytes() == content
        assert not path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IXUSR | stat.S_IWOTH)


@pytest.mark.parametrize("pack", PACKERS[:2])
@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "a/../../outside",
        "/etc/outside",
        "a/./b",
        "a//b",
        "C:/outside",
        "..\\outside",
        "a/b\x01c",
        "con",
        "a/nul.txt",
        "trailing./x",
        " lead",
        "x" * 300,
        "/".join("d" * 40),
    ],
)
def test_a_name_that_leads_elsewhere_leaves_nothing(
    pack: Callable[[Files], bytes], name: str, tmp_path: Path
) -> None:
    with pytest.raises(ArchiveRefused):
        unpack_archive(pack({"first": b"x", name: b"x"}), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(kind: bytes, tmp_path: Path) -> None:
    with pytest.raises(ArchiveRefused, match="special file"):
        unpack_archive(a_tar({"link": b""}, type=kind, linkname="/etc/passwd"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o644, stat.S_IFIFO | 0o644])
def test_links_and_devices_in_a_zip_are_refused(mode: int, tmp_path: Path) -> None:
    with pytest.raises(ArchiveRefused, match="special file"):
        unpack_archive(a_zip({"link": b"/etc/passwd"}, mode), tmp_path / "out")


def test_set_id_bits_are_refused(tmp_path: Path) -> None:
    for archive in (
        a_tar({"su": b"x"}, mode=0o4755),
        a_tar({"su": b"x"}, mode=0o2755),
        a_zip({"su": b"x"}, stat.S_IFREG | 0o4755),
    ):
        with pytest.raises(ArchiveRefused, match="somebody else"):
            unpack_archive(archive, tmp_path / "out")


@pytest.mark.parametrize("pack", PACKERS[:2])
def test_names_that_are_one_on_some_systems_are_refused(
    pack: Callable[[Files], bytes], tmp_path: Path
) -> None:
    with pytest.raises(ArchiveRefused, match="twice"):
        unpack_archive(pack({"Server.py": b"1", "server.py": b"2"}), tmp_path / "out")


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize(
    "files",
    [
        {f"f{n}": b"" for n in range(5)},
        {"large": b"\0" * 100_001},
        {"one": b"\0" * 90_000, "two": b"\0" * 90_000},
    ],
    ids=["count", "file", "total"],
)
def test_more_than_the_bounds_leaves_nothing(
    pack: Callable[[Files], bytes], files: Files, tmp_path: Path
) -> None:
    with pytest.raises(ArchiveRefused):
        unpack_archive(pack(files), tmp_path / "out", SMALL)
    assert list(tmp_path.iterdir()) == []


def test_a_bomb_is_recognised_by_its_ratio(tmp_path: Path) -> None:
    bomb = a_zip({"zeros": b"\0" * 50_000_000})
    with pytest.raises(ArchiveRefused, match="more than allowed"):
        unpack_archive(bomb, tmp_path / "out")


def test_a_header_that_claims_gigabytes_is_not_believed(tmp_path: Path) -> None:
    """tarfile reads a pax header whole, whatever its size."""
    pax = tarfile.TarInfo("x")
    pax.type, pax.size = tarfile.XHDTYPE, 8 * 1024**3
    archive = gzip.compress(pax.tobuf(tarfile.GNU_FORMAT) + b"\0" * 30_000_000)
    with pytest.raises(ArchiveRefused):
        unpack_archive(archive, tmp_path / "out", ArchiveBounds(total_bytes=1_000_000))


def test_an_existing_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(ArchiveRefused):
        unpack_archive(a_zip({"mine": b"lost"}), tmp_path / "out")
    assert (tmp_path / "out" / "mine").read_text() == "kept"


@given(st.binary(max_size=300))
def test_noise_is_refused_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes
) -> None:
    place = tmp_path_factory.mktemp("noise")
    for start in (b"", b"PK\x03\x04", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\x00"):
        with pytest.raises(ArchiveRefused):
            unpack_archive(start + noise, place / "out")
        assert list(place.iterdir()) == []
