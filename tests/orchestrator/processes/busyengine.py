"""A container engine that is busy removing: it refuses to remove a second time, as Docker does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

VERSION = "1.43"


class BusyEngine(ThreadingMixIn, UnixStreamServer):
    """Lists `sandboxes` for so many more times; who waits for a removal waits until the end."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, path: Path, sandboxes: int, listings: int) -> None:
        super().__init__(str(path), _Handler)
        self.sandboxes, self.listings = sandboxes, listings
        self.asked: list[str] = []
        self.over = threading.Event()

    def list_sandboxes(self) -> list[dict[str, Any]]:
        self.listings -= 1
        number = self.sandboxes if self.listings >= 0 else 0
        return [{"Id": f"{place:064x}", "State": "removing"} for place in range(number)]


class _Handler(BaseHTTPRequestHandler):
    server: BusyEngine
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: Any) -> None:
        return

    def answer(self, value: Any, status: int = 200) -> None:
        content = json.dumps(value).encode()
        self.server.asked.append(f"{self.command} {self.path}")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        if "/containers/json" in self.path:
            self.answer(self.server.list_sandboxes())
        else:
            self.answer({"ApiVersion": VERSION, "Version": "1"})

    def do_DELETE(self) -> None:
        self.answer({"message": "removal of container is already in progress"}, 409)

    def do_POST(self) -> None:
        self.server.over.wait()
        self.answer({"StatusCode": 0})


@contextmanager
def run_engine(path: Path, sandboxes: int, listings: int) -> Iterator[BusyEngine]:
    with BusyEngine(path, sandboxes, listings) as engine:
        thread = threading.Thread(target=engine.serve_forever, daemon=True)
        thread.start()
        try:
            yield engine
        finally:
            engine.over.set()
            engine.shutdown()
