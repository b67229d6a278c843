"""Running a bundle: the interfaces that the Docker and the WASM engine implement."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sandbox.bundle import Bundle
from sandbox.content import texts
from sandbox.exchange import Exchange
from sandbox.recording import Tape

if TYPE_CHECKING:
    # Whoever reads what became of a call needs no broker.
    from sandbox.broker import Broker


@dataclass(frozen=True)
class Limits:
    """What one server may use. Sizes are bytes unless named otherwise, times are seconds."""

    memory_mb: int = 128
    cpus: float = 0.5
    pids: int = 64
    files: int = 256
    scratch_mb: int = 16
    start_seconds: float = 20.0
    call_seconds: float = 60.0
    line_bytes: int = 48 * 1024 * 1024
    session_bytes: int = 512 * 1024 * 1024
    stderr_bytes: int = 64 * 1024
    nesting: int = 128
    strays: int = 32


@dataclass(frozen=True)
class Failure:
    """Why a call did not succeed. `kind` is one of docs/runtime-protocol.md, section 2."""

    kind: str
    message: str
    status: int | None = None
    retry_after: float | None = None
    where: str = ""


@dataclass(frozen=True)
class Outcome:
    """One tool call as it happened: an MCP `CallToolResult`, and every exchange it made."""

    tool: str
    result: Mapping[str, Any]
    failure: Failure | None
    exchanges: tuple[Exchange, ...] = ()
    elapsed_ms: float = 0.0

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
        return texts(self.result.get("content"))


class Session(Protocol):
    """One running server with one broker policy. Not shared between servers, never reused."""

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        """What the server lists, as sent."""
        ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float | None = None,
        tape: Tape | None = None,
    ) -> Outcome:
        """Call a tool; the tape, also where the call raises, has what it took in.

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
