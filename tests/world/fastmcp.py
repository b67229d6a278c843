"""FastMCP's client, in a virtual environment of its own: its pins are not ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.world.cache import Unavailable, cached, run

PACKAGE = "fastmcp-slim[client]==4.1.6"


@pytest.fixture(scope="session")
def fastmcp_python() -> Path:
    """The interpreter that has it. Skips where it cannot be had."""
    try:
        return install()
    except Unavailable as reason:
        pytest.skip(f"FastMCP: {reason}")


def install() -> Path:
    """Install it once into the cache. Raises Unavailable."""
    return cached("fastmcp-4.1.6", _install) / "venv/bin/python"


def _install(directory: Path) -> None:
    run((sys.executable, "-m", "venv", "venv"), directory)
    pip = ("venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run((*pip, PACKAGE), directory)
