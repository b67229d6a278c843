"""An API with one write, whose answer a test holds back; it counts what reached it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.crash.documents import OBJECT, described

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
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    api = SlowApi(f"http://127.0.0.1:{server.server_address[1]}")
    server.api = api  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield api
    finally:
        api.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200, _DOCUMENT)

    def do_POST(self) -> None:
        api: SlowApi = self.server.api  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        api.bodies.append(body)
        api.released.wait()
        self._answer(201, body)

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""
