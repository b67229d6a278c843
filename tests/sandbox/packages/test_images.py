"""Where the pip comes from that fetches packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.packages.images import find_pip


def write_pip(place: Path, vendored: bool = True) -> Path:
    package = place / "pip"
    (package / "_vendor" / ("urllib3" if vendored else "none")).mkdir(parents=True)
    (package / "__main__.py").write_text(str(place))
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_text("x")
    return place


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that a program pip3 belongs to."""
    program = tmp_path / "usr/bin/pip3"
    program.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)
    write_pip(tmp_path / "usr/lib/python3/dist-packages")
    monkeypatch.setenv("PATH", str(program.parent))
    return tmp_path


def test_the_pip_of_this_python_is_taken_without_what_it_compiled(places: Path) -> None:
    own = write_pip(places / "lib/site-packages")
    assert find_pip(["", str(own)]) == {"pip/__main__.py": str(own).encode()}


def test_neither_a_pip_in_the_way_nor_one_without_its_parts_is_taken(places: Path) -> None:
    stray = write_pip(places / "stray")
    partial = write_pip(places / "lib/dist-packages", vendored=False)
    found = find_pip(["", str(stray), str(partial)])
    assert found["pip/__main__.py"] not in (str(stray).encode(), str(partial).encode())
