"""A forged server with packages: fetched as wheels, locked, laid in an image of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import StageReport
from sandbox.engines.docker.engine import Client, ContainerLabels, DockerRunner
from sandbox.engines.docker.image import export_image
from sandbox.engines.docker.layers import PythonTarget, detect_python, remove_layer
from sandbox.errors import PackageUnusable
from sandbox.packages.fetch import fetch_locked, fetch_wheels
from sandbox.packages.layers import build_dependency_layer, resolve_packages
from sandbox.stages.static.stage import prove_static
from sandbox.stages.suite import build_harness, prove_suite
from sandbox.wire.policy import Policy
from tests.sandbox.computing import HALVE, computing
from tests.world.registry import FakeRegistry, registry

pytestmark = pytest.mark.docker

CODE = "from halving import half_of\n" + HALVE.replace("number / 2", "half_of(number)")
SUITE = (
    "from server import halve\n\n\ndef test_it():\n    assert halve(number=3) == {'half': 1.5}\n"
)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    """An index that pip takes wheels from, instead of PyPI."""
    halving = "from dividing import by\n\n\ndef half_of(number):\n    return by(number, 2)\n"
    with registry() as made:
        made.add_wheel("halving", "1.0", {"halving.py": halving}, "dividing")
        made.add_wheel(
            "dividing", "2.0", {"dividing.py": "def by(one, other):\n    return one / other\n"}
        )
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


def test_a_server_with_packages_runs_its_tests_and_is_exported(
    docker_engine: tuple[Client, str], index: FakeRegistry
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


def test_a_package_that_is_not_what_was_locked_is_not_taken(
    docker_engine: tuple[Client, str], index: FakeRegistry, tmp_path: Path
) -> None:
    ours = detect_python(docker_engine[0], print)
    place, again = tmp_path / "fetched", tmp_path / "again"
    place.mkdir()
    again.mkdir()
    lock = fetch_wheels(["dividing"], place, ours)
    other = {"dividing.py": "def by(one, other):\n    return 0\n"}
    index.replace_wheel("dividing", "2.0", other)
    with pytest.raises(PackageUnusable, match=r"(?i)hash"):
        fetch_locked(lock, again, ours)
    assert not list(again.iterdir())


def test_wheels_are_fetched_for_another_python_too(
    docker_engine: tuple[Client, str], index: FakeRegistry, tmp_path: Path
) -> None:
    lock = fetch_wheels(["halving"], tmp_path, PythonTarget("3.99", "aarch64"))
    assert {package.name for package in lock} == {"halving", "dividing"}
