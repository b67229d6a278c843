"""An exported image is an ordinary MCP server, with no Toolwright around."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.home import Home
from tests.functional.journey import Journey
from tests.world.inspector import inspect
from tests.world.powerdns import PowerDNS

pytestmark = [
    pytest.mark.docker,
    pytest.mark.parametrize("engine_name", ["docker"], indirect=True, scope="session"),
]

TAG = "toolwright-test-functional:1"


@pytest.fixture(scope="module")
def exported(journey: Journey, toolwright_home: Home) -> Iterator[dict[str, Any]]:
    """What `toolwright export powerdns --json` says; its image is removed afterwards."""
    yield toolwright_home.read("export", "powerdns", "--tag", TAG)
    subprocess.run(["docker", "rmi", "--force", TAG], check=True, capture_output=True)


def docker_run(*options: str) -> list[str]:
    return ["docker", "run", "-i", "--rm", "--network", "host", *options, TAG]


def test_the_image_lists_its_tools_cleanly(exported: dict[str, Any], node_modules: Path) -> None:
    listed = inspect(docker_run(), "tools/list")
    assert listed.returncode == 0, listed.stdout + listed.stderr
    assert len(json.loads(listed.stdout)["tools"]) == 36


def test_the_image_calls_the_live_api_with_the_credential_it_is_given(
    exported: dict[str, Any], node_modules: Path, powerdns: PowerDNS
) -> None:
    (variable,) = exported["environment"]
    # The short `-e` would be taken for the Inspector's own.
    command = docker_run(f"--env={variable}={powerdns.key}")
    called = inspect(
        command, "tools/call", "--tool-name", "list_zones", "--tool-arg", "server_id=localhost"
    )
    assert called.returncode == 0, called.stdout + called.stderr
    zones = json.loads(called.stdout)["structuredContent"]
    assert zones["status"] == 200
    assert "journey.test." in [zone["name"] for zone in zones["body"]]


def test_the_image_without_the_credential_says_what_it_wants(
    exported: dict[str, Any], node_modules: Path
) -> None:
    called = inspect(
        docker_run(), "tools/call", "--tool-name", "list_zones", "--tool-arg", "server_id=localhost"
    )
    assert called.returncode == 5
    assert exported["environment"][0] in called.stdout + called.stderr
