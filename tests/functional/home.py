"""One installation of Toolwright in a directory, used as a person uses it: by its commands."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

from orchestrator.approvals.text import hash_approval
from orchestrator.processes.control_client import ControlAddress, find_control
from orchestrator.settings import Settings, load_settings
from registry.store import Store
from sandbox.engines.docker.engine import connect_engine, list_containers
from tests.functional.commands import ForkedProcess, command_server
from tests.json_output import check_output

ROOT = Path(__file__).parents[2]
PIN = "2468-test"
SECONDS = 600.0
"""What anything may take on a busy machine: only against hanging."""
SILENCE_SECONDS = 10.0
"""How long `kill` waits for a process: the usual half a second can pass on a busy machine."""
Started = ForkedProcess | subprocess.Popen[bytes]
T = TypeVar("T")


@dataclass(frozen=True)
class Home:
    """`environment` is what `toolwright` is started with; a command may take `seconds`. Where it is
    `fresh`, a process that is started loads its libraries itself, as on a person's machine.
    """

    path: Path
    environment: dict[str, str]
    seconds: float = SECONDS
    fresh: bool = False

    @property
    def settings(self) -> Settings:
        return load_settings(self.environment)

    @property
    def engine(self) -> str:
        """`docker` or `wasm`."""
        return self.settings.engine

    @property
    def pin_file(self) -> Path:
        return self.path.parent / "pin"

    def command(self, *words: str) -> list[str]:
        """What starts a process that loads its libraries itself."""
        return [sys.executable, "-m", "orchestrator", *words]

    def launch(self, *words: str) -> list[str]:
        """What starts a process that finds its libraries loaded, for clients that start one."""
        return command_server().launch(*words)

    def start(
        self,
        *words: str,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        start_new_session: bool = False,
    ) -> Started:
        """A process that runs; the options are as those of `subprocess.Popen`."""
        if not self.fresh:
            return command_server().start(
                words, self.environment, stdin, stdout, stderr, start_new_session
            )
        return subprocess.Popen(
            self.command(*words),
            env=self.environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=start_new_session,
        )

    def run(self, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
        """What a `toolwright` command left with, which was told this on its input. Its JSON is as
        docs/json says.
        """
        done = command_server().run(words, self.environment, self.seconds, said)
        check_output(words, done.stdout)
        return done

    def read(self, *words: str) -> Any:
        """The JSON that a command prints; one that fails fails the test."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr or done.stdout
        return json.loads(done.stdout)

    def person(self, *words: str) -> str:
        """What somebody who knows the PIN does at a terminal; it has to succeed."""
        done = self.run(*words, "--pin-file", str(self.pin_file))
        assert done.returncode == 0, (done.stderr, done.stdout)
        return done.stdout

    @contextmanager
    def open_terminal(self, *words: str) -> Iterator[tuple[Started, int]]:
        """A command at a terminal of its own, which is returned with it. The block is to wait for
        its end.
        """
        parent, child = pty.openpty()
        with self.start(
            *words, stdin=child, stdout=child, stderr=child, start_new_session=True
        ) as process:
            os.close(child)
            yield process, parent
        os.close(parent)

    def type_command(self, *words: str, answers: list[tuple[bytes, str]]) -> tuple[str, int]:
        """Type a command at a terminal of its own, and each answer once its question stands there;
        all that was shown, and the command's status.
        """
        with self.open_terminal(*words) as (process, terminal):
            shown = type_answers(terminal, answers).decode("utf-8", "replace")
            status = process.wait(self.seconds)
        return shown, status

    @contextmanager
    def store(self) -> Iterator[Store]:
        with Store.open(self.settings.database_url) as store:
            yield store

    def control(self) -> ControlAddress:
        """Where the control plane answers that this home's processes start without waiting for."""
        return until(lambda: find_control(self.settings), "a control plane answers")

    def post(self, path: str, **body: Any) -> httpx.Response:
        """Ask the control plane, with its token."""
        address = self.control()
        with httpx.Client(trust_env=False, timeout=SECONDS) as client:
            return client.post(address.url + path, json=body, headers=address.headers)

    def approve(self, approval: str, pin: str = PIN) -> httpx.Response:
        """Approve on the control plane, as its page does."""
        return self.decide(approval, decision="approve", pin=pin)

    def decide(self, approval: str, **body: Any) -> httpx.Response:
        """Decide on the control plane, as somebody who was shown the request."""
        with self.store() as store:
            digest = hash_approval(store.approvals.get(approval))
        return self.post(f"/approvals/{approval}", **{"digest": digest, **body})

    def containers(self) -> int:
        """How many containers of this home the engine runs; WASM has none."""
        if self.engine == "wasm":
            return 0
        client = connect_engine()
        try:
            return len(list_containers(client, instance=self.settings.instance))
        finally:
            client.close()


@contextmanager
def new_home(directory: Path, engine: str, **environment: str) -> Iterator[Home]:
    """An empty home with a PIN, its servers on that engine; its control plane, if one was started,
    ends with the block.
    """
    home = Home(
        directory / "home",
        {
            **os.environ,
            "TOOLWRIGHT_HOME": str(directory / "home"),
            "TOOLWRIGHT_ENGINE": engine,
            "TOOLWRIGHT_SILENCE_SECONDS": str(SILENCE_SECONDS),
            "PYTHONPATH": str(ROOT),
            **environment,
        },
    )
    home.pin_file.write_text(PIN)
    done = home.run("setup", "--pin-file", str(home.pin_file))
    assert done.returncode == 0, done.stderr
    try:
        yield home
    finally:
        _end_control(home)


def _end_control(home: Home) -> None:
    address = find_control(home.settings)
    if address is None:
        return
    process = psutil.Process(address.pid)
    process.terminate()
    process.wait(SECONDS)


def until(happened: Callable[[], T | None], what: str, seconds: float = SECONDS) -> T:
    """The first true value of a condition. Fails the test where there is none in time. What takes
    longer is asked more seldom: looking takes processor time from what is waited for.
    """
    never, end, pause = threading.Event(), time.monotonic() + seconds, 0.02
    while not (value := happened()):
        assert time.monotonic() < end, f"it did not happen that {what}"
        never.wait(pause)
        pause = min(0.25, 1.2 * pause)
    return value


def type_answers(terminal: int, answers: list[tuple[bytes, str]]) -> bytes:
    """Type each answer once its question stands there; all that was shown."""
    seen, at = b"", 0
    while True:
        ready, _, _ = select.select([terminal], [], [], SECONDS)
        assert ready, seen
        try:
            part = os.read(terminal, 65_536)
        except OSError:
            # What Linux tells once nobody has the other end open.
            return seen
        if not part:
            return seen
        seen += part
        if answers and answers[0][0] in seen[at:] and seen.rstrip().endswith((b":", b"]:")):
            at = len(seen)
            os.write(terminal, answers.pop(0)[1].encode() + b"\n")
