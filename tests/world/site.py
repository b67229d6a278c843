"""A web site on loopback that answers what a test tells it, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Page:
    """An answer. With `chunks` the body is streamed until the client goes away or they end."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    chunks: Callable[[], Iterator[bytes]] | None = None


@dataclass(frozen=True)
class Asked:
    path: str
    headers: Mapping[str, str]


Answer = Page | Callable[[Asked], Page]


@dataclass
class Site:
    """`pages` may be changed while the site runs; a path that is not among them is a 404."""

    url: str
    pages: dict[str, Answer]
    asked: list[Asked] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


@contextmanager
def site(pages: Mapping[str, Answer] | None = None) -> Iterator[Site]:
    """Serve the pages on a free port of 127.0.0.1 until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    here = Site(f"http://127.0.0.1:{server.server_address[1]}", dict(pages or {}))
    server.site = here  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        here: Site = self.server.site  # type: ignore[attr-defined]
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()})
        here.asked.append(asked)
        answer = here.pages.get(self.path, Page(b"Not Found", 404))
        page = answer(asked) if callable(answer) else answer
        with suppress(ConnectionError):
            self._send(page)

    def _send(self, page: Page) -> None:
        self.send_response(page.status)
        for name, value in page.headers:
            self.send_header(name, value)
        if page.chunks is None:
            self.send_header("Content-Length", str(len(page.body)))
            self.end_headers()
            self.wfile.write(page.body)
            return
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for chunk in page.chunks():
            self.wfile.write(chunk)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet; `Site.asked` has it."""
