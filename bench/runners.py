"""The engines by name, for measurements."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sandbox.docker_engine import DockerRunner, Labels, connect
from sandbox.errors import BaseImageMissing
from sandbox.image import base_image, base_reference
from sandbox.process_engine import ProcessRunner
from sandbox.runner import Runner
from sandbox.wasm_component import load_component
from sandbox.wasm_engine import WasmRunner

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
        client = connect()
        image = base_image(client)
        if image is None:
            raise BaseImageMissing(base_reference())
        labels = Labels("bench", "bench")
        async with DockerRunner(client, image.reference, labels, spares=spares) as docker:
            yield docker
        client.close()
