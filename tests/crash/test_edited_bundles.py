"""A registered server's files are broken by hand: a clear error, and nothing else is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.bundles import waiting
from tests.crash.client import served
from tests.crash.installation import Installation, until

pytestmark = pytest.mark.docker


def break_syntax(place: Path) -> None:
    (place / "server.py").write_text("def ready(:\n")


def delete_file(place: Path) -> None:
    (place / "tools.json").unlink()


def link_file(place: Path) -> None:
    code = place / "server.py"
    code.rename(place / "elsewhere.py")
    code.symlink_to(place / "elsewhere.py")


def link_directory(place: Path) -> None:
    place.rename(place.with_name(".moved"))
    place.symlink_to(place.with_name(".moved"))


def delete_directory(place: Path) -> None:
    place.rename(place.parent.parent / "moved")


@pytest.fixture
def two(installation: Installation):
    from dataclasses import replace
    installation.put(waiting())
    installation.put(replace(waiting(), name="other"))
    return installation


@pytest.mark.parametrize("broken", [break_syntax, delete_file, link_file, link_directory, delete_directory])
def test_x(broken: Callable[[Path], None], two: Installation) -> None:
    broken(two.home / "servers" / "waiting")
    for w in (("call","waiting.ready"),("call","other.ready"),("doctor",),("list",)):
        r=two.run(*w); print(w, r.exit_code, r.stdout, r.stderr)
    assert 0
