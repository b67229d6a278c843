"""Proof of a bundle: runs the stages in order, up to the first that fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import ParamSpec

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Finding, Proof, Stage, StageReport
from sandbox.clock import VirtualClock
from sandbox.errors import LoadFailed, SessionBroken
from sandbox.offload import run_beside
from sandbox.session.interface import Runner, Session
from sandbox.session.recorded_case import RecordedCase
from sandbox.stages.adequacy import prove_adequacy
from sandbox.stages.cases import check_examples, prove_cases
from sandbox.stages.live import (
    NO_API,
    NOTHING_FREE,
    build_skipped_report,
    find_candidates,
    prove_live,
    restrict_broker,
)
from sandbox.stages.mock.api import MockApi
from sandbox.stages.mock.programs import prove_programs
from sandbox.stages.mock.stage import MOCK_CAPS, MockBench, OpenBench, prove_mock
from sandbox.stages.probe.budget import ProbeBudget
from sandbox.stages.recorded import prove_recorded
from sandbox.stages.redteam import build_attack_opener, prove_redteam
from sandbox.stages.static.definitions import find_programs
from sandbox.stages.static.stage import prove_definitions, prove_static
from sandbox.stages.suite import build_harness, prove_suite
from sandbox.stages.trials import OpenSession
from sandbox.wire.policy import Policy

OnStage = Callable[[StageReport | Stage], None]
"""Called with the name of a stage when it starts and with its report when it is over."""
Stages = Iterator[tuple[Stage, Callable[[], Awaitable[StageReport]]]]
"""The stages of a bundle in their order, and what runs them."""
P = ParamSpec("P")


async def prove_bundle(
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
    probe: ProbeBudget | None = None,
    withheld: Set[str] = frozenset(),
) -> Proof:
    """Run the stages of a bundle: static, suite, cases, adequacy, mock, recorded, live, redteam;
    nothing follows a failed stage.

    `live` is a broker whose upstream is the real API; its policy becomes that of the bundle's safe
    reads. Without it the live stage is skipped. With a `probe` it asks as much as that allows, and
    its report has what was learned; `withheld` tools it does not ask. `examples` are for code that
    somebody wrote; a compiled bundle has none, no cases stage and no red team. `suite` are its
    tests, "" where it has none.
    `recorded` are cases of what happened to earlier versions, and no stage where there are none.
    `available` are the modules that the engine has, where it has not all that servers may import.
    """
    stages = _iterate_stages(
        bundle, runner, live, examples, suite, recorded, available, lanes, seed, probe, withheld
    )
    return await _run_stages(bundle, stages, on_stage)


def _iterate_stages(
    bundle: Bundle,
    runner: Runner,
    live: Broker | None,
    examples: Sequence[Example] | None,
    suite: str,
    recorded: Sequence[RecordedCase],
    available: Set[str] | None,
    lanes: int,
    seed: int,
    probe: ProbeBudget | None,
    withheld: Set[str],
) -> Stages:
    sealed = _build_sealed_opener(bundle, runner)
    yield "static", partial(_run_judge, prove_static, bundle, available)
    if suite:
        yield (
            "suite",
            partial(
                prove_suite, bundle, suite, _build_sealed_opener(build_harness(bundle), runner)
            ),
        )
    if examples is not None:
        yield "cases", partial(prove_cases, bundle, examples, sealed)
        tested = _build_sealed_opener(build_harness(bundle), runner)
        yield "adequacy", partial(prove_adequacy, bundle, examples, suite, tested, sealed)
    bench = build_bench_opener(bundle, runner, seed)
    yield "mock", partial(_run_mock, bundle, bench, examples or (), lanes, seed)
    if recorded:
        yield "recorded", partial(prove_recorded, bundle, recorded, runner)
    yield "live", partial(_run_live, bundle, runner, live, probe, withheld)
    if examples is not None:
        targets = build_attack_opener(bundle, runner)
        yield "redteam", partial(prove_redteam, bundle, examples, targets, seed=seed)


async def prove_own_cases(
    bundle: Bundle,
    runner: Runner,
    examples: Sequence[Example] | None,
    suite: str = "",
    recorded: Sequence[RecordedCase] = (),
) -> Proof:
    """Run a registered bundle's own tests and cases again, and nothing that it was not proved by:
    whether it still does what it was registered for.
    """

    def stages() -> Stages:
        sealed = _build_sealed_opener(bundle, runner)
        if suite:
            harness = _build_sealed_opener(build_harness(bundle), runner)
            yield "suite", partial(prove_suite, bundle, suite, harness)
        if examples is not None:
            yield "cases", partial(prove_cases, bundle, examples, sealed, derived=False)
        yield "mock", partial(prove_mock, bundle, build_bench_opener(bundle, runner))
        if recorded:
            yield "recorded", partial(prove_recorded, bundle, recorded, runner)

    return await _run_stages(bundle, stages(), lambda stage: None)


async def prove_specification(
    bundle: Bundle,
    runner: Runner,
    suite: str,
    examples: Sequence[Example],
    *,
    on_stage: OnStage = lambda stage: None,
) -> Proof:
    """Prove a bundle that has no code yet: its tool definitions, and whether its tests and examples
    prove anything.
    """

    def stages() -> Stages:
        yield "static", partial(_run_judge, prove_definitions, bundle)
        yield (
            "suite",
            partial(
                prove_suite, bundle, suite, _build_sealed_opener(build_harness(bundle), runner)
            ),
        )
        if examples:
            yield "cases", partial(_run_judge, check_examples, bundle, examples)

    return await _run_stages(bundle, stages(), on_stage)


async def prove_widened(
    proof: Proof,
    before: Bundle,
    after: Bundle,
    runner: Runner,
    *,
    recorded: Sequence[RecordedCase] = (),
    available: Set[str] | None = None,
    lanes: int = 2,
    seed: int = 0,
) -> Proof:
    """Return the proof of a compiled bundle that is `before` with wider answer schemas: cells of
    tools that are the same are those of its `proof`, the others are run again. The API is not asked
    again.
    """
    tools = {tool.name: tool for tool in before.tools}
    same_code = before.source_code == after.source_code
    same = {name for name, tool in tools.items() if same_code and tool in after.tools}
    known = {report.stage: report for report in proof.reports}

    def stages() -> Stages:
        yield "static", partial(_run_judge, prove_static, after, available)
        bench = build_bench_opener(after, runner, seed)
        earlier = known.get("mock")
        cells = earlier.cases if earlier else ()
        yield (
            "mock",
            partial(prove_mock, after, bench, lanes=lanes, seed=seed, same=same, cells=cells),
        )
        if recorded:
            yield "recorded", partial(prove_recorded, after, recorded, runner)

    made = await _run_stages(after, stages(), lambda stage: None)
    again = {report.stage for report in made.reports}
    rest = (report for report in proof.reports if report.stage not in again)
    return Proof(made.bundle_digest, (*made.reports, *rest)) if made.passed else made


async def _run_stages(bundle: Bundle, stages: Stages, on_stage: OnStage) -> Proof:
    """The reports of the stages up to the first that failed; the later ones are not begun."""
    reports: list[StageReport] = []
    for stage, work in stages:
        on_stage(stage)
        reports.append(await work())
        on_stage(reports[-1])
        if not reports[-1].passed:
            break
    return Proof(bundle.compute_digest(), tuple(reports))


async def _run_judge(
    judge: Callable[P, StageReport], *args: P.args, **kwargs: P.kwargs
) -> StageReport:
    """Run a stage that is a plain function, beside the event loop."""
    return await run_beside(partial(judge, *args, **kwargs))


def _build_sealed_opener(bundle: Bundle, runner: Runner) -> OpenSession:
    """A function that opens sessions whose requests are all refused."""

    def opened() -> AbstractAsyncContextManager[Session]:
        return runner.open(bundle, Broker(Policy(()), Cassette(())))

    return opened


def build_bench_opener(bundle: Bundle, runner: Runner, seed: int = 0) -> OpenBench:
    """A function that opens benches for the mock stage: fresh sessions whose upstream is a mock of
    the bundle's API on a virtual clock. The bundle must have a spec.
    """

    @asynccontextmanager
    async def opened() -> AsyncIterator[MockBench]:
        assert bundle.spec is not None
        clock = VirtualClock()
        mock = MockApi(bundle.spec, clock, seed)
        broker = Broker(Policy(()), mock, caps=MOCK_CAPS, clock=clock)
        async with runner.open(bundle, broker) as session:
            yield MockBench(session, broker, mock)

    return opened


async def _run_mock(
    bundle: Bundle, bench: OpenBench, examples: Sequence[Example], lanes: int, seed: int
) -> StageReport:
    """The mock stage, with the cases of tools whose own code makes requests."""
    report = await prove_mock(bundle, bench, lanes=lanes, seed=seed)
    if bundle.spec is None or not find_programs(bundle):
        return report
    try:
        async with bench() as opened:
            cells = await prove_programs(bundle, examples, opened)
    except LoadFailed as error:
        finding = Finding("server.py", "", "load", str(error))
        return replace(report, verdict="failed", findings=(*report.findings, finding))
    failed = not report.passed or any(cell.verdict == "failed" for cell in cells)
    return replace(
        report,
        verdict="failed" if failed else "passed",
        cases=(*report.cases, *cells),
        coverage=report.coverage if report.cases else 1.0,
        note=report.note if report.cases else "",
    )


def find_live_obstacle(
    bundle: Bundle, live: Broker | None, probe: ProbeBudget | None, withheld: Set[str]
) -> str:
    """Why the live stage has nothing to ask; "" where it has."""
    if live is None:
        return "there is no upstream to try, or the credential is missing"
    if probe is not None and not probe.requests:
        return "asking the API was left out"
    if bundle.spec is None:
        return NO_API
    if not find_candidates(bundle, withheld):
        return NOTHING_FREE
    return ""


async def _run_live(
    bundle: Bundle,
    runner: Runner,
    live: Broker | None,
    probe: ProbeBudget | None,
    withheld: Set[str],
) -> StageReport:
    obstacle = find_live_obstacle(bundle, live, probe, withheld)
    if live is None or obstacle:
        return build_skipped_report(obstacle)
    meter = restrict_broker(live, bundle, probe, withheld)
    try:
        async with runner.open(bundle, live) as session:
            return await prove_live(bundle, session, meter, withheld)
    except (LoadFailed, SessionBroken) as error:
        return StageReport("live", "inconclusive", 0.0, coverage=0.0, note=str(error))
