"""Interfaces of engines and sessions, and the values of a call: limits, failure, outcome."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sandbox.bundle.model import Bundle
from sandbox.session.recording import CallLog
from sandbox.wire.content import join_texts
from sandbox.wire.exchange import Exchange

if TYPE_CHECKING:
    # Whoever reads what became of a call needs no broker.
    from sandbox.broker.broker import Broker


@dataclass(frozen=True)
class Limits:
    """Resource limits of one server. Sizes are bytes unless named otherwise, times are seconds.

    `call_bytes` is what the host holds of one call, and of what the server has not read yet.
    """

    memory_mb: int = 128
    cpus: float = 0.5
    pids: int = 64
    files: int = 256
    scratch_mb: int = 16
    start_seconds: float = 60.0
    call_seconds: float = 60.0
    line_bytes: int = 48 * 1024 * 1024
    session_bytes: int = 512 * 1024 * 1024
    call_bytes: int = 64 * 1024 * 1024
    stderr_bytes: int = 64 * 1024
    nesting: int = 128
    strays: int = 32


@dataclass(frozen=True)
class Failure:
    """The failure of a call. `kind` is one of docs/runtime-protocol.md, section 2."""

    kind: str
    message: str
    status: int | None = None
    retry_after: float | None = None
    where: str = ""


@dataclass(frozen=True)
class Outcome:
    """The result of a tool call: an MCP `CallToolResult`, its failure if any, and its exchanges.
    `size` is the number of bytes of a large answer, 0 for all others.
    """

    tool: str
    result: Mapping[str, Any]
    failure: Failure | None
    exchanges: tuple[Exchange, ...] = ()
    elapsed_ms: float = 0.0
    size: int = 0

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def structured(self) -> Any:
        """`structuredContent`, or None."""
        return self.result.get("structuredContent")

    @property
    def text(self) -> str:
        """The text of the result's content blocks, joined by line feeds."""
        return join_texts(self.result.get("content"))


class Session(Protocol):
    """One running server with one broker policy. Not shared between servers, never reused."""

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        """The server's tool definitions, as sent."""
        ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float | None = None,
        tape: CallLog | None = None,
    ) -> Outcome:
        """Call a tool. `tape` holds the call's inputs and exchanges, even if the call raises.

        Raises CallTimedOut or SessionBroken; both end the session.
        """
        ...


class Runner(Protocol):
    """An engine that can run bundles."""

    def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AbstractAsyncContextManager[Session]:
        """Start the bundle in a fresh sandbox. Raises LoadFailed, SessionBroken, Frozen."""
        ...
