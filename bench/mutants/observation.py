"""Observations of a bundle that is called: the bytes it sends and the results it gives."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from bench.mutants.corpus import Call
from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.clock import VirtualClock
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.session.interface import Limits, Outcome, Runner
from sandbox.stages.mock.stage import MOCK_CAPS, build_mock_policy
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import Policy

CALL_SECONDS = 4.0
SILENCE_SECONDS = 10_000.0
LIMITS = Limits(call_seconds=CALL_SECONDS)
Seen = tuple[Any, ...]
"""One call: method, URL, headers and body of every request in order, and the result."""


class Recorder:
    """An upstream that answers as it is told."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.answer: WireResponse | None = None

    async def send(self, request: WireRequest) -> WireResponse:
        if self.answer is None:
            await self.clock.sleep(SILENCE_SECONDS)
            return WireResponse(200)
        return self.answer


@dataclass(frozen=True)
class Difference:
    """Where a mutant is not its original: a call, or what the bundle declares."""

    where: str
    original: str
    mutant: str


async def observed(bundle: Bundle, runner: Runner, corpus: Sequence[Call]) -> AsyncGenerator[Seen]:
    """Call by call in one session. What ends the session is the last that is seen."""
    upstream = Recorder()
    broker = Broker(Policy(()), upstream, caps=MOCK_CAPS, clock=upstream.clock)
    try:
        async with runner.open(bundle, broker, LIMITS) as session:
            for call in corpus:
                broker.policy = build_mock_policy(bundle, call.tool)
                upstream.answer = call.answer
                yield _seen(await session.call(call.tool, call.arguments))
    except (CallTimedOut, SessionBroken, LoadFailed) as error:
        yield (type(error).__name__,)


def declared(bundle: Bundle) -> Mapping[str, Any]:
    """What others go by without a call: the tool list, permissions, requests and credentials."""
    return {
        **{tool.name: tool.build_listing(bundle.base_url) for tool in bundle.tools},
        "requests": {tool.name: [vars(r) for r in tool.requests] for tool in bundle.tools},
        "security": {tool.name: tool.security for tool in bundle.tools},
        "permissions": sorted(bundle.permissions),
        "credentials": sorted(map(repr, bundle.credentials)),
    }


async def difference(
    original: Bundle, mutant: Bundle, runner: Runner, corpus: Sequence[Call], known: Sequence[Seen]
) -> Difference | None:
    """The first difference on a corpus; `known` is what the original did on it."""
    before, after = declared(original), declared(mutant)
    for key, value in before.items():
        if value != after.get(key):
            return Difference(key, _short(value), _short(after.get(key)))
    return await _first(mutant, runner, corpus, known)


async def _first(
    mutant: Bundle, runner: Runner, corpus: Sequence[Call], known: Sequence[Seen]
) -> Difference | None:
    at = 0
    async with aclosing(observed(mutant, runner, corpus)) as calls:
        async for seen in calls:
            if seen != known[at]:
                call = corpus[at]
                told = f"{call.tool} {_short(call.arguments)} answered {call.answer!r}"[:400]
                return Difference(told, _short(known[at]), _short(seen))
            at += 1
    return None if at == len(known) else Difference("", "", "the calls ended early")


def _seen(outcome: Outcome) -> Seen:
    requests = tuple(
        (e.request.method, e.request.url, e.request.headers, e.request.body)
        for e in outcome.exchanges
    )
    failure = outcome.failure
    told = (failure.kind, failure.status, failure.retry_after) if failure else None
    return requests, told, json.dumps(outcome.result, sort_keys=True)


def _short(value: Any) -> str:
    return str(value)[:400]
