"""Interfaces of engines and sessions, and the values of a call: limits, failure, outcome."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sandbox.bundle.model import Bundle
from sandbox.session.recording import CallLog
from sandbox.wire.content import join_texts
from sandbox.wire.exchange import Exchange

if TYPE_CHECKING:
    # Whoever reads what became of a call needs no broker.
    from sandbox.broker.broker import Broker


DifferenceKind = Literal["schema", "malformed", "depth"]


@dataclass(frozen=True)
class Limits:
    """Resource limits of one server. Sizes are bytes unless named otherwise, times are seconds.

    `call_bytes` is what the host holds of one call, and of what the server has not read yet,
    `answer_bytes` what the server may send until it answers something that it was asked.
    """

    memory_mb: int = 128
    cpus: float = 0.5
    pids: int = 64
    files: int = 256
    scratch_mb: int = 16
    start_seconds: float = 60.0
    call_seconds: float = 60.0
    line_bytes: int = 48 * 1024 * 1024
    answer_bytes: int = 512 * 1024 * 1024
    call_bytes: int = 64 * 1024 * 1024
    stderr_bytes: int = 64 * 1024
    nesting: int = 128
    strays: int = 32


@dataclass(frozen=True)
class Failure:
    """The failure of a call. `kind` is one of docs/runtime-protocol.md, section 2; `told_by` is who
    says so: the host, or the server by its code or by code that the compiler wrote. `code` is the
    refusal that the tool declares and that the server says this is.
    """

    kind: str
    message: str
    status: int | None = None
    retry_after: float | None = None
    where: str = ""
    told_by: Literal["host", "code", "compiler"] = "host"
    code: str = ""


@dataclass(frozen=True)
class Difference:
    """Where a result that was given differs from the API's description: `kind` is `schema`,
    `malformed` or `depth`, `where` a JSON pointer into the structured content. Not a failure.
    """

    kind: DifferenceKind
    where: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """The result of a tool call: an MCP `CallToolResult`, its failure if any, and its exchanges.
    `size` is the number of bytes of a large answer, 0 for all others. A result with a `difference`
    ends with a text block that tells it.
    """

    tool: str
    result: Mapping[str, Any]
    failure: Failure | None
    exchanges: tuple[Exchange, ...] = ()
    elapsed_ms: float = 0.0
    size: int = 0
    difference: Difference | None = None

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def structured(self) -> Any:
        """`structuredContent`, or None."""
        return self.result.get("structuredContent")

    @property
    def delivered(self) -> Mapping[str, Any]:
        """The result as a client may have it: without structured content that breaks the output
        schema, which clients rely on or throw away as a whole. Its text has all of it, with the
        headers that a caller goes on by, such as the ETag that the next write has to name.
        """
        if self.difference is None or self.difference.kind != "schema":
            return self.result
        kept = {key: value for key, value in self.result.items() if key != "structuredContent"}
        headers = self.structured.get("headers") if isinstance(self.structured, Mapping) else None
        if isinstance(headers, Mapping) and headers:
            lines = "; ".join(f"{name}: {value}" for name, value in headers.items())
            told = {"type": "text", "text": f"(Headers: {lines})"}
            kept["content"] = [*kept.get("content", ()), told]
        return kept

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
