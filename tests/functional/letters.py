"""An API with one operation, a write whose answer comes only when the test says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.functional.home import Home, new_home

LETTER = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Letters", "version": "1"},
    "servers": [{"url": "/"}],
    "paths": {
        "/letters": {
            "post": {
                "operationId": "sendLetter",
                "summary": "Send a letter",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": LETTER}},
                },
                "responses": {
                    "201": {
                        "description": "The letter, sent.",
                        "content": {"application/json": {"schema": LETTER}},
                    }
                },
            }
        }
    },
}


@dataclass
class Letters:
    """`sent` are the texts that arrived; while `held` is set none of them is answered."""

    url: str
    sent: list[str] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


@contextmanager
def letters_api() -> Iterator[Letters]:
    """Serve it on a free port of 127.0.0.1 until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    here = Letters(f"http://127.0.0.1:{server.server_address[1]}")
    server.letters = here  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield here
    finally:
        here.release.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        known = self.path == "/openapi.json"
        self._send(200 if known else 404, DOCUMENT if known else {})

    def do_POST(self) -> None:
        here: Letters = self.server.letters  # type: ignore[attr-defined]
        letter = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        here.sent.append(letter["text"])
        if here.held.is_set():
            here.release.wait(30)
        with suppress(OSError):
            self._send(201, letter)

    def _send(self, status: int, answer: object) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet; `Letters.sent` has it."""


@contextmanager
def letters_home(directory: Path, engine: str, letters: Letters) -> Iterator[Home]:
    """A home with the server `letters`, forged for this API."""
    with new_home(directory, engine) as home:
        host = letters.url.removeprefix("http://")
        home.person("forge", "send letters", "--source", letters.url, "--allow", host)
        yield home
