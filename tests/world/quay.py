"""A small REST API on loopback whose only description is a page for people."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

DOCUMENTED_AT = "http://127.0.0.1:8099"
PAGE = Path(__file__).parents[1] / "fixtures" / "prose" / "berths.md"
_KEY = "Every request needs your key in the header `X-Quay-Key`. Keys come from the harbour office."


@dataclass
class Quay:
    """`asked` are the requests that were made, as `METHOD path`."""

    url: str
    berths: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": 4, "length": 12.5, "free": True}]
    )
    bookings: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def docs(self) -> str:
        return f"{self.url}/guide/api.md"

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    @property
    def page(self) -> str:
        text = PAGE.read_text(encoding="utf-8").replace(_KEY, "No key is needed.")
        return text.replace(DOCUMENTED_AT, self.url)


@contextmanager
def quay() -> Iterator[Quay]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    here = Quay(f"http://127.0.0.1:{server.server_address[1]}")
    server.here = here  # type: ignore[attr-defined]
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

    def do_GET(self) -> None:
        here: Quay = self.server.here  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        here.asked.append(f"GET {path}")
        if path == "/guide/api.md":
            self._send(200, here.page.encode(), "text/markdown")
        elif path == "/v1/berths":
            self._answer(200, {"berths": here.berths})
        elif path.startswith("/v1/berths/"):
            found = [berth for berth in here.berths if str(berth["id"]) == path.split("/")[-1]]
            self._answer(200 if found else 404, found[0] if found else {"error": "no such berth"})
        else:
            self._answer(404, {"error": "not here"})

    def do_POST(self) -> None:
        here: Quay = self.server.here  # type: ignore[attr-defined]
        here.asked.append(f"POST {self.path}")
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        here.bookings.append(given)
        self._answer(201, {"id": len(here.bookings), **given})

    def _answer(self, status: int, value: Any) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, body: bytes, media_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
