"""The base image and exported images on a real engine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import docker
import pytest

from sandbox.bundle.model import Bundle, Provenance, ToolDefinition
from sandbox.engines.docker.image import (
    PREFERRED_BASE,
    ROOT_REPOSITORY,
    BaseImage,
    build_base,
    compute_base_reference,
    export_image,
    find_base_image,
)
from sandbox.errors import BaseImageBuildFailed, EngineUnavailable

SHELLS = ("sh", "bash", "dash", "ash", "zsh", "busybox", "perl", "apt", "apt-get")
EXPORTED = "toolwright-test-export:1"
CODE = """
from toolwright import tool

@tool
def where():
    import os, pathlib, sys
    return {
        "uid": os.getuid(),
        "gid": os.getgid(),
        "writable": os.access("/", os.W_OK) or os.access("/opt/toolwright", os.W_OK),
        "compiled": str(sys.modules["toolwright.pipe"].__cached__),
        "exists": pathlib.Path(sys.modules["toolwright.pipe"].__cached__).exists(),
        "path": sys.path,
    }
"""


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture(scope="module")
def base(client: docker.DockerClient) -> BaseImage:
    return build_base(client, lambda step: None)


@pytest.fixture(scope="module")
def exported(client: docker.DockerClient, base: BaseImage) -> Iterator[str]:
    yield export_image(client, bundle(), EXPORTED)
    client.images.remove(EXPORTED, force=True)


def bundle() -> Bundle:
    return Bundle(
        name="sample",
        version=7,
        title='A "title"',
        base_url="https://api.test",
        source_code=CODE,
        tools=(ToolDefinition("where", "Where it runs.", {"type": "object"}, {}, "read"),),
        provenance=Provenance("test", ""),
        description="What it is for.\nFROM nothing",
    )


def talk(image: str, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of a container of the image to requests, ids filled in."""
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": index, **request})
        for index, request in enumerate(requests)
    ]
    done = subprocess.run(
        ["docker", "run", "--rm", "-i", "--network", "none", "--read-only", image],
        input="\n".join(lines).encode() + b"\n",
        capture_output=True,
        timeout=300,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def hello() -> dict[str, Any]:
    return {"method": "initialize", "params": {"protocolVersion": "2025-06-18"}}


def test_the_reference_changes_only_with_the_sources() -> None:
    assert compute_base_reference() == compute_base_reference()
    name, _, digest = compute_base_reference().partition(":")
    assert (name, len(digest)) == ("toolwright-base", 12)


def test_an_engine_that_is_not_there_is_told() -> None:
    client = docker.DockerClient(base_url="tcp://127.0.0.1:1", version="1.41")
    for attempt in (
        lambda: find_base_image(client),
        lambda: build_base(client, lambda step: None),
        lambda: export_image(client, bundle(), EXPORTED),
    ):
        with pytest.raises(EngineUnavailable):
            attempt()
    client.close()


@pytest.mark.docker
def test_the_base_image_is_built_once(client: docker.DockerClient, base: BaseImage) -> None:
    steps: list[str] = []
    assert find_base_image(client) == base
    assert build_base(client, steps.append) == base
    assert steps == []
    assert base.reference == compute_base_reference()


@pytest.mark.docker
def test_the_base_image_is_labelled_and_runs_as_nobody(
    client: docker.DockerClient, base: BaseImage
) -> None:
    config = client.images.get(base.reference).attrs["Config"]
    assert config["User"] == "65534:65534"
    assert config["Entrypoint"][0] == "python3"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "MIT"
    assert "2026-07-28" in config["Labels"]["io.modelcontextprotocol.protocol-versions"]
    assert not any("/bin/sh" in step for step in config["Entrypoint"])


@pytest.mark.docker
def test_an_image_of_debian_packages_holds_no_shell(
    client: docker.DockerClient, base: BaseImage
) -> None:
    if any(PREFERRED_BASE in image.tags for image in client.images.list()):
        pytest.skip(f"the base is {PREFERRED_BASE}, which has a shell")
    assert client.images.list(ROOT_REPOSITORY)
    found = client.containers.run(
        base.reference,
        ["-c", f"import shutil; print([name for name in {SHELLS} if shutil.which(name)])"],
        entrypoint="python3",
        remove=True,
        network_disabled=True,
    )
    assert found.decode().strip() == "[]"


@pytest.mark.docker
def test_an_exported_image_serves_any_client_by_itself(exported: str) -> None:
    greeting, listed, called = talk(
        EXPORTED,
        hello(),
        {"method": "tools/list"},
        {"method": "tools/call", "params": {"name": "where"}},
    )
    assert greeting["result"]["serverInfo"]["name"] == "sample"
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["where"]
    found = called["result"]["structuredContent"]
    assert (found["uid"], found["gid"], found["writable"]) == (65534, 65534, False)
    assert found["exists"], found["compiled"]
    assert not any("site-packages" in entry for entry in found["path"])


@pytest.mark.docker
def test_an_exported_image_says_what_it_is(client: docker.DockerClient, exported: str) -> None:
    image = client.images.get(EXPORTED)
    assert image.id == exported
    labels = image.labels
    assert labels["org.opencontainers.image.title"] == 'A "title"'
    assert labels["org.opencontainers.image.description"] == "What it is for.\nFROM nothing"
    assert labels["org.opencontainers.image.version"] == "7"
    assert labels["toolwright.bundle.digest"] == bundle().compute_digest()


@pytest.mark.docker
def test_the_base_image_waits_for_its_bundle(base: BaseImage) -> None:
    made = bundle()
    params = {
        "manifest": made.build_manifest(),
        "tools": made.list_runtime_tools(),
        "source": made.source_code,
    }
    early, loaded, listed = talk(
        base.reference,
        {"method": "tools/list"},
        {"method": "toolwright/load", "params": params},
        {"method": "tools/list"},
    )
    assert early["error"]["code"] == -32001
    assert loaded["result"] == {"tools": 1}
    assert len(listed["result"]["tools"]) == 1


@pytest.mark.docker
def test_a_tag_that_is_none_is_a_failure_with_its_reason(
    client: docker.DockerClient, base: BaseImage
) -> None:
    with pytest.raises(BaseImageBuildFailed, match="NOT A TAG"):
        export_image(client, bundle(), "NOT A TAG")
