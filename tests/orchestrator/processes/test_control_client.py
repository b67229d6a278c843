"""Finding the control plane, and starting it from several processes at once."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from subprocess import Popen

import pytest

from orchestrator.processes.control_client import (
    ControlAddress,
    find_control,
    read_address,
    spawn_command,
    stop_control,
)
from orchestrator.settings import Settings
from registry.store import Store
from tests.functional.home import SECONDS, until


@contextmanager
def control(settings: Settings) -> Iterator[Popen[bytes]]:
    with spawn_command(settings, "control", "--until-idle") as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def other_server(health: bytes) -> Iterator[str]:
    """The URL of somebody else's server that answers `health` to whatever is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(health)))
            self.end_headers()
            self.wfile.write(health)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    "health", [b"", b"ok", b'{"ok":true}', b'{"ok":true,"pid":1}', b"[]", b"[" * 5000]
)
def test_another_server_at_the_address_of_one_that_has_ended_is_not_taken_for_it(
    settings: Settings, health: bytes
) -> None:
    """Nor is a process stopped for it that has the ended one's number."""
    with other_server(health) as url:
        ended = ControlAddress(url, "token", os.getpid())
        settings.control.write_text(json.dumps(asdict(ended)))
        assert find_control(settings) is None
        assert not stop_control(settings)


def waits_for_lock(process: int) -> bool:
    """By proc(5): such a line begins with an arrow."""
    lines = Path("/proc/locks").read_text().splitlines()
    return any(line.split()[1] == "->" and line.split()[5] == str(process) for line in lines)


def find_listed(settings: Settings) -> int:
    address = read_address(settings.control)
    return address.pid if address else 0


def test_of_two_that_start_while_the_database_is_busy_the_second_ends(
    settings: Settings, store: Store
) -> None:
    database = settings.database
    assert database is not None
    with closing(sqlite3.connect(database, isolation_level=None)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        with control(settings) as first:
            until(lambda: find_listed(settings) == first.pid, "the first has an address")
            with control(settings) as second:
                until(
                    lambda: find_listed(settings) == second.pid or waits_for_lock(second.pid),
                    "the second has looked for the first",
                )
                busy.execute("ROLLBACK")
                assert find_listed(settings) == first.pid
                assert second.wait(SECONDS) == 0
            found = until(lambda: find_control(settings), "the first answers")
            assert found.pid == first.pid
