"""Bundles of a few lines, and upstreams to call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.wire.exchange import Caps, WireRequest, WireResponse
from sandbox.wire.policy import build_read_policy

OBJECT: dict[str, Any] = {"type": "object"}
ITEMS = (RequestPattern("GET", "https://api.test/v1/items/{key}"),)
JSON = (("content-type", "application/json"),)
FETCH = """
from toolwright import http, tool

@tool
def fetch(key):
    return http.request("GET", "/items/{key}", path={"key": key})
"""
RUN = """
from toolwright import http, tool

@tool
def run(code):
    names = {"http": http}
    exec(code, names)
    return {"got": names.get("got")}
"""


def bundle(source: str, *names: str, author: str = "client", pure: bool = False) -> Bundle:
    """A bundle with these tools, which may ask for `ITEMS` unless they are pure."""
    requests = () if pure else ITEMS
    return Bundle(
        name="sample",
        version=1,
        title="Sample",
        base_url="https://api.test/v1",
        source_code=source,
        tools=tuple(
            ToolDefinition(name, "A sample.", OBJECT, OBJECT, "read", requests=requests)
            for name in names
        ),
        provenance=Provenance("test", "0" * 64, author=author),
        permissions=("network:api.test",),
    )


class Api:
    """An upstream that a function answers for."""

    def __init__(self, answer: Callable[[WireRequest], WireResponse]) -> None:
        self._answer = answer
        self.asked: list[WireRequest] = []

    async def send(self, request: WireRequest) -> WireResponse:
        self.asked.append(request)
        return self._answer(request)


class Gate:
    """An upstream whose answers wait until as many requests as wanted are there."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.there = wanted, 0
        self.open = asyncio.Event()
        self.arrived = asyncio.Event()

    async def send(self, request: WireRequest) -> WireResponse:
        self.there += 1
        self.arrived.set()
        if self.there >= self.wanted:
            self.open.set()
        await self.open.wait()
        return WireResponse(200, JSON, b"{}")


def body(content: bytes, status: int = 200) -> Api:
    return Api(lambda request: WireResponse(status, JSON, content))


def broker(of: Bundle, upstream: Any, caps: Caps | None = None) -> Broker:
    return Broker(build_read_policy(of), upstream, caps=caps)
