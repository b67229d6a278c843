"""The API that all servers of a soak talk to: it keeps what was written, and how often."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.world.loopback import Answering, served


@dataclass
class Recorder:
    """`written` counts the numbers of the writes that arrived, `reads` the rest."""

    url: str
    written: Counter[int] = field(default_factory=Counter)
    reads: int = 0


@contextmanager
def recording_api() -> Iterator[Recorder]:
    """Serve `GET /items` and `POST /items` on a free port of 127.0.0.1 until the block ends."""
    with served(_Answering, Recorder) as recorder:
        yield recorder


class _Answering(Answering):
    timeout = 30.0

    def do_GET(self) -> None:
        self._recorder.reads += 1
        self.answer(200, b'{"name":"oar"}')

    def do_POST(self) -> None:
        body = self.body()
        if len(body) < int(self.headers.get("Content-Length") or 0):
            # Its sender was killed before the end: it asked for nothing.
            self.close_connection = True
            return
        self._recorder.written[int(json.loads(body)["n"])] += 1
        self.answer(201, body)

    @property
    def _recorder(self) -> Recorder:
        recorder: Recorder = self.world
        return recorder
