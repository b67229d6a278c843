"""Calls of compiled tools whose requests go to a recorder."""

from __future__ import annotations

import asyncio
from typing import Any

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.engines.process import ProcessRunner
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import build_tool_policy


class Recorder:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def send(self, request: WireRequest) -> WireResponse:
        self.bodies.append(request.body)
        return WireResponse(200, (("content-type", "application/json"),), b"{}")


def send(bundle: Bundle, arguments: dict[str, Any]) -> bytes:
    """The body that a call of the only tool sends."""
    (tool,) = bundle.tools
    upstream = Recorder()

    async def call() -> None:
        broker = Broker(build_tool_policy(bundle, tool.name), upstream)
        async with ProcessRunner().open(bundle, broker) as session:
            await session.call(tool.name, arguments)

    asyncio.run(call())
    (body,) = upstream.bodies
    return body
