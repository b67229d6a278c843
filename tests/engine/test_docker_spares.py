"""Containers of the Docker engine that are started before anybody needs them."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from sandbox.engines.docker.containers import ContainerManager, ContainerSpec
from sandbox.engines.docker.engine import ContainerLabels, DockerRunner, list_containers
from sandbox.session.interface import Limits
from tests.engine.samples import FETCH, body, broker, bundle

pytestmark = pytest.mark.docker
SERVER = bundle(FETCH, "fetch")


def test_a_spare_that_was_taken_is_replaced_and_none_is_left(docker_engine: Any) -> None:
    client, image = docker_engine
    labels = ContainerLabels("test", uuid.uuid4().hex)

    def count() -> int:
        return len(list_containers(client, process=labels.process))

    async def use() -> None:
        async with DockerRunner(client, image, labels, spares=1) as runner:
            async with runner.open(SERVER, broker(SERVER, body(b"{}"))) as session:
                assert (await session.call("fetch", {"key": "a"})).ok
                async with asyncio.timeout(60):
                    while count() < 2:
                        await asyncio.sleep(0.05)

    asyncio.run(use())
    assert count() == 0


def test_one_that_is_given_up_while_the_engine_makes_it_is_gone_at_the_end(
    docker_engine: Any,
) -> None:
    client, image = docker_engine
    labels = ContainerLabels("test", uuid.uuid4().hex)

    async def use() -> None:
        containers = ContainerManager(client.api)
        design = ContainerSpec(image, labels.to_dict())
        start = asyncio.create_task(containers.start_container(design, Limits()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        start.cancel()
        await asyncio.wait({start})
        assert start.cancelled()
        await containers.close()

    asyncio.run(use())
    assert list_containers(client, process=labels.process) == ()
