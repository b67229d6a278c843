"""The engine ends in the middle: clear errors, nothing half-registered, and it all comes back."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.image import BaseImage
from tests.crash.bundles import stubborn
from tests.crash.client import Served, served
from tests.crash.documents import OBJECT, described, reading
from tests.crash.engine import Engine, private_engine
from tests.crash.installation import Installation, until
from tests.world.site import Page, Site, site

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def engine(engine_image: BaseImage) -> Iterator[Engine]:
    # The path of a Unix socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="engine") as directory:
        with private_engine(Path(directory), engine_image.reference) as engine:
            yield engine


@pytest.fixture
def installation(tmp_path: Path, engine: Engine) -> Installation:
    installation = Installation.made(tmp_path / "home", DOCKER_HOST=engine.host)
    installation.put(stubborn())
    return installation


def test_x(installation: Installation, engine: Engine) -> None:
    released = threading.Event()
    def never() -> Iterator[bytes]:
        released.wait()
        yield b'{"name": "x"}'
    with site() as pages, served(installation) as client:
        pages.pages["/openapi.json"] = Page(described({"/a": reading(OBJECT)}))
        pages.pages["/a"] = Page(chunks=never)
        installation.allow(pages.url)
        print(client.call("call_read", tool="stubborn.ready"))
        j=client.value("forge", task="t", source=pages.url)["job"]
        hang=client.ask("call_read", tool="stubborn.hang")
        until(lambda: "/a" in pages.paths)
        engine.stop()
        print(client.answer(hang))
        released.set()
        print(client.followed(j))
        print(client.call("call_read", tool="stubborn.ready"))
        print(client.forged(pages.url))
        r=installation.run("doctor"); print(r.exit_code, r.stdout, r.stderr)
        r=installation.run("call","stubborn.ready"); print(r.exit_code, r.stdout, r.stderr)
        r=installation.run("forge","x", "--source", pages.url); print(r.exit_code, r.stdout, r.stderr)
        r=installation.run("kill"); print(r.exit_code, r.stdout, r.stderr)
        r=installation.run("unfreeze","--pin-file",str(installation.pin_file)); print(r.exit_code, r.stdout, r.stderr)
        engine.start()
        print(client.call("call_read", tool="stubborn.ready"))
        print(client.forged(pages.url))
    assert 0
