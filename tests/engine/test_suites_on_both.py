"""A server's tests run in both engines, to the same verdicts."""

from __future__ import annotations

import asyncio

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.report import Proof
from sandbox.stages.prove import prove_bundle
from sandbox.stages.suite import build_harness, prove_suite
from sandbox.wire.policy import Policy
from tests.engine.conftest import Engine
from tests.sandbox.computing import CASES, computing
from tests.sandbox.stages.test_suite import API, CODE, GOOD


def test_a_server_is_proved_with_its_tests_and_attacked(engine: Engine) -> None:
    async def work() -> Proof:
        async with engine() as runner:
            return await prove_bundle(computing(CODE), runner, examples=CASES, suite=GOOD)

    proof = asyncio.run(work())
    assert proof.passed, proof
    assert [report.stage for report in proof.reports] == [
        *("static", "suite", "cases", "adequacy", "mock", "live", "redteam")
    ]
    suite = proof.reports[1]
    assert [cell.case for cell in suite.cases][-1] == "test_a_negative_number_is_refused"


def test_answers_of_an_api_and_endless_code_are_tried_in_both(engine: Engine) -> None:
    bundle = computing(
        CODE.replace("number / 2", "number / 2 if number != 4 else [x for x in iter(int, 1)]")
    )
    made = build_harness(bundle)

    async def work() -> tuple[dict[str, str], dict[str, str]]:
        async with engine() as runner:

            def opened():  # type: ignore[no-untyped-def]
                return runner.open(made, Broker(Policy(()), Cassette(())))

            api = await prove_suite(bundle, API, opened)
            endless = await prove_suite(bundle, GOOD, opened, seconds=5.0, budget=120.0)
            told = [{c.case: c.verdict for c in r.cases} for r in (api, endless)]
            return told[0], told[1]

    api, endless = asyncio.run(work())
    assert set(api.values()) == {"passed"}
    assert [case for case, verdict in endless.items() if verdict == "failed"] == [
        "test_it_is_half[4-2]"
    ]
