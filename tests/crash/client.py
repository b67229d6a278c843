"""A bare MCP client over the pipes of `toolwright serve`, which a test may kill at any moment."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, BinaryIO

from tests.crash.installation import Installation, until

FINAL = frozenset({"done", "failed", "cancelled"})


@dataclass
class Served:
    """A running `serve` or `run`. Answers are read in order; `ask` sends without waiting."""

    process: subprocess.Popen[bytes]
    log: BinaryIO
    _ids: Iterator[int] = field(default_factory=lambda: count(1))
    _answers: dict[int, dict[str, Any]] = field(default_factory=dict)

    def greet(self) -> None:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "crash", "version": "1"},
        }
        self.answer(self._send("initialize", hello))
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, name: str, /, **arguments: Any) -> int:
        """Call a tool; the id that `answer` wants. Who asks for progress is told a job at once."""
        asked = {"name": name, "arguments": arguments, "_meta": {"progressToken": name}}
        return self._send("tools/call", asked if name == "forge" else {**asked, "_meta": {}})

    def answer(self, identity: int) -> dict[str, Any]:
        """The result that belongs to an id."""
        assert self.process.stdout is not None
        while identity not in self._answers:
            line = self.process.stdout.readline()
            assert line, self.said()
            message = json.loads(line)
            if "id" in message:
                self._answers[message["id"]] = message
        answer = self._answers.pop(identity)
        assert "result" in answer, answer
        return dict(answer["result"])

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return self.answer(self.ask(name, **arguments))

    def value(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that must succeed."""
        result = self.call(name, **arguments)
        assert not result.get("isError"), result
        return dict(result["structuredContent"])

    def forged(self, source: str, **more: Any) -> dict[str, Any]:
        """The end of a forge job, or its state when it waits for a person."""
        job = self.value("forge", task="list things", source=source, **more)["job"]
        return self.followed(job)

    def followed(self, job: str, states: frozenset[str] = FINAL | {"waiting"}) -> dict[str, Any]:
        """The job once it is in one of these states."""
        return until(
            lambda: (
                state
                if (state := self.value("status", job=job, wait=5))["state"] in states
                else None
            )
        )

    def said(self) -> str:
        """What it wrote to stderr."""
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def _send(self, method: str, params: Mapping[str, Any]) -> int:
        identity = next(self._ids)
        self._write({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
        return identity

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()


@contextmanager
def served(installation: Installation, *words: str) -> Iterator[Served]:
    """`toolwright serve`, or other words that serve, until the block ends."""
    command = words or ("serve",)
    with tempfile.TemporaryFile() as log:
        process = installation.start(
            *command,
            "--no-control",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        with process:
            client = Served(process, log)
            try:
                client.greet()
                yield client
                assert "Traceback" not in client.said()
            finally:
                with suppress(BrokenPipeError):
                    process.stdin.close()  # type: ignore[union-attr]
                process.wait()
