"""The API that all servers of a soak talk to: it keeps what was written, and how often."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Recorder:
    """`written` counts the numbers of the writes that arrived, `reads` the rest."""

    url: str
    written: Counter[int] = field(default_factory=Counter)
    reads: int = 0


@contextmanager
def recording_api() -> Iterator[Recorder]:
    """Serve `GET /items` and `POST /items` on a free port of 127.0.0.1 until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    recorder = Recorder(f"http://127.0.0.1:{server.server_address[1]}")
    server.recorder = recorder  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield recorder
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is no error of this API's; anything else is told."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30.0

    def do_GET(self) -> None:
        self._recorder.reads += 1
        self._answer(200, b'{"name":"oar"}')

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._recorder.written[int(json.loads(body)["n"])] += 1
        self._answer(201, body)

    @property
    def _recorder(self) -> Recorder:
        recorder: Recorder = self.server.recorder  # type: ignore[attr-defined]
        return recorder

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""
