"""SIGKILL of whatever runs sandboxes: soon none is left, however stubborn."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

import pytest
from docker.errors import APIError

from sandbox.engines.docker.engine import connect_engine
from tests.crash.bundles import HANGING, stubborn
from tests.crash.client import served
from tests.crash.documents import OBJECT, described, reading
from tests.crash.installation import Installation, until
from tests.world.site import Page, site

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, base_image: str) -> Installation:
    installation = Installation.made(tmp_path_factory.mktemp("reaped") / "home", "docker")
    installation.put(stubborn())
    return installation


def check_reaped(installation: Installation, process: subprocess.Popen[bytes]) -> None:
    """Kill the process and see its sandboxes gone before anything else cleans up.

    It is waited for only after the next start, as by a client that never does it.
    """
    assert installation.containers()
    process.kill()
    until(lambda: not installation.containers())
    assert installation.run("call", "stubborn.ready").exit_code == 0
    assert installation.troubles() == []
    process.wait()


def hangs(installation: Installation) -> bool:
    """Whether the tool that never returns runs in one of the sandboxes."""
    client = connect_engine()
    try:
        return any(
            HANGING in row
            for identity in installation.containers()
            for row in client.api.top(identity, "-eo pid,comm")["Processes"]
        )
    except APIError:
        return False
    finally:
        client.close()


def test_a_killed_serve_leaves_no_sandbox(shared: Installation) -> None:
    with served(shared) as client:
        client.ask("call_read", tool="stubborn.hang")
        until(lambda: hangs(shared))
        check_reaped(shared, client.process)


def test_a_killed_run_leaves_no_sandbox(shared: Installation) -> None:
    with served(shared, "run", "stubborn") as client:
        client.ask("hang")
        until(lambda: hangs(shared))
        check_reaped(shared, client.process)


def test_a_killed_do_leaves_no_sandbox(shared: Installation) -> None:
    with shared.start("do", "stubborn.hang", stderr=subprocess.DEVNULL) as process:
        until(lambda: hangs(shared))
        check_reaped(shared, process)


def test_a_killed_forge_leaves_no_sandbox(shared: Installation) -> None:
    released = threading.Event()

    def never() -> Iterator[bytes]:
        released.wait()
        yield b""

    with site() as pages:
        pages.pages["/openapi.json"] = Page(described({"/a": reading(OBJECT)}))
        pages.pages["/a"] = Page(chunks=never)
        shared.allow(pages.url)
        words = ("forge", "read a", "--source", pages.url, "--name", "killed")
        with shared.start(*words, stderr=subprocess.DEVNULL) as process:
            until(lambda: "/a" in pages.paths)
            check_reaped(shared, process)
        released.set()
    assert [entry["tool_id"] for entry in shared.listed()] == ["stubborn"]
