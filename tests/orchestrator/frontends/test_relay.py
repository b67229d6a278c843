"""A call's progress on its way to a client."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.frontends.tool_front import ProgressRelay
from sandbox.wire.notifications import ProgressNotice


def test_what_was_heard_is_told_in_order_before_the_relay_is_closed_and_nothing_after() -> None:
    told: list[float] = []

    async def tell(done: float, total: float | None, message: str) -> None:
        await asyncio.sleep(0)
        told.append(done)

    async def scenario() -> None:
        relay = ProgressRelay(tell)
        for done in (1, 2, 3):
            relay.queue_progress(ProgressNotice(done))
        await relay.close()
        assert told == [1, 2, 3]
        relay.queue_progress(ProgressNotice(4))
        await relay.close()

    asyncio.run(scenario())
    assert told == [1, 2, 3]


@pytest.mark.parametrize("heard", [0, 1, 3])
def test_a_client_that_has_left_does_not_hold_up_the_end(heard: int) -> None:
    async def gone(done: float, total: float | None, message: str) -> None:
        raise ConnectionError

    async def scenario() -> None:
        relay = ProgressRelay(gone)
        for done in range(heard):
            relay.queue_progress(ProgressNotice(done))
        async with asyncio.timeout(60):
            await relay.close()

    asyncio.run(scenario())
