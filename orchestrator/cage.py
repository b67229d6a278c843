"""The Docker engine for a process that has no home: containers of its own, swept by a reaper."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from sandbox.docker_engine import DockerRunner, Labels, connect
from sandbox.errors import BaseImageMissing
from sandbox.image import base_image, base_reference
from sandbox.reaper import reaper
from sandbox.runner import Runner

INSTANCE = "homeless"


@asynccontextmanager
async def docker_runner() -> AsyncIterator[Runner]:
    """A runner of containers. Raises EngineUnavailable or BaseImageMissing."""
    process = uuid4().hex
    client = await asyncio.to_thread(connect)
    try:
        image = await asyncio.to_thread(base_image, client)
        if image is None:
            raise BaseImageMissing(base_reference())
        with reaper(process):
            async with DockerRunner(client, image.reference, Labels(INSTANCE, process)) as runner:
                yield runner
    finally:
        client.close()
