"""Both engines, as what opens a runner; the suite runs once with each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest

from sandbox.engines.docker.engine import ContainerLabels, DockerRunner
from sandbox.engines.wasm.component import LoadedComponent
from sandbox.engines.wasm.engine import WasmRunner
from sandbox.session.interface import Runner

Engine = Callable[..., AbstractAsyncContextManager[Runner]]
"""Takes `brake`, `spares` and `limits`."""


@pytest.fixture
def engine(request: pytest.FixtureRequest, engine_name: str) -> Engine:
    if engine_name == "wasm":
        return partial(WasmRunner, request.getfixturevalue("component"))
    client, image = request.getfixturevalue("docker_engine")
    return partial(DockerRunner, client, image, ContainerLabels("test", "engine"))


@pytest.fixture
def wasm(component: LoadedComponent) -> Callable[..., Any]:
    return partial(WasmRunner, component)
