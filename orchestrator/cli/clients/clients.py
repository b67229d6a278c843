"""MCP clients: where each keeps its servers, how it writes one down, and putting ours there.

Paths and shapes follow each client's own documentation; docs/clients.md names it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.configtext import (
    read_json,
    read_toml,
    read_yaml,
    set_in_json,
    set_in_toml,
    set_in_yaml,
)
from orchestrator.errors import ConfigNotUnderstood, OrchestratorError
from orchestrator.starting import own_command
from registry.files import write_atomically

SERVER = "toolwright"
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Machine:
    """What decides where configurations lie. `platform` is `sys.platform`'s value; `config` and
    `appdata` are the user's directories of the XDG specification and of Windows.
    """

    platform: str
    home: Path
    config: Path
    appdata: Path
    codex: Path

    @property
    def applications(self) -> Path:
        """Where desktop applications keep what belongs to a user."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.appdata if self.platform == "win32" else self.config


def machine(environment: Mapping[str, str], platform: str = sys.platform) -> Machine:
    """The machine that these environment variables and this platform describe."""
    home = Path(environment.get("USERPROFILE" if platform == "win32" else "HOME") or Path.home())
    return Machine(
        platform,
        home,
        Path(environment.get("XDG_CONFIG_HOME") or home / ".config"),
        Path(environment.get("APPDATA") or home / "AppData" / "Roaming"),
        Path(environment.get("CODEX_HOME") or home / ".codex"),
    )


@dataclass(frozen=True)
class Start:
    """How a client starts a server: the entry's name in its configuration, and the process."""

    name: str
    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    about: str = "Toolwright forges MCP servers and routes tasks to them."


def serving(home: Path, server: str = "") -> Start:
    """Starting `toolwright serve`, or one forged server by itself. Raises OrchestratorError."""
    command = own_command()
    work = ("run", server) if server else ("serve",)
    environment = {"TOOLWRIGHT_HOME": str(home)}
    start = Start(server or SERVER, command[0], (*command[1:], *work), environment)
    return replace(start, about=f"{server}, forged by Toolwright.") if server else start


@dataclass(frozen=True)
class Client:
    """A client. `keys` lead to the mapping of servers by name; `write` sets one in the text, `read`
    gives the text's values. It takes `most_tools` of all servers together and names of `longest`
    letters, the server's among them; 0 where no limit is known.
    """

    title: str
    path: Callable[[Machine], Path]
    keys: tuple[str, ...]
    entry: Callable[[Start], dict[str, Any]]
    write: Callable[[str, tuple[str, ...], Mapping[str, Any] | None], str] = set_in_json
    read: Callable[[str], Any] = read_json
    most_tools: int = 0
    longest: int = 0


def _plain(start: Start) -> dict[str, Any]:
    return {
        "command": start.command,
        "args": list(start.arguments),
        "env": dict(start.environment),
    }


def _typed(start: Start) -> dict[str, Any]:
    return {"type": "stdio", **_plain(start)}


def _cline(start: Start) -> dict[str, Any]:
    # Its command line gives a server three seconds to start where nothing is said.
    return {**_plain(start), "disabled": False, "timeout": 60}


def _goose(start: Start) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": start.name,
        "description": start.about,
        "cmd": start.command,
        "args": list(start.arguments),
        "envs": dict(start.environment),
        "timeout": 300,
    }


def _goose_path(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.appdata / "Block" / "goose" / "config" / "config.yaml"
    return machine.home / ".config" / "goose" / "config.yaml"


def _zed_path(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.appdata / "Zed" / "settings.json"
    linux = machine.config if machine.platform != "darwin" else machine.home / ".config"
    return linux / "zed" / "settings.json"


def _cline_path(machine: Machine) -> Path:
    """Cline's shared settings; its VS Code extension's own file where only that is there."""
    shared = machine.home / ".cline" / "data" / "settings" / "cline_mcp_settings.json"
    storage = machine.applications / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev"
    extension = storage / "settings" / "cline_mcp_settings.json"
    return extension if extension.exists() and not shared.exists() else shared


_SERVERS = ("mcpServers",)
CLIENTS: Mapping[str, Client] = {
    "claude-code": Client("Claude Code", lambda m: m.home / ".claude.json", _SERVERS, _typed),
    "claude-desktop": Client(
        "Claude Desktop",
        lambda m: m.applications / "Claude" / "claude_desktop_config.json",
        _SERVERS,
        _plain,
    ),
    "cursor": Client(
        "Cursor",
        lambda m: m.home / ".cursor" / "mcp.json",
        _SERVERS,
        _typed,
        most_tools=40,
        longest=60,
    ),
    "vscode": Client(
        "VS Code",
        lambda m: m.applications / "Code" / "User" / "mcp.json",
        ("servers",),
        _typed,
        most_tools=128,
    ),
    "codex": Client(
        "Codex CLI",
        lambda m: m.codex / "config.toml",
        ("mcp_servers",),
        _plain,
        set_in_toml,
        read_toml,
    ),
    "gemini": Client(
        "Gemini CLI", lambda m: m.home / ".gemini" / "settings.json", _SERVERS, _plain
    ),
    "goose": Client("Goose", _goose_path, ("extensions",), _goose, set_in_yaml, read_yaml),
    "zed": Client("Zed", _zed_path, ("context_servers",), _plain),
    "windsurf": Client(
        "Windsurf",
        lambda m: m.home / ".codeium" / "windsurf" / "mcp_config.json",
        _SERVERS,
        _plain,
        most_tools=100,
    ),
    "cline": Client("Cline", _cline_path, _SERVERS, _cline),
}


def beyond(client: Client, server: str, tools: Sequence[str]) -> tuple[str, ...]:
    """What of a server's tools the client is known not to take, in words."""
    told = []
    if client.most_tools and len(tools) > client.most_tools:
        told.append(
            f"{client.title} takes {client.most_tools} tools of all servers together; {server} has "
            f"{len(tools)}. `toolwright compile --only`, `--tag` and `--task` choose among them."
        )
    long = [tool for tool in tools if client.longest and len(server + tool) > client.longest]
    if long:
        told.append(
            f"{client.title} leaves out tools whose name with the server's has more than "
            f"{client.longest} letters: {', '.join(long[:5])}{'…' if long[5:] else ''}. Forge it "
            "under a shorter name."
        )
    return tuple(told)


def printed(client: Client, start: Start) -> str:
    """What to put into the client's configuration, as a file that holds nothing else."""
    return client.write("", (*client.keys, start.name), client.entry(start))


def configure(client: Client, path: Path, start: Start, *, remove: bool = False) -> Path | None:
    """Put the server into the client's configuration, or take it out; the backup of what was
    there, or None where there was none.

    Raises OrchestratorError, and then nothing is changed.
    """
    text = _read(path)
    entry = None if remove else client.entry(start)
    try:
        if not _is_ours(_present(client, text or "", start.name), start):
            raise OrchestratorError(
                f"{path} has a server `{start.name}` that Toolwright did not put there. Rename it, "
                "or use --print and add ours by hand; nothing was changed."
            )
        changed = client.write(text or "", (*client.keys, start.name), entry)
    except ConfigNotUnderstood as error:
        raise ConfigNotUnderstood(error.reason, str(path)) from error
    if (text is None and remove) or changed == text:
        return None
    try:
        return _replace(path, text, changed)
    except OSError as error:
        raise OrchestratorError(f"{path} cannot be written: {error.strerror}.") from error


def _present(client: Client, text: str, name: str) -> Any:
    """What the configuration has under that name already, or None."""
    found = client.read(text) if text.strip() else None
    for key in (*client.keys, name):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _is_ours(present: Any, start: Start) -> bool:
    """Whether an entry may be replaced: `toolwright` is our name, a server's may be anyone's."""
    if present is None or start.name == SERVER:
        return True
    arguments = present.get("args") if isinstance(present, Mapping) else None
    return isinstance(arguments, list) and tuple(arguments[-2:]) == start.arguments[-2:]


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ConfigNotUnderstood(f"larger than {MAX_BYTES} bytes", str(path))
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigNotUnderstood(str(error), str(path)) from error
    except OSError as error:
        raise OrchestratorError(f"{path} cannot be read: {error.strerror}.") from error


def _replace(path: Path, before: str | None, after: str) -> Path | None:
    """Write a file, where a link points, with the mode it had; its earlier content goes beside."""
    if before is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, after.encode(), 0o600)
        return None
    mode = path.stat().st_mode & 0o777
    backup = path.with_name(f"{path.name}.backup-{time.strftime('%Y%m%d-%H%M%S')}")
    write_atomically(backup, before.encode(), mode)
    write_atomically(Path(os.path.realpath(path)), after.encode(), mode)
    return backup
