"""The configuration files of MCP clients: merged, never clobbered."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from orchestrator.errors import OrchestratorError
from registry.files import write_atomically

CLIENTS = ("claude-code",)
SERVER = "toolwright"


def server_entry(home: Path) -> dict[str, Any]:
    """How a client starts Toolwright: by an absolute path, as clients have their own PATH."""
    beside = Path(sys.executable).with_name("toolwright")
    start = [str(beside)] if beside.exists() else [sys.executable, "-m", "orchestrator"]
    return {
        "type": "stdio",
        "command": start[0],
        "args": [*start[1:], "serve"],
        "env": {"TOOLWRIGHT_HOME": str(home)},
    }


def config_path(client: str) -> Path:
    """Where a client keeps its servers. Claude Code: `~/.claude.json` (user scope)."""
    return Path.home() / ".claude.json"


def merged(path: Path, entry: dict[str, Any] | None) -> dict[str, Any]:
    """The client's configuration with our server set, or taken out where `entry` is None.

    Raises OrchestratorError where the file is no JSON object: it is never overwritten then.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        text = "{}"
    except OSError as error:
        raise OrchestratorError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        config = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise _not_understood(path, str(error)) from error
    servers = config.setdefault("mcpServers", {}) if isinstance(config, dict) else None
    if not isinstance(servers, dict):
        raise _not_understood(path, "they are not objects")
    servers.pop(SERVER, None)
    if entry is not None:
        servers[SERVER] = entry
    return dict(config)


def _not_understood(path: Path, reason: str) -> OrchestratorError:
    return OrchestratorError(
        f"{path} is not a JSON object with `mcpServers` ({reason}). Mend it, or use --print and "
        "add the server by hand; nothing was changed."
    )


def write_config(path: Path, config: dict[str, Any]) -> Path | None:
    """Write the configuration; the backup of what was there, or None where nothing was."""
    backup = None
    mode = 0o600
    if path.exists():
        mode = path.stat().st_mode & 0o777
        backup = path.with_name(f"{path.name}.backup-{time.strftime('%Y%m%d-%H%M%S')}")
        write_atomically(backup, path.read_bytes(), mode)
    real = Path(os.path.realpath(path))
    write_atomically(real, (json.dumps(config, indent=2) + "\n").encode(), mode)
    return backup
