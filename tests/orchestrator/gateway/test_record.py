"""What is stored of a call that the broker refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orchestrator.gateway.record import settle_call
from registry.health.causes import find_cause
from sandbox.broker.broker import Broker
from sandbox.session.interface import Outcome
from sandbox.wire.exchange import WireResponse
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
