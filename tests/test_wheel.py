"""The wheel, which is all that `uvx toolwright` and `pipx run toolwright` have."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.functional.home import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]


@pytest.fixture(scope="module")
def shipped() -> set[str]:
    """The paths of the files in the wheel."""
    files = WheelBuilder(str(ROOT)).recurse_included_files()
    return {Path(file.distribution_path).as_posix() for file in files}


def files_of(directory: Path, name: str) -> set[str]:
    """The files below a directory, as paths below `name`."""
    files = [path.relative_to(directory) for path in directory.rglob("*") if path.is_file()]
    kept = [path for path in files if path.suffix != ".pyc" and not _is_hidden(path)]
    return {f"{name}/{path.as_posix()}" for path in kept}


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


@pytest.mark.parametrize("package", WHEEL["packages"])
def test_the_wheel_holds_every_file_of_its_packages(package: str, shipped: set[str]) -> None:
    sources = files_of(ROOT / package, package)
    assert sources
    assert sources <= shipped


def test_the_wheel_holds_what_is_shown_outside_of_a_checkout(shipped: set[str]) -> None:
    for source, name in WHEEL["force-include"].items():
        assert files_of(ROOT / source, name) <= shipped


def test_the_wheel_holds_nothing_else(shipped: set[str]) -> None:
    assert {path.partition("/")[0] for path in shipped} == set(WHEEL["packages"])
    assert not {path for path in shipped if path.endswith((".pyc", ".log"))}


def test_the_command_is_a_function_that_the_wheel_holds(shipped: set[str]) -> None:
    for target in PROJECT["project"]["scripts"].values():
        module, _, name = target.partition(":")
        assert f"{module.replace('.', '/')}.py" in shipped
        assert callable(getattr(importlib.import_module(module), name))
