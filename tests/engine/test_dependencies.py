"""A forged server with packages: fetched as wheels, locked, laid in an image of its own."""

from __future__ import annotations

import asyncio
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.cassette import Cassette
from sandbox.docker_engine import Client, DockerRunner, Labels
from sandbox.errors import PackageUnusable
from sandbox.image import export_image
from sandbox.layers import dependency_layer, remove_layer, resolved
from sandbox.policy import Policy
from sandbox.prove import prove
from sandbox.report import Proof
from tests.sandbox.computing import CASES, HALVE, computing

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


def test_a_server_with_packages_is_proved_exported_and_made_again(
    docker_engine: tuple[Client, str], index: Path
) -> None:
    client, base = docker_engine
    found = resolved(client, ["halving==1.0"], print)
    assert {(p.name, p.version, p.modules) for p in found} == {
        ("halving", "1.0", ("halving",)),
        ("dividing", "2.0", ("dividing",)),
    }
    bundle = replace(computing(CODE), packages=found)
    layer = dependency_layer(client, bundle, print)
    try:
        proof = asyncio.run(proved(client, base, bundle))
        assert proof.passed, proof
        assert [report.stage for report in proof.reports][:3] == ["static", "suite", "cases"]
        tag = "toolwright-test-halves:1"
        export_image(client, bundle, tag, layer)
        try:
            asked = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"halve",'
            asked += '"arguments":{"number":3},"_meta":{}}}\n'
            hello = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n'
            said = subprocess.run(
                ["docker", "run", "-i", "--rm", "--network", "none", tag],
                input=hello + asked,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert '"half":1.5' in said.stdout.replace(" ", ""), said
        finally:
            client.images.remove(tag, force=True)
        remove_layer(client, layer)
        wheel(index, "def half_of(number):\n    return 0\n", "halving", "1.0", "dividing")
        with pytest.raises(PackageUnusable, match=r"(?i)hash"):
            dependency_layer(client, bundle, print)
    finally:
        remove_layer(client, layer)


async def proved(client: Client, base: str, bundle: Bundle) -> Proof:
    async with DockerRunner(client, base, Labels("test", "engine")) as runner:
        async with runner.open(bundle, Broker(Policy(()), Cassette(()))) as session:
            assert (await session.call("halve", {"number": 5})).structured == {"half": 2.5}
        return await prove(bundle, runner, examples=CASES, suite=SUITE)
