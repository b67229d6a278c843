"""An MCP client of a few lines, so that nothing is taken for granted about the wire."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
from dataclasses import replace
from types import TracebackType
from typing import Any

from tests.functional.home import SECONDS, Home, until

MOVING = frozenset({"queued", "running", "approved", "claimed", "sending"})
"""States of jobs and approvals that somebody is working on."""
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "peer", "version": "1"},
}


class Peer:
    """Speaks JSON-RPC with a `toolwright` process that it starts; one thread reads its answers."""

    def __init__(
        self,
        home: Home,
        *words: str,
        version: str = "2025-11-25",
        with_progress: bool = False,
        greet: bool = True,
        **environment: str,
    ) -> None:
        self.version, self.with_progress = version, with_progress
        home = replace(home, environment={**home.environment, **environment})
        self.process = home.start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.unasked: list[dict[str, Any]] = []
        self._greets = greet
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Peer:
        try:
            if self._greets:
                self.greet()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def greet(self) -> None:
        """Shake hands; the server agrees to the version."""
        if self.version == MODERN:
            assert MODERN in self.request("server/discover")["result"]["supportedVersions"]
            return
        info = {"name": "peer", "version": "1"}
        params = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": info}
        assert self.request("initialize", params)["result"]["protocolVersion"] == self.version
        self.notify("notifications/initialized")

    def begin(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request and return its id at once."""
        identity = next(self._ids)
        self._answers[identity] = queue.SimpleQueue()
        params = dict(params or {})
        meta: dict[str, Any] = dict(ENVELOPE) if self.version == MODERN else {}
        if self.with_progress and method == "tools/call":
            meta["progressToken"] = identity
        if meta:
            params["_meta"] = {**meta, **params.get("_meta", {})}
        message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        self.send(json.dumps(message).encode())
        return identity

    def end(self, identity: int) -> dict[str, Any]:
        """The whole answer to a request; empty where the server went away instead."""
        return self._answers[identity].get(timeout=SECONDS)

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.end(self.begin(method, params))

    def begin_call(self, name: str, /, **arguments: Any) -> int:
        return self.begin("tools/call", {"name": name, "arguments": arguments})

    def names(self) -> list[str]:
        return [tool["name"] for tool in self.request("tools/list")["result"]["tools"]]

    def cancel(self, identity: int) -> None:
        """Give up a call, which is not answered then."""
        self.notify("notifications/cancelled", requestId=identity)

    def heard(self, identity: int) -> list[float]:
        """The progress that a call's server told."""
        told = [m["params"] for m in self.unasked if m.get("method") == "notifications/progress"]
        return [params["progress"] for params in told if params["progressToken"] == identity]

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call, also where it is an error result."""
        result: dict[str, Any] = self.end(self.begin_call(name, **arguments))["result"]
        return result

    def value(self, name: str, /, **arguments: Any) -> Any:
        """The structured content of a call that has to succeed."""
        result = self.call(name, **arguments)
        assert not result.get("isError"), result["content"]
        return result["structuredContent"]

    def settled(self, **of: str) -> dict[str, Any]:
        """The status of a `job` or an `approval` that has ended or waits for somebody."""

        def reached() -> dict[str, Any] | None:
            status: dict[str, Any] = self.value("status", **of, wait=2)
            return None if status["state"] in MOVING else status

        return until(reached, f"{of} settles")

    def notify(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.send(json.dumps(message).encode())

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def close(self) -> int:
        """End of file; the process's exit status."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            return self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            for line in stdout:
                message = json.loads(line)
                if message.get("id") in self._answers:
                    self._answers[message["id"]].put(message)
                else:
                    self.unasked.append(message)
        for waiting in self._answers.values():
            waiting.put({})


def text(result: dict[str, Any]) -> str:
    return "\n".join(block.get("text", "") for block in result["content"])
