"""A small HTTP API to try Toolwright on: the standard library only, its state in memory.

    python api.py --port 0 --log requests.jsonl

prints one line, `{"port": N}`, and then serves `openapi.json` and the operations in it on
127.0.0.1. Every request leaves two lines in the log: `received` when it has been read and before
anything is done, then `answered`, or `cut` where the client went away before it had the answer.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import sys
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import parse_qs, urlsplit

from harbour import Harbour, Refused

MAX_BODY = 64 * 1024
MAX_SECONDS = 120.0
DOCUMENT = Path(__file__).with_name("openapi.json")

Reply = tuple[int, Any]


class ClientGone(Exception):
    """The client closed the connection while its answer was being made."""


class Log:
    """JSON lines, each flushed: `id`, `time` (epoch seconds), `event`, and what belongs to it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._ids = count(1)

    def received(self, method: str, path: str, body: str) -> int:
        ident = next(self._ids)
        self._write(
            {"id": ident, "event": "received", "method": method, "path": path, "body": body}
        )
        return ident

    def ended(self, ident: int, event: str, status: int | None) -> None:
        self._write({"id": ident, "event": event, "status": status})

    def _write(self, entry: dict[str, Any]) -> None:
        with self._lock:
            self._file.write(json.dumps({"time": time.time(), **entry}) + "\n")
            self._file.flush()


class Throttle:
    """At most `limit` requests in any second; 0 is no limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._times: deque[float] = deque()
        self._lock = threading.Lock()

    def admits(self, now: float) -> bool:
        with self._lock:
            while self._times and self._times[0] <= now - 1:
                self._times.popleft()
            if self._limit and len(self._times) >= self._limit:
                return False
            self._times.append(now)
            return True


class Api(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, log: Log, throttle: Throttle) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.harbour = Harbour()
        self.log, self.throttle = log, throttle
        self.document = DOCUMENT.read_bytes()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Api

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_DELETE = do_PUT = do_PATCH = do_GET

    def _serve(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True
            self._send(413, {"error": f"a body has a length, up to {MAX_BODY} bytes"})
            return
        body = self.rfile.read(int(length)).decode("utf-8", "replace")
        ident = self.server.log.received(self.command, self.path, body)
        status = None
        try:
            status, answer = self._answer(body)
            self._send(status, answer)
        except (ClientGone, OSError):
            self.close_connection = True
            self.server.log.ended(ident, "cut", status)
            return
        self.server.log.ended(ident, "answered", status)

    def _answer(self, body: str) -> Reply:
        if not self.server.throttle.admits(time.monotonic()):
            return 429, {"error": "too many requests; wait a second"}
        url = urlsplit(self.path)
        try:
            return self._operation(url.path, parse_qs(url.query, keep_blank_values=True), body)
        except Refused as refused:
            return refused.status, refused.problem

    def _operation(self, path: str, query: dict[str, list[str]], body: str) -> Reply:
        harbour = self.server.harbour
        place, _, item = path.strip("/").partition("/")
        match self.command, place, item:
            case "GET", "openapi.json", "":
                return 200, self.server.document
            case "GET", "berths", "":
                least = _number(query, "min_length", 100)
                return 200, harbour.berths(_last(query, "state"), least)
            case "GET", "berths", number:
                return 200, harbour.berth(_identifier(number))
            case "GET", "boats", "":
                return 200, harbour.boats(_last(query, "query") or "", query.get("kind", []))
            case "GET", "bookings", "":
                return 200, harbour.bookings()
            case "POST", "bookings", "":
                return 201, harbour.book(_parsed(body))
            case "DELETE", "bookings", number:
                harbour.cancel(_identifier(number))
                return 204, None
            case "GET", "report", "":
                self._wait(_number(query, "seconds", MAX_SECONDS))
                return 200, harbour.report()
        return 404, {"error": f"there is no {self.command} {path}"}

    def _wait(self, seconds: float) -> None:
        """Let the time pass. Raises ClientGone as soon as the client closes its side."""
        readable, _, _ = select.select([self.connection], [], [], seconds)
        if readable and not self.connection.recv(1, socket.MSG_PEEK):
            raise ClientGone

    def _send(self, status: int, answer: Any) -> None:
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "1")
        if status == 204:
            self.end_headers()
            return
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr: the request log says more."""


def _last(query: dict[str, list[str]], name: str) -> str | None:
    return query[name][-1] if name in query else None


def _number(query: dict[str, list[str]], name: str, most: float) -> float:
    """A number from 0 to `most`; 0 where it is not given. Raises Refused 422."""
    try:
        number = float(_last(query, name) or 0)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise Refused(422, f"{name} is a number from 0 to {most:g}", name)
    return number


def _identifier(text: str) -> int:
    if not text.isdecimal() or not 0 < len(text) < 10:
        raise Refused(422, f"{text[:40]!r} is not a number")
    return int(text)


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(422, "the body is not JSON") from None


def main() -> None:
    parser = argparse.ArgumentParser(description="The harbour example API")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--log", type=Path, help="where to append the request log")
    parser.add_argument("--limit", type=int, default=0, help="requests per second before a 429")
    options = parser.parse_args()
    with options.log.open("a") if options.log else sys.stderr as file:
        with Api(options.port, Log(file), Throttle(options.limit)) as api:
            print(json.dumps({"port": api.server_address[1]}), flush=True)
            try:
                api.serve_forever()
            except KeyboardInterrupt:
                pass


if __name__ == "__main__":
    main()
