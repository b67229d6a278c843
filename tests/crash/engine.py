"""A Docker engine of the test's own, which it may stop and start again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import docker
import psutil
import pytest

from sandbox.engines.docker.engine import connect_engine
from tests.crash.installation import until


@dataclass
class Engine:
    """A `dockerd` with its own `containerd`, data and socket, in namespaces of its own."""

    directory: Path
    _process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        """What DOCKER_HOST is to be."""
        return f"unix://{self.directory}/docker.sock"

    def start(self) -> None:
        """Return when it answers."""
        command = [
            # With `--bridge none` an engine deletes the bridge of any other on the same network.
            *("unshare", "--net", "--mount", "dockerd", "--host", self.host),
            *("--data-root", f"{self.directory}/data", "--exec-root", f"{self.directory}/exec"),
            *("--pidfile", f"{self.directory}/docker.pid"),
            *("--log-level", "error", "--bridge", "none", "--iptables=false", "--ip-masq=false"),
        ]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self._answers)

    def pause(self) -> None:
        """Have it answer no more, to whoever asks."""
        if self._process:
            self._process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """End it at once, with its sandboxes and all that belongs to it."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
        for process in psutil.process_iter(["cmdline"]):
            if any(str(self.directory) in word for word in process.info["cmdline"] or ()):
                for one in (*process.children(recursive=True), process):
                    one.kill()
        # Nobody may have waited for the `containerd` yet, and then it is taken to be running.
        (self.directory / "exec/containerd/containerd.pid").unlink(missing_ok=True)

    def load(self, image: str) -> None:
        """Have the image that the common engine has."""
        mine = docker.DockerClient(self.host)
        common = connect_engine()
        try:
            mine.images.load(b"".join(common.api.get_image(image)))
        finally:
            common.close()
            mine.close()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory / "log").read_text()
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            connection.connect(self.host.removeprefix("unix://"))
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return b" 200 " in connection.recv(64)
        return False


@contextmanager
def private_engine(directory: Path, image: str) -> Iterator[Engine]:
    """An engine with that image, until the block ends. Skips the test where there can be none."""
    if os.geteuid() != 0 or not (shutil.which("dockerd") and shutil.which("unshare")):
        pytest.skip("an engine of its own needs root, dockerd and unshare")
    engine = Engine(directory)
    try:
        engine.start()
        engine.load(image)
        yield engine
    finally:
        engine.stop()
