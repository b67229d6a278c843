"""Proving a bundle: the stages in their order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import ParamSpec

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
Stages = Iterator[tuple[Stage, Callable[[], Awaitable[StageReport]]]]
"""The stages of a bundle in their order, and what runs them."""
P = ParamSpec("P")


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
    stages = _stages(bundle, runner, live, examples, suite, recorded, available, lanes, seed)
    return await _proof(bundle, stages, on_stage)


def _stages(
    bundle: Bundle,
    runner: Runner,
    live: Broker | None,
    examples: Sequence[Example] | None,
    suite: str,
    recorded: Sequence[RecordedCase],
    available: Set[str] | None,
    lanes: int,
    seed: int,
) -> Stages:
    sealed = _sealed(bundle, runner)
    yield "static", partial(_judged, prove_static, bundle, available)
    if suite:
        yield "suite", partial(prove_suite, bundle, suite, _sealed(harness(bundle), runner))
    if examples is not None:
        yield "cases", partial(prove_cases, bundle, examples, sealed)
        tested = _sealed(harness(bundle), runner)
        yield "adequacy", partial(prove_adequacy, bundle, examples, suite, tested, sealed)
    bench = mock_bench(bundle, runner, seed)
    yield "mock", partial(prove_mock, bundle, bench, lanes=lanes, seed=seed)
    if recorded:
        yield "recorded", partial(prove_recorded, bundle, recorded, runner)
    yield "live", partial(_live, bundle, runner, live)
    if examples is not None:
        targets = shooting_range(bundle, runner)
        yield "redteam", partial(prove_redteam, bundle, examples, targets, seed=seed)


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

    def stages() -> Stages:
        yield "static", partial(_judged, prove_definitions, bundle)
        yield "suite", partial(prove_suite, bundle, suite, _sealed(harness(bundle), runner))
        if examples:
            yield "cases", partial(_judged, check_examples, bundle, examples)

    return await _proof(bundle, stages(), on_stage)


async def _proof(bundle: Bundle, stages: Stages, on_stage: OnStage) -> Proof:
    """The reports of the stages up to the first that failed; the later ones are not begun."""
    reports: list[StageReport] = []
    for stage, work in stages:
        on_stage(stage)
        reports.append(await work())
        on_stage(reports[-1])
        if not reports[-1].passed:
            break
    return Proof(bundle.digest(), tuple(reports))


async def _judged(
    judge: Callable[P, StageReport], *args: P.args, **kwargs: P.kwargs
) -> StageReport:
    """A stage that runs nothing and waits for nothing."""
    return judge(*args, **kwargs)


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
