"""Proving a bundle: the stages in their order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from sandbox.adequacy import prove_adequacy
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.casestage import check_examples, prove_cases
from sandbox.cassette import Cassette
from sandbox.clock import VirtualClock
from sandbox.errors import LoadFailed, SessionBroken
from sandbox.example import Example
from sandbox.livestage import candidates, prove_live, skipped
from sandbox.mockapi import MockApi
from sandbox.mockstage import MOCK_CAPS, Bench, OpenBench, prove_mock
from sandbox.policy import Policy, read_policy
from sandbox.recordedcase import RecordedCase
from sandbox.recordedstage import prove_recorded
from sandbox.redteam import prove_redteam, shooting_range
from sandbox.report import Proof, Stage, StageReport
from sandbox.runner import Runner, Session
from sandbox.static.stage import prove_definitions, prove_static
from sandbox.suitestage import harness, prove_suite
from sandbox.trials import OpenSession

OnStage = Callable[[StageReport | Stage], None]
"""Told the name of a stage when it starts and its report when it is over."""


async def prove(
    bundle: Bundle,
    runner: Runner,
    *,
    live: Broker | None = None,
    examples: Sequence[Example] | None = None,
    suite: str = "",
    recorded: Sequence[RecordedCase] = (),
    available: Set[str] | None = None,
    on_stage: OnStage = lambda stage: None,
    lanes: int = 2,
    seed: int = 0,
) -> Proof:
    """Run the stages of a bundle: static, suite, cases, adequacy, mock, recorded, live, redteam;
    nothing follows a failed stage.

    `live` is a broker whose upstream is the real API; its policy becomes the bundle's read policy.
    Without it the live stage is skipped. `examples` are for code that somebody wrote; a compiled
    bundle has none, no cases stage and no red team. `suite` are its tests, "" where it has none.
    `recorded` are cases of what happened to earlier versions, and no stage where there are none.
    `available` are the modules that the engine has, where it has not all that servers may import.
    """
    on_stage("static")
    reports = [prove_static(bundle, available)]
    on_stage(reports[-1])
    if reports[-1].passed and suite:
        on_stage("suite")
        reports.append(await prove_suite(bundle, suite, _sealed(harness(bundle), runner)))
        on_stage(reports[-1])
    if reports[-1].passed and examples is not None:
        on_stage("cases")
        reports.append(await prove_cases(bundle, examples, _sealed(bundle, runner)))
        on_stage(reports[-1])
    if reports[-1].passed and examples is not None:
        on_stage("adequacy")
        sealed = _sealed(harness(bundle), runner), _sealed(bundle, runner)
        reports.append(await prove_adequacy(bundle, examples, suite, *sealed))
        on_stage(reports[-1])
    if reports[-1].passed:
        on_stage("mock")
        bench = mock_bench(bundle, runner, seed)
        reports.append(await prove_mock(bundle, bench, lanes=lanes, seed=seed))
        on_stage(reports[-1])
    if reports[-1].passed and recorded:
        on_stage("recorded")
        reports.append(await prove_recorded(bundle, recorded, runner))
        on_stage(reports[-1])
    if reports[-1].passed:
        on_stage("live")
        reports.append(await _live(bundle, runner, live))
        on_stage(reports[-1])
    if reports[-1].passed and examples is not None:
        on_stage("redteam")
        targets = shooting_range(bundle, runner)
        reports.append(await prove_redteam(bundle, examples, targets, seed=seed))
        on_stage(reports[-1])
    return Proof(bundle.digest(), tuple(reports))


async def prove_specification(
    bundle: Bundle,
    runner: Runner,
    suite: str,
    examples: Sequence[Example],
    *,
    on_stage: OnStage = lambda stage: None,
) -> Proof:
    """What can be said of a bundle without code: of its tools, and whether its tests and examples
    prove anything.
    """
    on_stage("static")
    reports = [prove_definitions(bundle)]
    on_stage(reports[-1])
    if reports[-1].passed:
        on_stage("suite")
        reports.append(await prove_suite(bundle, suite, _sealed(harness(bundle), runner)))
        on_stage(reports[-1])
    if reports[-1].passed and examples:
        on_stage("cases")
        reports.append(check_examples(bundle, examples))
        on_stage(reports[-1])
    return Proof(bundle.digest(), tuple(reports))


def _sealed(bundle: Bundle, runner: Runner) -> OpenSession:
    """Opens sessions from which nothing is answered."""

    def opened() -> AbstractAsyncContextManager[Session]:
        return runner.open(bundle, Broker(Policy(()), Cassette(())))

    return opened


def mock_bench(bundle: Bundle, runner: Runner, seed: int = 0) -> OpenBench:
    """Opens benches for the mock stage: a fresh session whose upstream is a mock of the bundle's
    API on a virtual clock. The bundle must have a spec.
    """

    @asynccontextmanager
    async def opened() -> AsyncIterator[Bench]:
        assert bundle.spec is not None
        clock = VirtualClock()
        mock = MockApi(bundle.spec, clock, seed)
        broker = Broker(Policy(()), mock, caps=MOCK_CAPS, clock=clock)
        async with runner.open(bundle, broker) as session:
            yield Bench(session, broker, mock)

    return opened


async def _live(bundle: Bundle, runner: Runner, live: Broker | None) -> StageReport:
    if live is None:
        return skipped("there is no upstream to try, or the credential is missing")
    if not candidates(bundle):
        return skipped("no safe read can be called without arguments")
    live.policy = read_policy(bundle)
    try:
        async with runner.open(bundle, live) as session:
            return await prove_live(bundle, session)
    except (LoadFailed, SessionBroken) as error:
        return StageReport("live", "inconclusive", 0.0, coverage=0.0, note=str(error))
