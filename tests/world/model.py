"""An OpenAI-compatible endpoint on loopback that answers what a test tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Said:
    """An answer: the message's content, or a whole body. A body of `chunks` is sent until the
    client goes away; `finish` is the finish reason.
    """

    content: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    chunks: Callable[[], Iterator[bytes]] | None = None
    finish: str = "stop"
    message: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None


def said(value: Any) -> Said:
    return Said(json.dumps(value))


Answers = Callable[[Mapping[str, Any]], Said]


@dataclass
class Model:
    """`answer` may be changed while it runs; `asked` are the requests' bodies."""

    url: str
    answer: Answers
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    models: tuple[str, ...] = ("m-1",)

    @property
    def prompts(self) -> list[str]:
        return [one["messages"][-1]["content"] for one in self.asked]

    def purposes(self) -> list[str]:
        return [purpose(one) for one in self.asked]


def purpose(request: Mapping[str, Any]) -> str:
    """What a request is for, as the name of its schema says."""
    shape = request.get("response_format") or {}
    return str(shape.get("json_schema", {}).get("name", ""))


@contextmanager
def model(answer: Answers) -> Iterator[Model]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    here = Model(f"http://127.0.0.1:{server.server_address[1]}/v1", answer)
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
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        here: Model = self.server.here  # type: ignore[attr-defined]
        listed = {"object": "list", "data": [{"id": name} for name in here.models]}
        self._send(Said(body=json.dumps(listed).encode()))

    def do_POST(self) -> None:
        here: Model = self.server.here  # type: ignore[attr-defined]
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        here.asked.append(request)
        here.headers.append({name.lower(): value for name, value in self.headers.items()})
        with suppress(ConnectionError):
            self._send(here.answer(request))

    def _send(self, answer: Said) -> None:
        body = answer.body if answer.body is not None else _completion(answer)
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        for name, value in answer.headers:
            self.send_header(name, value)
        if answer.chunks is None:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.close_connection = True
        self.end_headers()
        for chunk in answer.chunks():
            self.wfile.write(chunk)

    def log_message(self, *_: object) -> None:
        pass


def _completion(answer: Said) -> bytes:
    message = {"role": "assistant", "content": answer.content, **answer.message}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish}
    told: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "m-1"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    usage_told = usage if answer.usage is None else answer.usage
    return json.dumps({**told, "choices": [choice], "usage": usage_told}).encode()
