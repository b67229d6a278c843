"""Client of the control plane: find, start, call and stop it from other processes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from orchestrator.errors import ControlUnreachable
from orchestrator.settings import Settings
from registry.database.files import create_private_file
from sandbox.modulepath import RUN_MODULE, join_module_path

HEALTH_SECONDS = 2.0
STOP_SECONDS = 5.0
MAX_HEALTH, MAX_ANSWER = 256, 1 << 20
ANSWER_SECONDS = 90.0
"""A kill answers late where the engine is slow to list and to kill."""


@dataclass(frozen=True)
class ControlAddress:
    """Where a control plane listens, and the token it wants. Kept in `control.json`, mode 0600.
    Until `links_until` its messages carry links that decide.
    """

    url: str
    token: str
    pid: int
    links_until: float = 0.0

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def read_address(path: Path) -> ControlAddress | None:
    """The address that was written last, or None; nothing may listen there any more."""
    try:
        return ControlAddress(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def find_control(settings: Settings) -> ControlAddress | None:
    """The address of the control plane that answers `/healthz`, or None. What answers at the
    address of one that has ended is another server.
    """
    address = read_address(settings.control)
    if address is None:
        return None
    connection = HTTPConnection(urlsplit(address.url).netloc, timeout=HEALTH_SECONDS)
    try:
        connection.request("GET", "/healthz")
        health = json.loads(connection.getresponse().read(MAX_HEALTH))
        return address if health["pid"] == address.pid else None
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return None
    finally:
        connection.close()


def ensure_control(settings: Settings) -> None:
    """Start a control plane, detached, unless one answers. Does not wait for it.

    Of several that are started at once, all but one end by themselves.
    """
    if find_control(settings) is not None:
        return
    spawn_command(settings, "control", "--until-idle")


def spawn_command(settings: Settings, *arguments: str, told: str = "") -> subprocess.Popen[bytes]:
    """Start one of our commands, detached. Its output is appended to `NAME.log` in the home.

    `told` is written to its standard input, which no other process can read, unlike arguments.
    """
    told_in = settings.home / f"{arguments[0]}.log"
    create_private_file(told_in)
    with told_in.open("ab") as sink:
        process = subprocess.Popen(
            [*RUN_MODULE, "orchestrator", *arguments],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            cwd="/",
            env={
                **os.environ,
                "TOOLWRIGHT_HOME": str(settings.home),
                "PYTHONPATH": join_module_path(),
            },
        )
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(told.encode())
    return process


def stop_control(settings: Settings) -> bool:
    """Stop the control plane and wait up to 5 s for its end; False where none answers."""
    address = find_control(settings)
    if address is None:
        return False
    with suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        process = psutil.Process(address.pid)
        process.terminate()
        process.wait(STOP_SECONDS)
    return True


def post_to_control(settings: Settings, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """POST JSON to the control plane. Raises ControlUnreachable for no answer or an error."""
    address = read_address(settings.control)
    if address is None:
        raise ControlUnreachable("none was started here")
    try:
        # A kill also waits for the processes that are silent.
        seconds = ANSWER_SECONDS + settings.silence_seconds
        with closing(HTTPConnection(urlsplit(address.url).netloc, timeout=seconds)) as connection:
            headers = {**address.headers, "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(dict(body)), headers)
            answer = connection.getresponse()
            value: dict[str, Any] = dict(json.loads(answer.read(MAX_ANSWER)))
    except (OSError, HTTPException, ValueError, TypeError, RecursionError) as error:
        raise ControlUnreachable(str(error) or type(error).__name__) from error
    if answer.status >= 400:
        raise ControlUnreachable(f"it answered {answer.status}: {value.get('error', '')}")
    return value
