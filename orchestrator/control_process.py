"""The control plane as a process of its own: where it is, starting it, asking it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from orchestrator.errors import ControlUnreachable
from orchestrator.settings import Settings
from registry.files import locked, write_atomically

START_SECONDS = 15.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Address:
    """Where a control plane listens, and the token it wants. Kept in `control.json`, mode 0600."""

    url: str
    token: str
    pid: int

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def write_address(path: Path, address: Address) -> None:
    write_atomically(path, json.dumps(asdict(address)).encode(), 0o600)


def read_address(path: Path) -> Address | None:
    """The address that was written last, whether or not anyone still listens there."""
    try:
        return Address(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def answering(settings: Settings) -> Address | None:
    """The address of a control plane that answers."""
    address = read_address(settings.control)
    if address is None:
        return None
    try:
        with httpx.Client(trust_env=False, timeout=2.0) as client:
            health = client.get(f"{address.url}/healthz")
    except httpx.HTTPError:
        return None
    return address if health.status_code == 200 else None


def ensure_control(settings: Settings) -> None:
    """Start a control plane, detached, unless one answers. Does not wait for it."""
    with locked(settings.control):
        if answering(settings) is None:
            _started(settings)


def _started(settings: Settings) -> None:
    log = settings.home / "control.log"
    with log.open("ab") as sink:
        subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "control", "--until-idle"],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            cwd="/",
            env={
                **os.environ,
                "TOOLWRIGHT_HOME": str(settings.home),
                "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
            },
        )
    end = time.monotonic() + START_SECONDS
    while answering(settings) is None and time.monotonic() < end:
        time.sleep(POLL_SECONDS)


def post(settings: Settings, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the control plane. Raises ControlUnreachable where none answers or it refuses."""
    address = read_address(settings.control)
    if address is None:
        raise ControlUnreachable("none was started here")
    try:
        with httpx.Client(trust_env=False, timeout=30.0) as client:
            answer = client.post(f"{address.url}{path}", json=dict(body), headers=address.headers)
            value: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise ControlUnreachable(str(error) or type(error).__name__) from error
    return value
