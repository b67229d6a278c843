"""Adding a third-party server leaves nothing behind where it fails."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import docker.errors
import pytest

from orchestrator.forging.thirdparty.image import PreparedSource
from orchestrator.forging.thirdparty.registration import Addition, Additions
from orchestrator.forging.thirdparty.source import NpmSource
from orchestrator.settings import Settings
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.launch import Launch
from sandbox.engines.docker.engine import Client, connect_engine
from sandbox.engines.docker.layers import REPOSITORY
from sandbox.errors import SandboxError

pytestmark = pytest.mark.docker


@pytest.fixture
def client() -> Iterator[Client]:
    with closing(connect_engine()) as here:
        yield here


@pytest.fixture
def image(client: Client, base_image: str) -> str:
    """An image that was built for a server."""
    recipe = io.BytesIO(f"FROM {base_image}\nLABEL made.for=a-failed-add\n".encode())
    built, _ = client.images.build(fileobj=recipe, tag=f"{REPOSITORY}:failed-add", rm=True)
    return str(built.id)


@dataclass(frozen=True)
class Engine:
    """One that has fetched a server, which then does not start."""

    image: str

    def check_caged(self, name: str) -> None:
        pass

    def allow_declared(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()

    async def fetch(self, work: object) -> PreparedSource:
        return PreparedSource(Launch("image", image=self.image), "npm:x@1", "0" * 64, "x 1")

    def open(self, *_: object) -> AbstractContextManager[None]:
        raise SandboxError("it does not start")


def test_an_image_that_was_built_for_a_server_that_is_not_registered_goes_again(
    settings: Settings, store: Store, client: Client, image: str
) -> None:
    engine = cast(Any, Engine(image))
    shelf = Bundles(settings.home, store.servers)
    additions = Additions(store.servers, store.grants, cast(Any, None), shelf, engine, engine)
    source = NpmSource("x")
    with pytest.raises(SandboxError, match="does not start"):
        asyncio.run(additions.add(Addition("x", source), cast(Any, None), print))
    with pytest.raises(docker.errors.ImageNotFound):
        client.images.get(image)
