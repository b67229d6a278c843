"""Both engines, as what opens a runner; the suite runs once with each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest

from sandbox.docker_engine import DockerRunner, Labels
from sandbox.runner import Runner
from sandbox.wasm_component import LoadedComponent, build_component
from sandbox.wasm_engine import WasmRunner
from tests.world.cache import ROOT

Engine = Callable[..., AbstractAsyncContextManager[Runner]]
"""Takes `brake`, `spares` and `limits`."""


@pytest.fixture(scope="session")
def component() -> LoadedComponent:
    """The component, built where no earlier run has."""
    ROOT.mkdir(exist_ok=True)
    (ROOT / ".gitignore").write_text("*\n")
    return build_component(ROOT / "wasm", print)


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "wasm"])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "wasm":
        return partial(WasmRunner, request.getfixturevalue("component"))
    client, image = request.getfixturevalue("docker_engine")
    return partial(DockerRunner, client, image, Labels("test", "engine"))


@pytest.fixture
def wasm(component: LoadedComponent) -> Callable[..., Any]:
    return partial(WasmRunner, component)
