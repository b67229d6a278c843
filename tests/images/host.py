"""The host's end of a runtime process: raw lines, and a broker that is a function."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SECONDS = 120.0
OFFER: dict[str, Any] = {"experimental": {"toolwright/request": {}}}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}

Broker = Callable[[dict[str, Any]], dict[str, Any]]


def definition(name: str, **given: Any) -> dict[str, Any]:
    """A tool as `tools.json` holds it."""
    return {
        "name": name,
        "description": f"{name} of a test",
        "input_schema": {"type": "object"},
        "output_schema": {"type": "object"},
        "access": "read",
        "operation": "",
        "title": "",
        "idempotent": False,
        "destructive": False,
        "requests": [],
        "security": [],
        **given,
    }


def load_params(
    source: str, *tools: dict[str, Any], base_url: str = "https://api.test/v1", **manifest: Any
) -> dict[str, Any]:
    head = {"name": "sample", "version": 3, "title": "Sample", "description": "", **manifest}
    head = {"base_url": base_url, "credentials": [], **head}
    return {"manifest": head, "tools": list(tools), "source": source}


def answer(status: int, body: Any = None, **headers: str) -> dict[str, Any]:
    """What a broker returns for an HTTP answer: JSON unless `body` is text."""
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    named = {"content-type": "application/json", **given}
    return {"result": {"status": status, "headers": list(named.items()), "body": text}}


def refusal(kind: str, message: str, **data: Any) -> dict[str, Any]:
    error = {"code": -32010, "message": message, "data": {"kind": kind, **data}}
    return {"error": error}


class Host:
    def __init__(
        self, runtime: Path, arguments: tuple[str, ...], environment: dict[str, str]
    ) -> None:
        self.broker: Broker = lambda params: refusal("refused", "nothing is allowed")
        self.asked: list[dict[str, Any]] = []
        self._count = 0
        self._received: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "toolwright", *(arguments or ("/nonexistent",))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(runtime), **environment},
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._received.put(line)
        self._received.put(b"")

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None, identity: Any = None) -> Any:
        """Send a request and return its id."""
        self._count += 1
        identity = self._count if identity is None else identity
        message = {"jsonrpc": "2.0", "id": identity, "method": method}
        self.send_line(json.dumps({**message, "params": params or {}}).encode())
        return identity

    def notify(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.send_line(json.dumps(message).encode())

    def receive(self) -> dict[str, Any]:
        """The next message of the runtime, whatever it is."""
        line = self._received.get(timeout=SECONDS)
        assert line, "the runtime ended"
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return dict(message)

    def wait(self, identity: Any) -> dict[str, Any]:
        """The answer to a request; brokers whatever is asked for meanwhile."""
        while True:
            message = self.receive()
            if "method" in message:
                self.serve(message)
            else:
                assert message["id"] == identity
                return message

    def serve(self, message: dict[str, Any]) -> None:
        assert message["method"] == "toolwright/request"
        self.asked.append(message["params"])
        told = {"jsonrpc": "2.0", "id": message["id"], **self.broker(message["params"])}
        self.send_line(json.dumps(told).encode())

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        return self.wait(self.send(method, params))

    def load(self, source: str, *tools: dict[str, Any], **manifest: Any) -> dict[str, Any]:
        params = load_params(source, *tools, **manifest)
        return self.wait(self.send("toolwright/load", params, "load"))

    def initialize(self, version: str = "2025-11-25", brokered: bool = True) -> dict[str, Any]:
        capabilities: Mapping[str, Any] = OFFER if brokered else {}
        return self.request(
            "initialize",
            protocolVersion=version,
            capabilities=capabilities,
            clientInfo={"name": "test", "version": "1"},
        )

    def serve_bundle(
        self, source: str, *tools: dict[str, Any], brokered: bool = True, **manifest: Any
    ) -> None:
        assert "result" in self.load(source, *tools, **manifest)
        assert "result" in self.initialize(brokered=brokered)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call."""
        message = self.request("tools/call", name=name, arguments=arguments)
        assert "result" in message, message
        return dict(message["result"])

    def finish(self) -> tuple[int, bytes]:
        """End the input; the exit status and what was written to stderr."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        said = self.process.stderr.read()
        return self.process.wait(SECONDS), said

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
