"""The MCP Inspector's command line: a client none of us wrote."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from tests.world.node import install, node


def inspect(
    command: Sequence[str],
    method: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    seconds: float = 180.0,
) -> subprocess.CompletedProcess[str]:
    """Run one method (`tools/list`, `tools/call`) against a stdio server.

    `arguments` follow as given, such as `--tool-name`, `echo`, `--tool-arg`, `text=hi`. Lists are
    judged with `--strict`. Exit status 5 is a tool error or an unknown tool, 6 a schema that is
    not clean. `env` is the server's, which gets only a few variables of ours besides.
    """
    line = [node(), str(install() / ".bin/mcp-inspector"), "--cli"]
    # By default it gives a server 15 s to answer, which a busy machine takes for one alone.
    patience = ["--connect-timeout", str(int(seconds * 1000))]
    line += [*command, "--method", method, *patience, *arguments]
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
