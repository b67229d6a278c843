"""Building and storing the record of a call: its intent before it runs, its outcome after it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.calls import Call
from orchestrator.gateway.audit_writer import CallWriter
from orchestrator.gateway.engine import Engine
from orchestrator.gateway.exchange_json import encode_exchange
from orchestrator.gateway.secret_arguments import hide_arguments
from registry.calls.invocations import CallTable
from registry.models import CallDifference, CallFailure, Entry, Invocation
from sandbox.broker.broker import Broker
from sandbox.bundle.apispec import Access
from sandbox.errors import (
    BaseImageMissing,
    BytesExhausted,
    CallTimedOut,
    ComponentMissing,
    DefinitionsChanged,
    EngineAbsent,
    EngineUnavailable,
    Frozen,
    LoadFailed,
    NotOnThisEngine,
    PathRefused,
    PermissionMissing,
    SandboxError,
    SessionStopped,
)
from sandbox.session.interface import Failure, Outcome
from sandbox.session.pipe import CUT
from sandbox.session.recording import CallLog, CallRecording
from sandbox.wire.exchange import Exchange, Release, digest_request

OUTSIDE = frozenset({"refused", "timeout", "unreachable", "too_large", "rate_limited", "captured"})
CANCELLED = "cancelled"
NOT_ALLOWED, INTERRUPTED = "not_allowed", "interrupted"
_OURS = frozenset(
    f"{NOT_ALLOWED} {INTERRUPTED} refusal exception credential cancelled engine crashed "
    "wrong".split()
)
"""Kinds that only the host gives."""


def settle_call(
    invocation: Invocation,
    outcome: Outcome,
    recording: CallRecording | None,
    tape: CallLog | None = None,
) -> Invocation:
    """The invocation with what became of it; `tape` knows what may not be written down of it."""
    failure, difference = outcome.failure, outcome.difference
    safe = outcome.exchanges if tape is None or tape.hide is None else tape.list_safe_exchanges()
    return replace(
        invocation,
        state="done",
        result=dict(outcome.result),
        failure=None if failure is None else _classify_failure(failure, outcome.exchanges),
        difference=None if difference is None else CallDifference(**vars(difference)),
        latency_ms=outcome.elapsed_ms,
        exchanges=tuple(map(encode_exchange, safe)),
        recording=recording,
    )


def build_cancelled_outcome(tool: str, tape: CallLog) -> Outcome:
    failure = Failure(CANCELLED, "the client cancelled the call")
    return Outcome(tool, {"isError": True, "content": []}, failure, tuple(tape.exchanges))


def build_broken_outcome(server: str, tool: str, error: SandboxError, tape: CallLog) -> Outcome:
    """The outcome of a call whose session ended, or never began."""
    kinds = {
        Frozen: "frozen",
        LoadFailed: "bug",
        EngineUnavailable: "engine",
        EngineAbsent: "engine",
        BytesExhausted: "too_large",
        BaseImageMissing: "engine",
        ComponentMissing: "engine",
        NotOnThisEngine: "engine",
        PermissionMissing: "credential",
        PathRefused: "refused",
        DefinitionsChanged: "drift",
        SessionStopped: INTERRUPTED,
    }
    kind = kinds.get(type(error), "crashed")
    if isinstance(error, CallTimedOut) and _is_waiting(tape.exchanges):
        kind = "timeout"
    failure = Failure(kind, str(error))
    result = {
        "isError": True,
        "content": [{"type": "text", "text": f"{server}.{tool}: {error}"}],
        "_meta": {"toolwright/error": {"kind": failure.kind}},
    }
    return Outcome(tool, result, failure, tuple(tape.exchanges))


def find_write_state(
    broker: Broker, release: Release, outcome: Outcome
) -> Literal["done", "failed", "unknown"]:
    """What became of an approved write, by what its upstream answered.

    An accepted write is done also where the tool then failed on the answer: a person who is told
    otherwise would do it again. `unknown` is one that may have left and got no answer.
    """
    if not broker.released:
        return "failed"
    left = (*outcome.exchanges, *filter(None, [broker.written]))
    sent = [e for e in left if digest_request(e.request) == release.digest]
    statuses = [e.response.status if e.response else e.answered for e in sent]
    statuses = [status for status in statuses if status]
    if not statuses:
        return "unknown"
    return "done" if statuses[0] < 400 else "failed"


def _classify_failure(failure: Failure, exchanges: tuple[Exchange, ...]) -> CallFailure:
    """The failure as it is counted: what a sandbox says happened outside, the broker has to have
    seen, or it is the server's own bug.
    """
    return CallFailure(_classify_kind(failure, exchanges), failure.message, failure.status)


def _classify_kind(failure: Failure, exchanges: tuple[Exchange, ...]) -> str:
    kind, status = failure.kind, failure.status
    if kind in _OURS and failure.told_by != "host":
        return "bug"
    if kind == "http":
        seen = any(e.response is not None and e.response.status == status for e in exchanges)
        kind = "credential" if status in (401, 403) else "http"
        return kind if seen else "bug"
    if kind == "timeout" and failure.told_by == "host" and _is_waiting(exchanges):
        return kind
    if kind == "refused" and exchanges and exchanges[-1].refusal == NOT_ALLOWED:
        return NOT_ALLOWED
    if kind in OUTSIDE:
        return kind if any(e.kind == kind for e in exchanges) else "bug"
    if kind in ("schema", "malformed"):
        # Of what a server makes alone it is the only maker.
        return kind if any(e.response is not None for e in exchanges) else "bug"
    if failure.told_by == "host":
        return kind
    return _classify_own(failure, exchanges)


def _classify_own(failure: Failure, exchanges: tuple[Exchange, ...]) -> str:
    """The kind of a failure that the server's code tells of itself."""
    match failure.kind:
        case "bug":
            return "exception"
        case "tool" if failure.code:
            return "refusal"
        case "arguments" if failure.told_by == "code":
            return "refusal"
        case "tool" if exchanges and _is_failed(exchanges[-1]):
            return "upstream"
        case "upstream" if any(map(_is_failed, exchanges)):
            return "upstream"
        case "upstream" if failure.told_by == "code":
            return "tool" if exchanges else "exception"
    return failure.kind


def _is_waiting(exchanges: Sequence[Exchange]) -> bool:
    """Whether the last thing that a call asked for was not answered when it ended. A call of a
    third-party server is recorded as one exchange with that server: its silence is its own.
    """
    if not exchanges or exchanges[-1].refusal != CUT:
        return False
    return not exchanges[-1].request.url.startswith("mcp://")


def _is_failed(exchange: Exchange) -> bool:
    return exchange.response is None or exchange.response.status >= 400


@dataclass(frozen=True)
class CallRecorder:
    """Reads are stored soon, writes at once, before and after."""

    calls: CallTable
    ledger: CallWriter
    engine: Engine
    process: str
    now: Callable[[], float] = time.time

    def begin_call(self, identity: str, call: Call, entry: Entry, access: Access) -> Invocation:
        """A call that begins, and is counted: it has to be recorded, or accounted for."""
        return Invocation(
            serial=self.ledger.count_call(),
            id=identity,
            entry=call.server,
            version=entry.version,
            tool=call.tool,
            access=access,
            started=self.now(),
            arguments=hide_arguments(call) if call.secrets else call.arguments,
            task=call.task,
            reason=call.reason,
            session=call.session,
            process=self.process,
            state="intended",
        )

    def record_later(self, invocation: Invocation, outcome: Outcome, tape: CallLog) -> Invocation:
        """The call with what became of it; it is on disk a moment later."""
        ended = settle_call(invocation, outcome, self._build_recording(invocation, tape), tape)
        self.ledger.queue_call(ended)
        return ended

    @contextmanager
    def account_unrecorded(self, invocation: Invocation) -> Iterator[None]:
        """Account for the call where the block raises before it was recorded."""
        try:
            yield
        except BaseException as error:
            self.ledger.account_call(invocation, type(error).__name__)
            raise

    def account_held(self, invocation: Invocation) -> None:
        """Account for a call that sent nothing and waits for a person."""
        self.ledger.account_call(invocation, "held")

    async def store_intent(self, invocation: Invocation) -> None:
        """Store that a write is about to be made. Raises Frozen."""
        await asyncio.to_thread(self.calls.store_intent, invocation, self.now())

    async def record_now(
        self, invocation: Invocation, outcome: Outcome, tape: CallLog
    ) -> Invocation:
        """The call with what became of it, on disk."""
        ended = settle_call(invocation, outcome, self._build_recording(invocation, tape), tape)
        await self.ledger.store_call(ended)
        return ended

    def _build_recording(self, invocation: Invocation, tape: CallLog) -> CallRecording:
        return CallRecording(
            self.engine.name,
            self.engine.base,
            invocation.arguments,
            tape.inputs,
            tuple(tape.exchanges) if tape.hide is None else tape.list_safe_exchanges(),
        )
