"""The answers with which a single server introduces itself (`toolwright run`), in both eras of the
protocol, and those that are kept for the next start.

Light on purpose: it is loaded before everything else (`early.py`).
https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle and
https://modelcontextprotocol.io/specification/2026-07-28
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.frontends.greeting import LEGACY, MODERN, VERSION, read_kept, write_kept
from orchestrator.settings import Settings
from registry.database.fingerprint import compute_server_fingerprint

Result = Mapping[str, Any]
CACHED = {"ttlMs": 300_000, "cacheScope": "private"}
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
FOLDER = "greetings"
MAX_KEPT = 65_536
"""Bytes of an introduction that is kept. A longer list of tools is told by the server proper."""


@dataclass(frozen=True)
class ServerInfo:
    """How the server introduces itself."""

    name: str
    version: str
    title: str
    instructions: str

    def build_info(self) -> dict[str, str]:
        return {"name": self.name, "version": self.version, "title": self.title}


def build_initialize_result(
    card: ServerInfo, abilities: Mapping[str, Any], version: str
) -> dict[str, Any]:
    """The result of `initialize`, with what the server can besides tools."""
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}, **abilities},
        "serverInfo": card.build_info(),
        "instructions": card.instructions,
    }


def build_discover_result(card: ServerInfo, abilities: Mapping[str, Any]) -> dict[str, Any]:
    """The result of `server/discover`, not yet complete."""
    return {
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}, **abilities},
        "instructions": card.instructions,
        **CACHED,
    }


def build_tool_list(tools: Sequence[Mapping[str, Any]], modern: bool) -> dict[str, Any]:
    """The result of `tools/list`, not yet complete."""
    return {"tools": tools, **(CACHED if modern else {})}


def complete_result(result: Result, card: ServerInfo) -> dict[str, Any]:
    """A result with what each has to say in the modern era."""
    meta = {**(result.get("_meta") or {}), SERVER_KEY: card.build_info()}
    return {"resultType": "complete", **result, "_meta": meta}


@dataclass(frozen=True)
class FlatGreeting:
    """What a server says before anything is called; `abilities` by revision of the protocol. The
    `Greeter` of a server that is being loaded.
    """

    card: ServerInfo
    tools: Sequence[Mapping[str, Any]]
    abilities: Mapping[str, Mapping[str, Any]]

    def introduce(self, version: str) -> dict[str, Any] | None:
        return build_initialize_result(self.card, self.abilities[version], version)

    def discover(self) -> dict[str, Any] | None:
        told = build_discover_result(self.card, self.abilities[MODERN])
        return complete_result(told, self.card)

    def list_tools(self, modern: bool) -> dict[str, Any] | None:
        told = build_tool_list(self.tools, modern)
        return complete_result(told, self.card) if modern else told


def keep_greeting(home: Path, fingerprint: str, greeting: FlatGreeting) -> None:
    """Keep what a server with that fingerprint says, where it is short enough. A home that takes no
    file goes without.
    """
    kept = json.dumps({"of": fingerprint, "by": VERSION, **asdict(greeting)})
    if len(kept) <= MAX_KEPT:
        write_kept(_locate(home, greeting.card.name), kept)


def find_kept_greeting(name: str, settings: Settings) -> FlatGreeting | None:
    """What the registered server of that name said as it was started last; None where it never was,
    or may say something else by now.
    """
    fingerprint = compute_server_fingerprint(settings.database, name) if settings.database else ""
    try:
        kept = json.loads(read_kept(_locate(settings.home, name), MAX_KEPT))
        if not fingerprint or (kept["of"], kept["by"]) != (fingerprint, VERSION):
            return None
        found = FlatGreeting(ServerInfo(**kept["card"]), kept["tools"], kept["abilities"])
        return found if {*LEGACY, MODERN} <= {*found.abilities} else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _locate(home: Path, name: str) -> Path:
    return home / FOLDER / f"{name}.json"
