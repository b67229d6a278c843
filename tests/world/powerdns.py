"""A real PowerDNS authoritative server on loopback, with its HTTP API."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.world.cache import Unavailable, cached, run

SECONDS = 60.0
"""What it may take on a busy machine: only against hanging."""

PACKAGES = ("pdns-server", "pdns-backend-sqlite3")
SCHEMA = "usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql"
_INSTALL = re.compile(r"^Inst (\S+) \((\S+) ", re.MULTILINE)
_REQUEST = re.compile(r'"([A-Z]+) (\S+) HTTP/[\d.]+" (\d{3})')


@dataclass(frozen=True)
class PowerDNS:
    host: str
    port: int
    dns_port: int
    key: str
    log: Path

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def requests(self) -> tuple[tuple[str, str, int], ...]:
        """(method, path, status) of every HTTP request, by the server's own log."""
        found = _REQUEST.findall(self.log.read_text(errors="replace"))
        return tuple((method, path, int(status)) for method, path, status in found)

    def ask(self, method: str, path: str, body: object = None, key: str | None = None) -> Reply:
        """One API request as an operator would make it; by default with the key."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=SECONDS)
        headers = {"X-API-Key": self.key if key is None else key}
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


@pytest.fixture(scope="session")
def powerdns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerDNS]:
    """A server for the whole run. Its tests name their own zones. Skips where it cannot be had."""
    with powerdns_for_tests(tmp_path_factory.mktemp("powerdns")) as server:
        yield server


@contextmanager
def powerdns_for_tests(directory: Path) -> Iterator[PowerDNS]:
    """`power_dns`; skips the test where it cannot be had."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(power_dns(directory))
        except Unavailable as reason:
            pytest.skip(f"PowerDNS: {reason}")
        yield server


@contextmanager
def power_dns(directory: Path, key: str = "s3cret-for-tests") -> Iterator[PowerDNS]:
    """Start a server that keeps all it has in the directory. Raises Unavailable."""
    root = _root()
    for name in ("pdns.sqlite3", "pdns.log"):
        (directory / name).unlink(missing_ok=True)
    with sqlite3.connect(directory / "pdns.sqlite3") as database:
        database.executescript((root / SCHEMA).read_text())
    database.close()
    server = PowerDNS("127.0.0.1", _free_port(), _free_port(), key, directory / "pdns.log")
    with server.log.open("wb") as log:
        process = subprocess.Popen(
            _command(root, directory, server),
            env={"LD_LIBRARY_PATH": os.pathsep.join(map(str, root.glob("usr/lib/*-linux-gnu*")))},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _wait(process, server)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _command(root: Path, directory: Path, server: PowerDNS) -> list[str]:
    modules = next(root.glob("usr/lib/*/pdns"))
    return [
        str(root / "usr/sbin/pdns_server"),
        f"--config-dir={directory}",
        f"--socket-dir={directory}",
        f"--module-dir={modules}",
        "--launch=gsqlite3",
        f"--gsqlite3-database={directory / 'pdns.sqlite3'}",
        f"--local-address={server.host}",
        f"--local-port={server.dns_port}",
        "--api=yes",
        f"--api-key={server.key}",
        "--webserver=yes",
        f"--webserver-address={server.host}",
        f"--webserver-port={server.port}",
        "--webserver-allow-from=127.0.0.0/8",
        # Answers are cached for 20 and 60 s by default: a zone just made would not be seen.
        "--cache-ttl=0",
        "--negquery-cache-ttl=0",
        "--query-cache-ttl=0",
        "--zone-cache-refresh-interval=0",
        "--daemon=no",
        "--guardian=no",
        "--disable-syslog=yes",
        "--loglevel=5",
    ]


def _wait(process: subprocess.Popen[bytes], server: PowerDNS) -> None:
    """Until the API answers, for at most a minute."""
    pause, end = threading.Event(), time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            server.ask("GET", "/api")
            return
        except OSError:
            pause.wait(0.02)
    words = server.log.read_text(errors="replace").strip().splitlines() or ["no output"]
    raise Unavailable(f"the server did not start: {words[-1][:200]}")


def _root() -> Path:
    """Where the server's files are: installed on this machine, or unpacked in the cache."""
    if shutil.which("pdns_server", path="/usr/sbin") and Path("/", SCHEMA).exists():
        return Path("/")
    return cached("powerdns", _unpack)


def _unpack(directory: Path) -> None:
    """Fetch the Debian packages with the libraries this machine lacks, and unpack them.

    Needs no root: what apt would install is asked for, downloaded and unpacked, never installed.
    """
    simulate = ("apt-get", "-s", "-o", "Debug::NoLocking=1", "install", "--no-install-recommends")
    missing = _INSTALL.findall(run((*simulate, *PACKAGES), directory))
    run(("apt-get", "download", *(f"{name}={version}" for name, version in missing)), directory)
    for package in directory.glob("*.deb"):
        run(("dpkg", "-x", package.name, "."), directory)
        package.unlink()


def _free_port() -> int:
    """A port of loopback that neither TCP nor UDP uses just now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind(("127.0.0.1", port))
    return port
