"""The answer with which `serve` introduces itself, in both eras of the protocol.

Light on purpose: it is loaded before everything else (`early.py`).
https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle and
https://modelcontextprotocol.io/specification/2026-07-28
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestrator.frontends.tools import TOOLS

NAME, VERSION = "toolwright", "0.1.0"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
EXTENSION = "io.modelcontextprotocol/tasks"
"""Tasks, which the modern era has as an extension."""
INSTRUCTIONS = (
    "Toolwright routes tasks to registered MCP servers and forges new ones. Use `find` or `do` for "
    "a task; call what is found with `call_read` or `call_write`. If nothing fits, `forge` with "
    "the API's URL as source (`none` for what only computes), then follow the job with `status`. "
    "Writes wait for a person's approval outside this conversation: you cannot give it. Never ask "
    "the user for a PIN or secret here."
)
FILE = "instructions.json"
MAX_KEPT = 16_384


def build_initialize_result(version: str, instructions: str) -> dict[str, Any]:
    """The result of `initialize` for a client that speaks `version`."""
    return {
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": instructions,
        "protocolVersion": version if version in LEGACY else LEGACY[-1],
        "serverInfo": _INFO,
    }


def build_discover_result(instructions: str) -> dict[str, Any]:
    """The result of `server/discover`."""
    return {
        **_ENDED,
        "capabilities": {"extensions": {EXTENSION: {}}, "tools": {"listChanged": False}},
        "instructions": instructions,
        "supportedVersions": [MODERN],
    }


def build_tool_list(modern: bool) -> dict[str, Any]:
    """The result of `tools/list`."""
    return {**_ENDED, "tools": TOOLS} if modern else {"tools": TOOLS}


def keep_instructions(home: Path, fingerprint: str, instructions: str) -> None:
    """Keep the instructions that fit a database with that fingerprint. A home that takes no file
    goes without.
    """
    write_kept(home / FILE, json.dumps({"of": fingerprint, "instructions": instructions}))


def find_kept_instructions(home: Path, fingerprint: str) -> str | None:
    """The instructions that were kept for that fingerprint; None where there are none."""
    try:
        kept = json.loads(read_kept(home / FILE, MAX_KEPT))
    except (ValueError, RecursionError):
        return None
    if not isinstance(kept, Mapping) or kept.get("of") != fingerprint:
        return None
    told = kept.get("instructions")
    return told if isinstance(told, str) else None


def write_kept(place: Path, kept: str) -> None:
    """Put a text in the place of what a file has, at once, where it is another one."""
    if read_kept(place, len(kept) + 1) == kept:
        return
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(mode=0o700, exist_ok=True)
        draft.write_text(kept, "utf-8")
        draft.replace(place)


def read_kept(place: Path, most: int) -> str:
    """The first `most` bytes of a file as a text; "" where it cannot be read."""
    try:
        with place.open("rb") as file:
            return file.read(most).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


_INFO: Mapping[str, str] = {"name": NAME, "version": VERSION}
_ENDED: Mapping[str, Any] = {
    "cacheScope": "private",
    "resultType": "complete",
    "ttlMs": 0,
    "_meta": {"io.modelcontextprotocol/serverInfo": _INFO},
}
"""What every result of the modern era says beside its own."""
