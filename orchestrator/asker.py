"""Who asks a flat front for something, and what it answers beside calls of tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sandbox.notices import LogEar
from sandbox.progress import Hearer, unheard

Result = Mapping[str, Any]
Declared = Mapping[str, Any]

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
UNSUPPORTED_VERSION, UNDECLARED, BUSY = -32022, -32021, -32603
CACHED = {"ttlMs": 300_000, "cacheScope": "private"}
FRESH = {"ttlMs": 0, "cacheScope": "private"}


@dataclass(frozen=True)
class Asker:
    """Whose request it is: what its answer may depend on, and what it is told meanwhile.

    `declared` are the client's capabilities, `logged` hears of a server's log where it wants to,
    `notify` sends a notification of that method and those parameters.
    """

    modern: bool
    declared: Declared
    identity: int | str
    notify: Callable[[str, Mapping[str, Any]], None]
    heard: Hearer = unheard
    logged: LogEar | None = None


CallTool = Callable[[str, Mapping[str, Any], Asker], Awaitable[Result]]
Answer = Callable[[Mapping[str, Any], Asker], Awaitable[Result]]


class More(Protocol):
    """What a server answers beside its tools."""

    def capabilities(self, version: str) -> Mapping[str, Any]:
        """What is declared in a revision of the protocol beside `tools`."""
        ...

    def answer(self, method: str, modern: bool) -> Answer | None:
        """What answers a method in that era, which may raise Refusal; None where nothing does."""
        ...


class NothingMore:
    """A server of tools alone."""

    def capabilities(self, version: str) -> Mapping[str, Any]:
        return {}

    def answer(self, method: str, modern: bool) -> Answer | None:
        return None


class Refusal(Exception):
    """A JSON-RPC error to be answered."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code, self.data = code, data
        super().__init__(message)
