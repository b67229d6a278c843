"""The servers that MCP clients on this machine start by themselves, read from their files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from orchestrator.cli.clients.clients import CLIENTS, SERVER, Machine, read_all_entries
from orchestrator.errors import OrchestratorError
from orchestrator.forging.thirdparty.source import parse_command
from sandbox.bundle.permissions import parse_permission

MAX_SERVERS = 200
MAX_WORDS = 100
MAX_LETTERS = 4096
ADDRESSES = ("url", "httpUrl", "serverUrl", "uri")
"""Keys of servers that are reached over HTTP, by the clients' own names."""
LAUNCHING = frozenset({"command", "cmd", "args", "env", "envs", "type", "cwd", "source"})
"""Keys that say how a server is started; what else an entry has stays in it."""
_HOME = "TOOLWRIGHT_HOME"


@dataclass(frozen=True)
class FoundServer:
    """A server that a client starts: `keys` lead to its `entry` in the client's file, `words` are
    the command. `problem` says why Toolwright cannot run it, "" where it can.
    """

    client: str
    path: Path
    keys: tuple[str, ...]
    entry: Mapping[str, Any] = field(repr=False)
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    problem: str = ""

    @property
    def name(self) -> str:
        """The client's own name of it."""
        return self.keys[-1]

    @property
    def place(self) -> str:
        """Where it stands, for a person."""
        client = CLIENTS[self.client]
        inner = [key for key in self.keys[:-1] if key not in (*client.keys, *client.others)]
        return f"{self.name} of {client.title} ({', '.join([str(self.path), *inner])})"

    @property
    def server(self) -> str:
        """The name that it is registered under."""
        plain = re.sub(r"[^a-z0-9_]+", "_", self.name.lower()).strip("_")
        return (plain if plain[:1].isalpha() else f"server_{plain}")[:40]

    def is_same(self, other: FoundServer) -> bool:
        """Whether two clients start the same server."""
        return (self.server, self.words, dict(self.environment)) == (
            other.server,
            other.words,
            dict(other.environment),
        )


def find_servers(name: str, machine: Machine) -> tuple[FoundServer, ...]:
    """What a client starts, without Toolwright's own entries. Raises OrchestratorError."""
    path = CLIENTS[name].path(machine)
    entries = read_all_entries(CLIENTS[name], path)
    found = (
        read_server(name, path, keys, entry)
        for keys, entry in entries.items()
        if not _is_own(keys[-1], entry)
    )
    return tuple(islice(found, MAX_SERVERS))


def read_server(client: str, path: Path, keys: tuple[str, ...], entry: Any) -> FoundServer:
    """An entry of a client's file, as a server. What is wrong with it is its `problem`."""
    try:
        words, environment = _read_launch(entry)
        _check_environment(environment)
        parse_command(words)
    except OrchestratorError as error:
        return FoundServer(client, path, keys, entry, problem=str(error))
    return FoundServer(client, path, keys, entry, words, environment)


def _is_own(name: str, entry: Any) -> bool:
    if name == SERVER or not isinstance(entry, Mapping):
        return name == SERVER
    given = entry.get("env", entry.get("envs"))
    return isinstance(given, Mapping) and _HOME in given


def _read_launch(entry: Any) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and the variables of an entry. Raises OrchestratorError."""
    if not isinstance(entry, Mapping):
        raise OrchestratorError("its entry is not an object.")
    if any(key in entry for key in ADDRESSES):
        raise OrchestratorError("it runs elsewhere and is reached by a URL.")
    if "envFile" in entry:
        raise OrchestratorError("it reads variables from a file (envFile).")
    launch: Mapping[str, Any] = entry
    command = entry.get("command", entry.get("cmd"))
    if isinstance(command, Mapping):
        # Zed's earlier form: {"command": {"path": …, "args": […], "env": {…}}}.
        launch, command = command, command.get("path")
    words = [command, *_read_list(launch.get("args"))]
    if not all(isinstance(word, str) and 0 < len(word) <= MAX_LETTERS for word in words):
        raise OrchestratorError("its entry names no command.")
    given = launch.get("env", launch.get("envs")) or {}
    if len(words) > MAX_WORDS or not isinstance(given, Mapping) or len(given) > MAX_WORDS:
        raise OrchestratorError("its entry is not understood.")
    environment = {str(key): value for key, value in given.items() if isinstance(value, str)}
    if len(environment) < len(given):
        raise OrchestratorError("a variable of its entry is not a text.")
    if any("${" in text for text in (*words, *environment.values())):
        raise OrchestratorError("it has a `${…}` that only its client can fill in.")
    return tuple(words), environment


def _read_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []


def _check_environment(environment: Mapping[str, str]) -> None:
    """Raises OrchestratorError for a variable that no server can be given."""
    for name, value in environment.items():
        try:
            parse_permission(f"env:{name}")
        except ValueError as error:
            raise OrchestratorError(f"{error}.") from error
        if not value.strip() or len(value) > MAX_LETTERS:
            raise OrchestratorError(f"its variable {name} is empty or too long.")
