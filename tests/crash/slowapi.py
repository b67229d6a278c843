"""An API with one write, whose answer a test holds back; it counts what reached it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.crash.documents import OBJECT, described
from tests.world.loopback import Answering, served

_JSON = {"application/json": {"schema": OBJECT}}
_DOCUMENT = described(
    {
        "/things": {
            "post": {
                "operationId": "addThing",
                "requestBody": {"required": True, "content": _JSON},
                "responses": {"201": {"description": "added", "content": _JSON}},
            }
        }
    }
)


@dataclass
class SlowApi:
    """`bodies` are those of the writes that arrived; they are answered once `released` is set."""

    url: str
    bodies: list[bytes] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def slow_api() -> Iterator[SlowApi]:
    """Serve it on a free port of 127.0.0.1 until the block ends."""
    with served(_Answering, SlowApi) as api:
        try:
            yield api
        finally:
            api.released.set()


class _Answering(Answering):
    def do_GET(self) -> None:
        self.answer(200, _DOCUMENT)

    def do_POST(self) -> None:
        api: SlowApi = self.world
        body = self.body()
        api.bodies.append(body)
        api.released.wait()
        self.answer(201, body)
