"""The MCP Inspector's command line: a client none of us wrote."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.world.cache import Unavailable, cached, run

PACKAGES = ("node@22.23.3", "@modelcontextprotocol/inspector@2.12.0")
"""The Inspector needs Node 22; under an older one npm would silently pick an old Inspector."""


@pytest.fixture(scope="session")
def inspector() -> Path:
    """The directory the Inspector is installed in. Skips where it cannot be had."""
    try:
        return install()
    except Unavailable as reason:
        pytest.skip(f"MCP Inspector: {reason}")


def install() -> Path:
    """Install it once into the cache. Raises Unavailable."""
    return cached("inspector-2.12.0", _install)


def inspect(
    command: Sequence[str],
    method: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    seconds: float = 60.0,
) -> subprocess.CompletedProcess[str]:
    """Run one method (`tools/list`, `tools/call`) against a stdio server.

    `arguments` follow as given, such as `--tool-name`, `echo`, `--tool-arg`, `text=hi`. Lists are
    judged with `--strict`. Exit status 5 is a tool error or an unknown tool, 6 a schema that is
    not clean. `env` is the server's, which gets only a few variables of ours besides.
    """
    modules = install() / "node_modules"
    line = [str(modules / "node/bin/node"), str(modules / ".bin/mcp-inspector"), "--cli"]
    line += [*command, "--method", method, *arguments]
    for name, value in (env or {}).items():
        line += ["-e", f"{name}={value}"]
    if method == "tools/list":
        line.append("--strict")
    return subprocess.run(
        line,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def _install(directory: Path) -> None:
    (directory / "package.json").write_text('{"private": true}\n')
    run(("npm", "install", "--no-audit", "--no-fund", "--no-progress", *PACKAGES), directory)
    node = directory / "node_modules/node/bin/node"
    if not node.exists():
        raise Unavailable("npm did not run the install script that fetches Node 22")
