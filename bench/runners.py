"""The engines by name, for measurements."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sandbox.engines.docker.engine import ContainerLabels, DockerRunner, connect_engine
from sandbox.engines.docker.image import compute_base_reference, find_base_image
from sandbox.engines.process import ProcessRunner
from sandbox.engines.wasm.component import load_component
from sandbox.engines.wasm.engine import WasmRunner
from sandbox.errors import BaseImageMissing
from sandbox.session.interface import Runner

CACHE = Path(__file__).parents[1] / ".cache" / "wasm"


@asynccontextmanager
async def opened_runner(engine: str, spares: int = 0) -> AsyncIterator[Runner]:
    """The runner of an engine: `none` (plain processes), `wasm` or `docker`.

    Raises EngineUnavailable, BaseImageMissing or ComponentMissing.
    """
    if engine == "none":
        yield ProcessRunner()
    elif engine == "wasm":
        async with WasmRunner(load_component(CACHE), spares=spares) as wasm:
            yield wasm
    else:
        client = connect_engine()
        image = find_base_image(client)
        if image is None:
            raise BaseImageMissing(compute_base_reference())
        labels = ContainerLabels("bench", "bench")
        async with DockerRunner(client, image.reference, labels, spares=spares) as docker:
            yield docker
        client.close()
