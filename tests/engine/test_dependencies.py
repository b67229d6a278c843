"""A forged server with packages: fetched as wheels, locked, laid in an image of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import StageReport
from sandbox.engines.docker.engine import Client, ContainerLabels, DockerRunner
from sandbox.engines.docker.image import export_image
from sandbox.engines.docker.layers import build_dependency_layer, remove_layer, resolve_packages
from sandbox.errors import PackageUnusable
from sandbox.packages.fetch import PythonTarget, fetch_locked, fetch_wheels
from sandbox.stages.static.stage import prove_static
from sandbox.stages.suite import build_harness, prove_suite
from sandbox.wire.policy import Policy
from tests.sandbox.computing import HALVE, computing

pytestmark = pytest.mark.docker

CODE = "from halving import half_of\n" + HALVE.replace("number / 2", "half_of(number)")
SUITE = (
    "from server import halve\n\n\ndef test_it():\n    assert halve(number=3) == {'half': 1.5}\n"
)


def wheel(place: Path, code: str, name: str, version: str, needs: str = "") -> None:
    about = f"{name}-{version}.dist-info"
    wants = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{name}.py": code,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wants}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(place / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place that pip takes wheels from, instead of PyPI."""
    place = tmp_path / "index"
    place.mkdir()
    halving = "from dividing import by\n\n\ndef half_of(number):\n    return by(number, 2)\n"
    wheel(place, halving, "halving", "1.0", "dividing")
    wheel(place, "def by(one, other):\n    return one / other\n", "dividing", "2.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    return place


def test_a_server_with_packages_runs_its_tests_and_is_exported(
    docker_engine: tuple[Client, str], index: Path
) -> None:
    client, base = docker_engine
    found = resolve_packages(client, ["halving==1.0"], print)
    assert {(p.name, p.version, p.modules) for p in found} == {
        ("halving", "1.0", ("halving",)),
        ("dividing", "2.0", ("dividing",)),
    }
    bundle = replace(computing(CODE), packages=found)
    assert prove_static(bundle).passed
    layer = build_dependency_layer(client, bundle, print)
    try:
        assert asyncio.run(ran(client, base, bundle)).passed
        assert '"half":1.5' in exported(client, bundle, layer)
    finally:
        remove_layer(client, layer)


async def ran(client: Client, base: str, bundle: Bundle) -> StageReport:
    async with DockerRunner(client, base, ContainerLabels("test", "engine")) as runner:
        made = build_harness(bundle)
        return await prove_suite(
            bundle, SUITE, lambda: runner.open(made, Broker(Policy(()), Cassette(())))
        )


def exported(client: Client, bundle: Bundle, layer: str) -> str:
    """What the exported image answers to a call."""
    tag = "toolwright-test-halves:1"
    export_image(client, bundle, tag, layer)
    call = {"name": "halve", "arguments": {"number": 3}}
    said = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
    ]
    try:
        done = subprocess.run(
            ["docker", "run", "-i", "--rm", "--network", "none", tag],
            input="".join(json.dumps(message) + "\n" for message in said),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        client.images.remove(tag, force=True)
    return done.stdout.replace(" ", "")


def test_a_package_that_is_not_what_was_locked_is_not_taken(index: Path, tmp_path: Path) -> None:
    ours = PythonTarget(f"{sys.version_info.major}.{sys.version_info.minor}", os.uname().machine)
    place = tmp_path / "fetched" / "tree"
    place.mkdir(parents=True)
    lock = fetch_wheels(["dividing"], place, ours)
    again = tmp_path / "again" / "tree"
    again.mkdir(parents=True)
    wheel(index, "def by(one, other):\n    return 0\n", "dividing", "2.0")
    with pytest.raises(PackageUnusable, match=r"(?i)hash"):
        fetch_locked(lock, again, ours)
    assert not list(again.iterdir())
