"""The engine ends in the middle: clear errors, nothing half-registered, and it all comes back."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.bundles import waiting
from tests.crash.client import served
from tests.crash.documents import OBJECT, described, reading
from tests.crash.engine import Engine, private_engine
from tests.crash.installation import Installation, until
from tests.world.site import Page, Site, site

pytestmark = pytest.mark.docker
FAILED = 1
ABSENT = "no container engine answers"


@pytest.fixture(scope="module")
def engine(base_image: str) -> Iterator[Engine]:
    # The path of a Unix socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="engine") as directory:
        with private_engine(Path(directory), base_image) as engine:
            yield engine


@pytest.fixture
def api() -> Iterator[Site]:
    document = described({"/a": reading(OBJECT)})
    with site({"/openapi.json": Page(document), "/a": Page(b'{"name": "x"}')}) as site_:
        yield site_


@pytest.fixture
def installation(tmp_path: Path, engine: Engine, api: Site) -> Installation:
    environment = {"DOCKER_HOST": engine.host}
    environment["TOOLWRIGHT_SPARES"] = "0"
    installation = Installation.made(tmp_path / "home", "docker", **environment)
    installation.allow(api.url)
    installation.put(waiting())
    return installation


def absent(installation: Installation) -> None:
    """`doctor` says what is wrong, and that it is only that."""
    process = installation.start("doctor", "--json", stdout=subprocess.PIPE)
    checks = json.loads(process.communicate()[0])
    failed = [(check["name"], check["found"]) for check in checks if check["verdict"] == "failed"]
    assert process.returncode == FAILED
    assert [name for name, _ in failed] == ["engine"]
    assert ABSENT in failed[0][1]


def present(installation: Installation) -> None:
    """`doctor` finds nothing to say."""
    result = installation.run("doctor", "--json")
    assert {check["verdict"] for check in json.loads(result.stdout)} == {"ok"}


def test_calls_fail_clearly_while_the_engine_is_away_and_work_when_it_is_back(
    installation: Installation, engine: Engine
) -> None:
    with served(installation) as client:
        running = client.ask("call_read", tool="waiting.wait")
        until(lambda: client.value("status")["running"])
        client.value("call_read", tool="waiting.ready")
        engine.stop()
        cut = client.answer(running)
        assert cut["isError"]
        assert cut["_meta"]["toolwright/error"]["kind"] == "crashed"
        assert "its sandbox ended" in cut["content"][0]["text"]
        refused = client.call("call_read", tool="waiting.ready")
        assert refused["isError"]
        assert ABSENT in refused["content"][0]["text"]
        until(lambda: len(client.value("status")["recent"]) == 3)
        absent(installation)
        engine.start()
        client.value("call_read", tool="waiting.ready")
    present(installation)


def test_a_forge_that_loses_the_engine_registers_nothing_waits_and_goes_on_when_it_is_back(
    installation: Installation, engine: Engine, api: Site
) -> None:
    with served(installation) as client:
        engine.pause()
        job = client.value("forge", task="read a", source=api.url)["job"]
        until(lambda: client.value("status", job=job)["stage"] == "static")
        engine.stop()
        held = client.followed(job)
        assert (held["state"], held["result"]) == ("waiting", None)
        assert ABSENT in held["message"]
        assert held["needs"]["how"] == "start Docker"
        assert [entry["tool_id"] for entry in installation.listed()] == ["waiting"]
        assert not [p for p in (installation.home / "servers").iterdir() if p.name[:2] == ".s"]
        engine.start()
        result = installation.run("jobs", job, "--resume")
        assert result.exit_code == 0, result.output
    present(installation)
    assert len(installation.listed()) == 2
