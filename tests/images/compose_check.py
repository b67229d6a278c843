"""The image of docker-compose.yml, built and run with the settings of its services: the checks of
`scripts/compose-check`, which are too slow for each run of the tests.

Its base, python:3.12-slim, is replaced by the project's own Debian root, in which the locked
packages are there already (copied from this environment): what pip would fetch is satisfied, and
every step of the Dockerfile runs.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import docker
import pytest
import yaml

from sandbox.engines.docker.image import build_context, find_image, import_debian_root
from tests.functional.home import ROOT

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
DOCKERFILE = SERVICES["control"]["build"]["dockerfile"]
LOCK = ROOT / "images/toolwright/requirements.lock"
BASE_REPOSITORY = "toolwright-compose-base"
SECONDS = 300
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
LIBRARIES = Path("/usr/lib") / str(sysconfig.get_config_var("MULTIARCH"))
"""Packages with native code want C++'s library, which the Debian root has not."""
PIN = "a-pin-of-the-test"


@dataclass(frozen=True)
class Composed:
    """The image, and the prefix of the names of this run's containers and volumes."""

    image: str
    prefix: str

    def build_command(self, service: str, *options: str) -> list[str]:
        """`docker run` with what docker-compose.yml says of the service."""
        told = SERVICES[service]
        words = ["docker", "run", *options, f"--read-only={str(told['read_only']).lower()}"]
        for name, key in (
            ("--cap-drop", "cap_drop"),
            ("--security-opt", "security_opt"),
            ("--tmpfs", "tmpfs"),
        ):
            words += [word for each in told[key] for word in (name, each)]
        for volume in told["volumes"]:
            named = volume if volume.startswith("/") else f"{self.prefix}-{volume}"
            words += ["--volume", named]
        words += ["--group-add", str(os.stat("/var/run/docker.sock").st_gid)]
        if "pid" in told:
            words += ["--pid", f"container:{self.prefix}-{told['pid'].removeprefix('service:')}"]
        return [*words, self.image]

    def run(self, words: Sequence[str], text: str = "") -> str:
        """What a command prints on its standard output; it must succeed."""
        done = subprocess.run(
            words, input=text, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def composed() -> Iterator[Composed]:
    client = docker.from_env(timeout=SECONDS)
    prefix = f"toolwright-test-{uuid.uuid4().hex[:8]}"
    made = Composed(f"{prefix}:local", prefix)
    try:
        base = ensure_base(client)
        build = ["docker", "build", "--quiet", "--build-arg", f"BASE={base}"]
        made.run([*build, "--file", DOCKERFILE, "--tag", made.image, str(ROOT)])
        yield made
    finally:
        for container in client.containers.list(all=True, filters={"name": prefix}):
            container.remove(force=True, v=True)
        for volume in client.volumes.list(filters={"name": prefix}):
            volume.remove(force=True)
        if find_image(client, made.image):
            client.images.remove(made.image, force=True)
        client.close()


def ensure_base(client: docker.DockerClient) -> str:
    """The Debian root with pip and the packages of the image's lock, made once for each lock."""
    root = import_debian_root(client, lambda step: None)
    names = ["pip", *re.findall(r"^([\w.-]+)==", LOCK.read_text(), re.MULTILINE)]
    recipe = (
        f"FROM {root}\nENV PIP_BREAK_SYSTEM_PACKAGES=1 PIP_NO_INDEX=1\n"
        f"COPY packages /usr/local/lib/{PYTHON}/dist-packages\n"
        f"COPY libraries {LIBRARIES}\n"
    )
    parts = (LOCK.read_bytes(), recipe.encode(), find_image(client, root).encode())
    tag = f"{BASE_REPOSITORY}:{hashlib.sha256(b''.join(parts)).hexdigest()[:12]}"
    if find_image(client, tag):
        return tag
    with TemporaryFile() as context:
        with tarfile.open(fileobj=context, mode="w") as archive:
            for path, name in list_packages(names):
                archive.add(path, f"packages/{name}", recursive=False)
            for library in ("libstdc++.so.6", "libgcc_s.so.1"):
                archive.add((LIBRARIES / library).resolve(), f"libraries/{library}")
            member = tarfile.TarInfo("Dockerfile")
            member.size = len(recipe)
            with TemporaryFile() as text:
                text.write(recipe.encode())
                text.seek(0)
                archive.addfile(member, text)
        context.seek(0)
        build_context(client, context, tag, {}, {}, network="none")
    return tag


def list_packages(names: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """The files of installed packages below their site-packages, and their paths there. What the
    lock has for other systems only is not installed here, nor wanted there.
    """
    for name in names:
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in package.files or ():
            path = Path(str(package.locate_file(file)))
            if ".." not in file.parts and path.is_file():
                yield path, file.as_posix()


def test_the_image_of_compose_runs_the_control_plane_and_the_server(composed: Composed) -> None:
    setup = [*composed.build_command("control", "--rm", "--interactive"), "setup"]
    composed.run([*setup, "--yes", "--engine", "docker", "--pin-file", "-"], f"{PIN}\n")

    name = f"{composed.prefix}-control"
    control = composed.build_command("control", "--detach", "--init", "--name", name)
    composed.run([*control, *SERVICES["control"]["command"]])
    health = SERVICES["control"]["healthcheck"]["test"][1:]
    wait_for_health(name, health)

    served = [*composed.build_command("serve", "--rm", "--interactive"), "serve"]
    status = ask_status(served)
    assert not status.get("isError")
    assert status["structuredContent"]["frozen"] is False


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def ask_status(words: Sequence[str]) -> dict[str, Any]:
    """What an MCP server that a command starts answers to a call of `status`."""
    messages = (
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "status", "arguments": {}}},
    )
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin
        assert peer.stdout
        for message in messages:
            peer.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        peer.stdin.flush()
        answers = (json.loads(line) for line in peer.stdout)
        found = next(answer for answer in answers if answer.get("id") == 2)
        peer.stdin.close()
    result: dict[str, Any] = found["result"]
    return result


def wait_for_health(name: str, health: Sequence[str]) -> None:
    for _ in range(600):
        done = subprocess.run(["docker", "exec", name, *health], capture_output=True, check=False)
        if done.returncode == 0:
            return
    logs = subprocess.run(["docker", "logs", name], capture_output=True, text=True, check=False)
    raise AssertionError(logs.stdout + logs.stderr)
