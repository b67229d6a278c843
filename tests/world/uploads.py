"""Servers of several makes that say what they were sent as a form with files, on loopback."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.world.cache import Unavailable, cached, run

PYTHON = (
    "fastapi==0.165.0",
    "python-multipart==0.0.34",
    "flask==3.1.3",
    "django==5.2.19",
    "uvicorn",
)
NODE = ("express@5.3.0", "multer@2.5.0", "busboy@1.6.0", "formidable@3.5.4")
HERE = Path(__file__).parent
PARSERS = ("fastapi", "starlette", "flask", "django", "multer", "busboy", "formidable")


@contextmanager
def upload_server(parser: str) -> Iterator[str]:
    """The URL of a server with that parser. It answers `POST /upload/…` with the fields and files
    that it read; the one of FastAPI has routes and a document of its own. Skips where it cannot be
    had.
    """
    try:
        command = _build_command(parser)
    except Unavailable as reason:
        pytest.skip(f"servers of uploads: {reason}")
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().decode().strip()
            assert port.isdigit(), f"{parser} did not start"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _build_command(parser: str) -> tuple[str, ...]:
    if parser in ("multer", "busboy", "formidable"):
        pins = hashlib.sha256("\n".join(NODE).encode()).hexdigest()
        modules = cached(f"uploads-node-{pins[:8]}", _install_node) / "node_modules"
        return ("node", str(HERE / "upload_servers.js"), parser, str(modules))
    pins = hashlib.sha256("\n".join(PYTHON).encode()).hexdigest()
    python = cached(f"uploads-python-{pins[:8]}", _install_python) / "venv/bin/python"
    return (str(python), str(HERE / "upload_servers.py"), parser)


def _install_python(directory: Path) -> None:
    run((sys.executable, "-m", "venv", "venv"), directory)
    pip = ("venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run((*pip, *PYTHON), directory)


def _install_node(directory: Path) -> None:
    (directory / "package.json").write_text('{"private": true}\n')
    run(("npm", "install", "--no-audit", "--no-fund", "--no-progress", *NODE), directory)
