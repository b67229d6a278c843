"""MCP clients: their configuration files and formats, and adding or removing our entry.

Paths and shapes follow each client's own documentation; docs/clients.md names it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.clients.config_files import (
    read_json,
    read_toml,
    read_yaml,
    set_in_json,
    set_in_toml,
    set_in_yaml,
)
from orchestrator.cli.clients.own_command import find_own_command
from orchestrator.cli.terminal import err, out, print_note, print_text
from orchestrator.errors import ConfigNotUnderstood, OrchestratorError
from orchestrator.settings import load_settings
from registry.database.files import write_atomically
from registry.store import Store

SERVER = "toolwright"
MAX_BYTES = 64 * 1024 * 1024
MAX_BACKUPS = 1000
"""Of one file within a second."""


@dataclass(frozen=True)
class Machine:
    """The platform and directories that determine where configuration files are. `platform` is
    `sys.platform`'s value; `config` is XDG_CONFIG_HOME (XDG Base Directory specification),
    `appdata` is %APPDATA%.
    """

    platform: str
    home: Path
    config: Path
    appdata: Path
    codex: Path

    @property
    def applications(self) -> Path:
        """The directory of desktop applications' per-user data."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.appdata if self.platform == "win32" else self.config


def describe_machine(environment: Mapping[str, str], platform: str = sys.platform) -> Machine:
    """The machine described by these environment variables and this platform."""
    home = Path(environment.get("USERPROFILE" if platform == "win32" else "HOME") or Path.home())
    return Machine(
        platform,
        home,
        Path(environment.get("XDG_CONFIG_HOME") or home / ".config"),
        Path(environment.get("APPDATA") or home / "AppData" / "Roaming"),
        Path(environment.get("CODEX_HOME") or home / ".codex"),
    )


@dataclass(frozen=True)
class StartCommand:
    """How a client starts a server: the entry's name in its configuration, and the command."""

    name: str
    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    about: str = "Toolwright forges MCP servers and routes tasks to them."


def build_start_command(home: Path, server: str = "") -> StartCommand:
    """The command for `toolwright serve`, or `run SERVER`. Raises OrchestratorError."""
    command = find_own_command()
    work = ("run", server) if server else ("serve",)
    environment = {"TOOLWRIGHT_HOME": str(home)}
    start = StartCommand(server or SERVER, command[0], (*command[1:], *work), environment)
    return replace(start, about=f"{server}, forged by Toolwright.") if server else start


@dataclass(frozen=True)
class McpClient:
    """An MCP client. `keys` is the path to its mapping of servers by name, `others` that to further
    ones, with `*` for any name; `write` sets an entry in the file's text, `read` parses it. It
    takes at most `most_tools` tools of all servers together and names of `longest` letters, the
    server's included; 0 where no limit is known.
    """

    title: str
    path: Callable[[Machine], Path]
    keys: tuple[str, ...]
    entry: Callable[[StartCommand], dict[str, Any]]
    write: Callable[[str, tuple[str, ...], Mapping[str, Any] | None], str] = set_in_json
    read: Callable[[str], Any] = read_json
    most_tools: int = 0
    longest: int = 0
    others: tuple[str, ...] = ()


def _build_plain_entry(start: StartCommand) -> dict[str, Any]:
    return {
        "command": start.command,
        "args": list(start.arguments),
        "env": dict(start.environment),
    }


def _build_typed_entry(start: StartCommand) -> dict[str, Any]:
    return {"type": "stdio", **_build_plain_entry(start)}


def _build_cline_entry(start: StartCommand) -> dict[str, Any]:
    # Its command line gives a server three seconds to start where nothing is said.
    return {**_build_plain_entry(start), "disabled": False, "timeout": 60}


def _build_goose_entry(start: StartCommand) -> dict[str, Any]:
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


def _find_goose_config(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.appdata / "Block" / "goose" / "config" / "config.yaml"
    return machine.home / ".config" / "goose" / "config.yaml"


def _find_zed_config(machine: Machine) -> Path:
    if machine.platform == "win32":
        return machine.appdata / "Zed" / "settings.json"
    linux = machine.config if machine.platform != "darwin" else machine.home / ".config"
    return linux / "zed" / "settings.json"


def _find_cline_config(machine: Machine) -> Path:
    """Cline's shared settings; its VS Code extension's own file where only that is there."""
    shared = machine.home / ".cline" / "data" / "settings" / "cline_mcp_settings.json"
    storage = machine.applications / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev"
    extension = storage / "settings" / "cline_mcp_settings.json"
    return extension if extension.exists() and not shared.exists() else shared


_SERVERS = ("mcpServers",)
CLIENTS: Mapping[str, McpClient] = {
    "claude-code": McpClient(
        "Claude Code",
        lambda m: m.home / ".claude.json",
        _SERVERS,
        _build_typed_entry,
        # Where `claude mcp add` puts a server that is not to be there for all projects.
        others=("projects", "*", "mcpServers"),
    ),
    "claude-desktop": McpClient(
        "Claude Desktop",
        lambda m: m.applications / "Claude" / "claude_desktop_config.json",
        _SERVERS,
        _build_plain_entry,
    ),
    "cursor": McpClient(
        "Cursor",
        lambda m: m.home / ".cursor" / "mcp.json",
        _SERVERS,
        _build_typed_entry,
        most_tools=40,
        longest=60,
    ),
    "vscode": McpClient(
        "VS Code",
        lambda m: m.applications / "Code" / "User" / "mcp.json",
        ("servers",),
        _build_typed_entry,
        most_tools=128,
    ),
    "codex": McpClient(
        "Codex CLI",
        lambda m: m.codex / "config.toml",
        ("mcp_servers",),
        _build_plain_entry,
        set_in_toml,
        read_toml,
    ),
    "gemini": McpClient(
        "Gemini CLI", lambda m: m.home / ".gemini" / "settings.json", _SERVERS, _build_plain_entry
    ),
    "goose": McpClient(
        "Goose", _find_goose_config, ("extensions",), _build_goose_entry, set_in_yaml, read_yaml
    ),
    "zed": McpClient("Zed", _find_zed_config, ("context_servers",), _build_plain_entry),
    "windsurf": McpClient(
        "Windsurf",
        lambda m: m.home / ".codeium" / "windsurf" / "mcp_config.json",
        _SERVERS,
        _build_plain_entry,
        most_tools=100,
    ),
    "cline": McpClient("Cline", _find_cline_config, _SERVERS, _build_cline_entry),
}


def find_limit_warnings(client: McpClient, server: str, tools: Sequence[str]) -> tuple[str, ...]:
    """Warnings about a server's tools that exceed the client's known limits."""
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


def render_config(client: McpClient, start: StartCommand) -> str:
    """The configuration file's text with this entry alone."""
    return client.write("", (*client.keys, start.name), client.entry(start))


def update_config(
    client: McpClient, path: Path, start: StartCommand, *, remove: bool = False
) -> Path | None:
    """Put the server into the client's configuration, or take it out; the backup of what was
    there, or None where there was none.

    Raises OrchestratorError, and then nothing is changed.
    """
    text = _read_config(path)
    entry = None if remove else client.entry(start)
    try:
        if not _is_ours(_find_entry(client, text or "", (*client.keys, start.name)), start):
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
        return _replace_config(path, text, changed)
    except OSError as error:
        raise OrchestratorError(f"{path} cannot be written: {error.strerror}.") from error


def exchange_entry(
    client: McpClient,
    path: Path,
    keys: Sequence[str],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Path:
    """Put another entry in the place of the one at `keys`, where it still is what was read; the
    backup of what was there.

    Raises OrchestratorError, and then nothing is changed.
    """
    text = _read_config(path)
    try:
        if text is None or _find_entry(client, text, keys) != before:
            raise OrchestratorError(
                f"{path} has another `{keys[-1]}` than was shown; nothing changed."
            )
        changed = client.write(text, tuple(keys), after)
    except ConfigNotUnderstood as error:
        raise ConfigNotUnderstood(error.reason, str(path)) from error
    try:
        backup = _replace_config(path, text, changed)
    except OSError as error:
        raise OrchestratorError(f"{path} cannot be written: {error.strerror}.") from error
    assert backup is not None
    return backup


def read_entries(client: McpClient, path: Path) -> Mapping[str, Any]:
    """The servers that a configuration names for every use of its client, by name; none where there
    is no file. Raises OrchestratorError.
    """
    entries = read_all_entries(client, path)
    return {keys[-1]: entry for keys, entry in entries.items() if keys[:-1] == client.keys}


def read_all_entries(client: McpClient, path: Path) -> Mapping[tuple[str, ...], Any]:
    """All servers that a configuration names, those of one project too, by the path to each. Raises
    OrchestratorError.
    """
    text = _read_config(path)
    try:
        config = client.read(text) if text and text.strip() else {}
    except ConfigNotUnderstood as error:
        raise ConfigNotUnderstood(error.reason, str(path)) from error
    ways = [(*way, "*") for way in (client.keys, client.others) if way]
    return {keys: entry for way in ways for keys, entry in _walk_config(config, way)}


def _walk_config(
    config: Any, way: Sequence[str], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What is at the ends of a path in which `*` is any name, with the names that led there."""
    if not way:
        yield above, config
    elif isinstance(config, Mapping):
        for key in config if way[0] == "*" else [each for each in way[:1] if each in config]:
            yield from _walk_config(config[key], way[1:], (*above, str(key)))


def _find_entry(client: McpClient, text: str, keys: Sequence[str]) -> Any:
    """The entry that the configuration has at that path, or None."""
    found = client.read(text) if text.strip() else None
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _is_ours(present: Any, start: StartCommand) -> bool:
    """Whether an entry may be replaced. `toolwright` is always ours; a server's name may not be."""
    if present is None or start.name == SERVER:
        return True
    arguments = present.get("args") if isinstance(present, Mapping) else None
    return isinstance(arguments, list) and tuple(arguments[-2:]) == start.arguments[-2:]


def _read_config(path: Path) -> str | None:
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


def _replace_config(path: Path, before: str | None, after: str) -> Path | None:
    """Write a file with its mode kept, through a symlink; the path of its backup, or None. Raises
    OrchestratorError where it is not what was read: the client writes it too.
    """
    if _read_config(path) != before:
        raise OrchestratorError(
            f"{path} was just changed by somebody else; nothing was. Try again."
        )
    if before is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, after.encode(), 0o600)
        return None
    mode = path.stat().st_mode & 0o777
    backup = _choose_backup(path)
    write_atomically(backup, before.encode(), mode)
    write_atomically(Path(os.path.realpath(path)), after.encode(), mode)
    return backup


def _choose_backup(path: Path) -> Path:
    """A name that no backup has: two changes in a second keep what was there before each."""
    first = f"{path.name}.backup-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (first, *(f"{first}-{number}" for number in range(2, MAX_BACKUPS)))
    return next(each for each in map(path.with_name, names) if not each.exists())


def configure_client(
    home: Path, name: str, server: str = "", *, only_print: bool = False, remove: bool = False
) -> dict[str, Any]:
    """Update that client's configuration, or only print the entry; what was done, for scripts.

    Raises OrchestratorError, and then nothing is changed.
    """
    client, start = CLIENTS[name], build_start_command(home, server)
    path = client.path(describe_machine(os.environ))
    if only_print:
        print_note(f"{client.title}: {path}")
        entry = render_config(client, start)
        click.echo(entry, nl=False, file=out.file)
        return {"client": name, "path": str(path), "entry": entry}
    before = _read_config(path)
    backup = update_config(client, path, start, remove=remove)
    if backup is None and remove:
        print_text(f"{path}: {start.name} was not there")
    elif remove:
        print_text(f"{path}: {start.name} is removed")
    elif _read_config(path) == before:
        print_text(f"{path}: {start.name} was there already")
    else:
        print_text(f"{path}: {start.name} is added")
        print_text(f"Restart {client.title}, then ask it for what you want.")
    if backup:
        print_text(f"what was there is kept in {backup}")
    kept = str(backup) if backup else ""
    return {"client": name, "path": str(path), "has_toolwright": not remove, "backup": kept}


def configure_client_for_server(server: str, name: str, *, only_print: bool, remove: bool) -> None:
    """Add, remove or print a registered server's entry. Raises Unknown, unless it is removed."""
    settings = load_settings()
    if not remove:
        with Store.open(settings.database_url) as store:
            tools = [tool.name for tool in store.servers.get(server).tools]
        for warning in find_limit_warnings(CLIENTS[name], server, tools):
            err.print(warning, style="yellow")
    configure_client(settings.home, name, server, only_print=only_print, remove=remove)
