"""What tests of several folders share: the world's parts, the base image, a home."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from sandbox.docker_engine import Client, connect
from sandbox.errors import EngineUnavailable
from sandbox.image import build_base
from tests.functional.home import Home, new_home
from tests.world.inspector import inspector
from tests.world.powerdns import powerdns

# A time limit per example would say more of the machine's load than of the code.
settings.register_profile("toolwright", deadline=None)
settings.load_profile("toolwright")

__all__ = ["base_image", "inspector", "powerdns", "toolwright_home"]


@pytest.fixture(scope="session")
def docker_engine(base_image: str) -> Iterator[tuple[Client, str]]:
    """A client of the engine, and the base image's name."""
    client = connect()
    yield client, base_image
    client.close()


@pytest.fixture(scope="session")
def base_image() -> str:
    """The name of the base image, built if it is missing. Skips where no engine answers."""
    try:
        client = connect()
    except EngineUnavailable as error:
        pytest.skip(f"Docker: {error}")
    try:
        return build_base(client, print).reference
    finally:
        client.close()


@pytest.fixture(scope="session")
def toolwright_home(base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home that the whole run shares, at first without a server."""
    with new_home(tmp_path_factory.mktemp("toolwright")) as home:
        yield home
