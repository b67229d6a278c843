"""What a call ended with, as it is stored and counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from orchestrator.wirejson import exchange_json
from registry.records import Failed, Invocation
from sandbox.broker import Broker, Release
from sandbox.errors import (
    BaseImageMissing,
    ComponentMissing,
    DefinitionsChanged,
    EngineUnavailable,
    Frozen,
    LoadFailed,
    NotOnThisEngine,
    PathRefused,
    PermissionMissing,
    SandboxError,
)
from sandbox.exchange import Exchange, wire_digest
from sandbox.recording import Recording, Tape
from sandbox.runner import Failure, Outcome

OUTSIDE = frozenset({"refused", "timeout", "unreachable", "too_large", "rate_limited", "captured"})
CANCELLED = "cancelled"


def settled(invocation: Invocation, outcome: Outcome, recording: Recording | None) -> Invocation:
    """The invocation with what became of it."""
    failure = outcome.failure
    return replace(
        invocation,
        state="done",
        result=dict(outcome.result),
        failure=None if failure is None else _counted(failure, outcome.exchanges),
        latency_ms=outcome.elapsed_ms,
        exchanges=tuple(map(exchange_json, outcome.exchanges)),
        recording=recording,
    )


def cancelled(tool: str, tape: Tape) -> Outcome:
    failure = Failure(CANCELLED, "the client cancelled the call")
    return Outcome(tool, {"isError": True, "content": []}, failure, tuple(tape.exchanges))


def broken(server: str, tool: str, error: SandboxError, tape: Tape) -> Outcome:
    """The outcome of a call whose session ended, or never began."""
    kinds = {
        Frozen: "frozen",
        LoadFailed: "bug",
        EngineUnavailable: "engine",
        BaseImageMissing: "engine",
        ComponentMissing: "engine",
        NotOnThisEngine: "engine",
        PermissionMissing: "credential",
        PathRefused: "refused",
        DefinitionsChanged: "drift",
    }
    failure = Failure(kinds.get(type(error), "crashed"), str(error))
    result = {
        "isError": True,
        "content": [{"type": "text", "text": f"{server}.{tool}: {error}"}],
        "_meta": {"toolwright/error": {"kind": failure.kind}},
    }
    return Outcome(tool, result, failure, tuple(tape.exchanges))


def write_state(
    broker: Broker, release: Release, outcome: Outcome
) -> Literal["done", "failed", "unknown"]:
    """What became of an approved write, by what its upstream answered.

    An accepted write is done also where the tool then failed on the answer: a person who is told
    otherwise would do it again. `unknown` is one that may have left and got no answer.
    """
    if not broker.released:
        return "failed"
    left = (*outcome.exchanges, *filter(None, [broker.written]))
    sent = [e for e in left if wire_digest(e.request) == release.digest]
    statuses = [e.response.status for e in sent if e.response]
    if not statuses:
        return "unknown"
    return "done" if statuses[0] < 400 else "failed"


def _counted(failure: Failure, exchanges: tuple[Exchange, ...]) -> Failed:
    """The failure as it is counted: what a sandbox says happened outside, the broker has to have
    seen, or it is the server's own bug.
    """
    kind, status = failure.kind, failure.status
    if kind == "http":
        seen = any(e.response is not None and e.response.status == status for e in exchanges)
        kind = "credential" if status in (401, 403) else "http"
    else:
        seen = kind not in OUTSIDE or any(e.refusal == kind for e in exchanges)
    return Failed(kind if seen else "bug", failure.message, status)
