"""MCP clients and suites that come from npm, with a Node of their own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.world.cache import Unavailable, cached, run

PACKAGES = (
    "node@22.23.3",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/sdk@1.32.2",
)
"""They need Node 22; under an older one npm would silently pick an old Inspector. `client` is the
TypeScript SDK of both protocol eras, `sdk` the one before it, which most clients are built on.
"""


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The directory they are installed in. Skips where they cannot be had."""
    try:
        return install()
    except Unavailable as reason:
        pytest.skip(f"MCP clients from npm: {reason}")


def install() -> Path:
    """Install them once into the cache. Raises Unavailable."""
    pins = hashlib.sha256("\n".join(PACKAGES).encode()).hexdigest()
    return cached(f"node-{pins[:8]}", _install) / "node_modules"


def node() -> str:
    """The path of that Node."""
    return str(install() / "node/bin/node")


def _install(directory: Path) -> None:
    (directory / "package.json").write_text('{"private": true}\n')
    run(("npm", "install", "--no-audit", "--no-fund", "--no-progress", *PACKAGES), directory)
    if not (directory / "node_modules/node/bin/node").exists():
        raise Unavailable("npm did not run the install script that fetches Node 22")
