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


def test_a_spare_that_is_ready_as_whoever_takes_it_is_cancelled_is_not_left(
    docker_engine: Any,
) -> None:
    client, image = docker_engine
    labels = ContainerLabels("test", uuid.uuid4().hex)

    async def use() -> None:
        async with DockerRunner(client, image, labels, spares=1) as runner:
            (spare,) = (
                task
                for task in asyncio.all_tasks()
                if getattr(task.get_coro(), "__name__", "") == "_start_container"
            )
            session = runner.open(SERVER, broker(SERVER, body(b"{}")))
            opening = asyncio.ensure_future(session.__aenter__())
            # Before the one who waits for it goes on.
            spare.add_done_callback(lambda _: opening.cancel())
            with pytest.raises(asyncio.CancelledError):
                await opening
            taken = spare.result().identity
            await runner.wait_drained()
            left = [each["Id"] for each in list_containers(client, process=labels.process)]
            assert taken not in left

    asyncio.run(use())
