"""Servers as processes on the loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

START_SECONDS = 480.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str],
    ready: str,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """The process of a command from when `ready` answers below 500 until the block ends.

    Raises TimeoutError or ChildProcessError, with the last words of its log.
    """
    log = directory / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            cwd=directory,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_ready(process, ready, log, headers or {})
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(
    process: subprocess.Popen[bytes], ready: str, log: Path, headers: Mapping[str, str]
) -> None:
    end = time.monotonic() + START_SECONDS
    with httpx.Client(trust_env=False, timeout=10.0, headers=dict(headers)) as client:
        while time.monotonic() < end:
            if process.poll() is not None:
                raise ChildProcessError(f"it ended: {log.read_text(errors='replace')[-800:]}")
            try:
                if client.get(ready).status_code < 500:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.1)
    raise TimeoutError(f"{ready} does not answer: {log.read_text(errors='replace')[-800:]}")
