from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.docker_engine import connect
from sandbox.errors import EngineUnavailable
from sandbox.image import BaseImage, build_base
from tests.crash.installation import Installation
from tests.world.harbour import HarbourApi, harbour_api

Make = Callable[..., Installation]


@pytest.fixture(scope="session")
def engine_image() -> BaseImage:
    """The base image, built if it is missing."""
    try:
        client = connect()
    except EngineUnavailable as error:
        pytest.skip(str(error))
    try:
        return build_base(client, lambda step: None)
    finally:
        client.close()


@pytest.fixture
def installation(tmp_path: Path, engine_image: BaseImage) -> Installation:
    return Installation.made(tmp_path / "home", TOOLWRIGHT_SPARES="0")


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[HarbourApi]:
    with harbour_api(tmp_path) as api:
        yield api
