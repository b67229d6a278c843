"""An MCP client that none of us wrote, as a process that a test moves by lines of JSON."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SECONDS = 120.0
Told = dict[str, Any]


class Puppet:
    """`command` is the server's that it starts; `environment` goes to both."""

    def __init__(
        self, puppet: Sequence[str], command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.process = subprocess.Popen(
            [*puppet, *command],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[Told]] = {0: queue.SimpleQueue()}
        self._heard: dict[int, list[float]] = {}
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def greet(self) -> None:
        """Wait until it has shaken hands with its server."""
        assert self._ended(0) == {"id": 0}

    def names(self) -> list[str]:
        names: list[str] = self._ended(self._order({"list": True}))["names"]
        return names

    def begin_call(self, name: str, /, **arguments: Any) -> int:
        return self._order({"call": name, "arguments": arguments})

    def end(self, identity: int) -> Told:
        """`result`, or `error` where there is none."""
        return self._ended(identity)

    def call(self, name: str, /, **arguments: Any) -> Told:
        result: Told = self.end(self.begin_call(name, **arguments))["result"]
        return result

    def value(self, name: str, /, **arguments: Any) -> Any:
        """The structured content of a call that has to succeed."""
        result = self.call(name, **arguments)
        assert not result["isError"], result["content"]
        return result["structuredContent"]

    def cancel(self, identity: int) -> None:
        self._send({"cancel": identity})

    def heard(self, identity: int) -> list[float]:
        """The progress that a call's server told."""
        return self._heard.get(identity, [])

    def close(self) -> int:
        """End of its input: it disconnects. Its exit status."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            return self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self._reader.join()

    def _order(self, order: Told) -> int:
        identity = next(self._ids)
        self._answers[identity] = queue.SimpleQueue()
        self._send({"id": identity, **order})
        return identity

    def _send(self, order: Told) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def _ended(self, identity: int) -> Told:
        return self._answers[identity].get(timeout=SECONDS)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                told = json.loads(line)
                if "progress" in told:
                    self._heard.setdefault(told["id"], []).append(told["progress"])
                else:
                    self._answers[told["id"]].put(told)
        for waiting in self._answers.values():
            waiting.put({})
