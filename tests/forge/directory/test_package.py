"""One description out of a copy of the package: the right one, whole, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forge.directory.package import read_description
from forge.directory.service import Package
from forge.errors import MemberMissing
from tests.forge.directory.samples import description, directory

DOCUMENTS = {"a.example": description("A"), "b.example/x": description("B")}


def test_a_description_is_read_out_of_the_tarball_that_the_index_was_made_from(
    tmp_path: Path,
) -> None:
    place = tmp_path / "p.tgz"
    package = directory(place, DOCUMENTS).package
    read = json.loads(read_description(place, "b.example/x", package))
    assert read == DOCUMENTS["b.example/x"]


@pytest.mark.parametrize("below", ["", "api", "package/api"])
def test_a_description_is_read_out_of_an_unpacked_copy(tmp_path: Path, below: str) -> None:
    path = tmp_path / below / "b.example" / "x.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    package = Package("p", "1", "sha512-none")
    assert read_description(tmp_path, "b.example/x", package) == b"{}"


def test_a_description_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    place = tmp_path / "p.tgz"
    package = directory(place, DOCUMENTS).package
    for copy in (place, tmp_path):
        with pytest.raises(MemberMissing, match=r"c\.example"):
            read_description(copy, "c.example", package)


def test_a_copy_that_is_not_there_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(MemberMissing, match="cannot be read"):
        read_description(tmp_path / "none.tgz", "a.example", Package("p", "1", "sha512-none"))
