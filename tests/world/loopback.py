"""HTTP on loopback, as the stand-ins of this folder, other tests and benches serve it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

JSON = (("Content-Type", "application/json"),)

T = TypeVar("T")


class Answering(BaseHTTPRequestHandler):
    """Answers requests; what it answers from, and remembers them in, is `world`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def world(self) -> Any:
        assert isinstance(self.server, _Server)
        return self.server.world

    def body(self) -> bytes:
        """The request's. To be read once."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(
        self,
        status: int,
        content: bytes,
        headers: Iterable[tuple[str, str]] = JSON,
        chunks: Callable[[], Iterator[bytes]] | None = None,
    ) -> None:
        """Answer with the content, or with chunks until they or the client end."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if chunks is None:
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in chunks():
            self.wfile.write(chunk)

    def answer_json(self, status: int, value: Any, headers: Iterable[tuple[str, str]] = ()) -> None:
        self.answer(status, json.dumps(value).encode(), (*JSON, *headers))

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet; the world has what was asked."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    world: Any = None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error of a server's; anything else is told."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def served(answering: type[Answering], world: Callable[[str], T]) -> Iterator[T]:
    """Serve on a free port of 127.0.0.1 until the block ends; `world` is made with the URL."""
    server = _Server(("127.0.0.1", 0), answering)
    server.world = made = world(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
