"""What is stored of a call that the broker refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orchestrator.gateway.record import build_broken_outcome, settle_call
from registry.health.causes import find_cause
from sandbox.broker.broker import Broker
from sandbox.broker.live import LiveHttp
from sandbox.errors import CallTimedOut, SandboxError, SessionBroken, SessionStopped
from sandbox.session.interface import Outcome
from sandbox.session.pipe import CUT
from sandbox.session.recording import CallLog
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse
from sandbox.wire.policy import Policy, build_read_policy
from tests.engine.samples import FETCH, Api, bundle
from tests.registry.samples import invocation
from tests.sandbox.local import LocalRunner

FETCHES = bundle(FETCH, "fetch")
RULES = build_read_policy(FETCHES)
LOCKED = Policy(tuple(replace(rule, security=(("key",),)) for rule in RULES.rules))
MOVED = WireResponse(302, (("Location", "https://other.test/"),))


def fetched(policy: Policy) -> Outcome:
    async def run() -> Outcome:
        broker = Broker(policy, Api(lambda request: MOVED))
        async with LocalRunner().open(FETCHES, broker) as session:
            return await session.call("fetch", {"key": "a"})

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("policy", "refusal", "cause", "repair"),
    [
        (RULES, "redirect", "drift", "recompile"),
        (LOCKED, "credential", "credential", ""),
        (Policy(()), "refused", "bug", "code"),
    ],
)
def test_a_refusal_is_one_kind_to_the_sandbox_and_keeps_its_code_for_the_cause(
    policy: Policy, refusal: str, cause: str, repair: str
) -> None:
    outcome = fetched(policy)
    assert [exchange.refusal for exchange in outcome.exchanges] == [refusal]
    assert outcome.failure is not None
    assert outcome.failure.kind == "refused"
    call = settle_call(invocation("c1"), outcome, None)
    assert call.failure is not None
    assert call.failure.kind == "refused"
    found = find_cause(call)
    assert found is not None
    assert (found.kind, found.repair) == (cause, repair)


def test_a_private_address_that_nobody_allows_is_no_outage_and_says_how_it_is_allowed() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["10.0.0.1"]

    async def run() -> Outcome:
        async with LiveHttp(resolve=resolve) as upstream:
            async with LocalRunner().open(FETCHES, Broker(RULES, upstream)) as session:
                return await session.call("fetch", {"key": "a"})

    outcome = asyncio.run(run())
    assert outcome.failure is not None
    assert outcome.failure.kind == "refused"
    call = settle_call(invocation("c1"), outcome, None)
    assert call.failure is not None
    assert (call.failure.kind, call.fault, call.counted) == ("not_allowed", "nobody", False)
    found = find_cause(call)
    assert found is not None
    assert (found.kind, found.repair) == ("not allowed", "")
    assert "`toolwright source allow api.test:443`" in found.reason
    assert "reached" not in found.text


ASKED = WireRequest("GET", "https://api.example/items/1")
WAITING = Exchange(ASKED, None, CUT, "no answer")
ANSWERED = Exchange(ASKED, WireResponse(200))
ITSELF = Exchange(WireRequest("CALL", "mcp://sample/fetch"), None, CUT, "no answer")
TIMED_OUT = CallTimedOut("fetch", 60)


@pytest.mark.parametrize(
    ("error", "exchanges", "kind", "fault"),
    [
        (TIMED_OUT, (WAITING,), "timeout", "upstream"),
        (TIMED_OUT, (ANSWERED, WAITING), "timeout", "upstream"),
        (TIMED_OUT, (), "crashed", "server"),
        (TIMED_OUT, (WAITING, ANSWERED), "crashed", "server"),
        (TIMED_OUT, (ITSELF,), "crashed", "server"),
        (SessionBroken("it ended"), (WAITING,), "crashed", "server"),
        (SessionStopped("other"), (WAITING,), "interrupted", "nobody"),
        (SessionStopped("other"), (ITSELF,), "interrupted", "nobody"),
    ],
)
def test_a_call_that_ends_while_an_api_is_silent_is_the_apis_and_no_other_is(
    error: SandboxError, exchanges: tuple[Exchange, ...], kind: str, fault: str
) -> None:
    tape = CallLog(exchanges=[*exchanges])
    call = settle_call(
        invocation("c1"), build_broken_outcome("sample", "fetch", error, tape), None, tape
    )
    assert call.failure is not None
    assert (call.failure.kind, call.fault) == (kind, fault)
