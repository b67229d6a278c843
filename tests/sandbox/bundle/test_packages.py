"""Packages of a forged server: how they are locked, and what its code may import of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.forging.packages import lock_packages
from sandbox.bundle.launch import LockedPackage
from sandbox.bundle.model import parse_files, render_files
from sandbox.bundle.packages import Dependency, parse_dependencies, read_dependencies
from sandbox.errors import BundleInvalid, PackagesNeedDocker, PackageUnusable
from sandbox.stages.static.stage import prove_static
from tests.sandbox.computing import HALVE, computing

DIGEST = f"sha256:{'a' * 64}"
SIX = Dependency("Six.Pack", "1.2", DIGEST, ("six", "six_more"), native=True)


def importing(line: str, *packages: Dependency) -> Any:
    return replace(computing(f"{line}\n{HALVE}"), packages=packages)


def tree(place: Path, files: dict[str, str], name: str = "six_pack-1.2") -> Path:
    record = "\n".join(f"{path},sha256=x,1" for path in files)
    for path, content in {**files, f"{name}.dist-info/RECORD": record}.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(content)
    return place


def test_a_bundle_keeps_its_packages_and_without_any_it_is_as_it_was() -> None:
    bundle = importing("import six", SIX)
    assert parse_files(render_files(bundle), "here") == bundle
    assert b"packages" not in render_files(importing(""))["bundle.toml"]
    assert importing("import six").compute_digest() != bundle.compute_digest()


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "../x"},
        {"name": "-r"},
        {"version": "1 --index-url"},
        {"digest": "md5:1"},
        {"modules": ["os.path"]},
        {"modules": ["toolwright"]},
        {"modules": "six"},
    ],
)
def test_a_bundle_with_what_is_no_package_is_not_read(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"packages\[0\]"):
        parse_dependencies([{"name": "six", "version": "1", "digest": DIGEST, **changed}])
    files = render_files(importing("", SIX))
    files["bundle.toml"] = files["bundle.toml"].replace(b"Six.Pack", b"a b")
    with pytest.raises(BundleInvalid):
        parse_files(files, "here")


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        ("import six", True),
        ("import six.moves as moves", True),
        ("from six.moves import range", True),
        ("from six_more import thing", True),
        ("import other", False),
        ("from six._inner import x", False),
        ("from six import *", False),
        ("from .six import x", False),
        ("import os", False),
    ],
)
def test_code_imports_its_packages_and_nothing_else(line: str, fits: bool) -> None:
    report = prove_static(importing(line, SIX))
    assert report.passed is fits, report.findings
    assert not prove_static(importing(line)).passed


def test_modules_and_machine_code_are_those_of_the_wheels(tmp_path: Path) -> None:
    files = {"six.py": "", "more/__init__.py": "", "more/fast.cpython-312.so": "", "bin/six": ""}
    lock = (LockedPackage("six.pack", "1.2", DIGEST),)
    (made,) = read_dependencies(tree(tmp_path, files), lock)
    assert made == Dependency("six.pack", "1.2", DIGEST, ("more", "six"), native=True)
    assert str(made) == "six.pack 1.2 (with machine code)"


@pytest.mark.parametrize("module", ["json.py", "os/__init__.py", "toolwright/__init__.py"])
def test_no_package_takes_the_place_of_what_is_there(tmp_path: Path, module: str) -> None:
    with pytest.raises(PackageUnusable, match="there already"):
        read_dependencies(tree(tmp_path, {module: ""}), (LockedPackage("six-pack", "1.2", DIGEST),))


def test_a_package_without_a_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageUnusable, match="which files"):
        read_dependencies(tmp_path, (LockedPackage("six-pack", "1.2", DIGEST),))


class Wasm:
    name = "wasm"

    def check_available(self) -> None:
        return


def test_packages_are_refused_on_wasm_saying_what_to_do() -> None:
    asked: Any = Wasm()
    with pytest.raises(PackagesNeedDocker, match="--engine docker"):
        asyncio.run(lock_packages(["six"], "halves", asked, asked, print))
    assert asyncio.run(lock_packages([], "halves", asked, asked, print)) == ()
