"""One call or proof run again on what was recorded, and compared with what it came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.difference import NOTHING, Difference, first_difference
from orchestrator.engines import Engine
from orchestrator.outcomes import broken, settled
from registry.invocations import as_stored
from registry.recordings import Kept
from registry.records import Invocation
from sandbox import exchange as exchange_json
from sandbox.bundle import Bundle
from sandbox.errors import Frozen, SandboxError
from sandbox.example import Example
from sandbox.prove import prove
from sandbox.recording import Recording, Tape
from sandbox.replay import Replay
from sandbox.report import StageReport
from sandbox.runner import Outcome

NEEDS_NETWORK = "live"
NOT_AUDITED = Difference(
    "/recording", "what the audit says was recorded", "something else: the database was edited"
)


async def proof_difference(
    engine: Engine,
    bundle: Bundle,
    stored: Sequence[StageReport],
    examples: Sequence[Example],
    suite: str = "",
) -> Difference | None:
    """Run the stages that need no network again; the first cell that is not as it was."""
    had_cases = any(report.stage == "cases" for report in stored)
    proof = await prove(
        bundle,
        engine,
        examples=examples if had_cases else None,
        suite=suite,
        available=engine.modules,
    )
    had = {report.stage for report in stored}
    again = [report for report in proof.reports if report.stage in had]
    return first_difference(_matrix(stored), _matrix(again))


async def call_difference(
    engine: Engine, bundle: Bundle, invocation: Invocation, kept: Kept
) -> Difference | None:
    """Run the call in a fresh sandbox; the first thing that is not as it was."""
    recording = kept.recording
    world = Replay(recording.exchanges)
    outcome = await _called(engine, bundle, invocation, recording, world)
    again = as_stored(settled(replace(invocation, arguments=recording.arguments), outcome, None))
    differences = (
        first_difference(invocation.arguments, again.arguments, "/arguments"),
        _request_difference(world),
        _result_difference(invocation.result, again.result),
        first_difference(_failure(invocation), _failure(again), "/failure"),
        None if kept.intact else NOT_AUDITED,
    )
    return next(filter(None, differences), None)


async def _called(
    engine: Engine, bundle: Bundle, invocation: Invocation, recording: Recording, world: Replay
) -> Outcome:
    """Raises Frozen."""
    tape = Tape(recording.inputs)
    try:
        async with engine.open(bundle, world) as session:
            return await session.call(invocation.tool, recording.arguments, tape=tape)
    except Frozen:
        raise
    except SandboxError as error:
        return broken(invocation.entry, invocation.tool, error, tape)


def _request_difference(world: Replay) -> Difference | None:
    """The first request that is not the recorded one, or the first recorded one that is missing."""
    if world.surprises:
        place, request = world.surprises[0]
        asked = exchange_json.request_to_json(request)
        if place == len(world.exchanges):
            return Difference(f"/exchanges/{place}", NOTHING, f"{request.method} {request.url}")
        recorded = exchange_json.request_to_json(world.exchanges[place].request)
        return first_difference(recorded, asked, f"/exchanges/{place}/request")
    if world.unused:
        missing = world.unused[0].request
        where = f"/exchanges/{world.answered}"
        return Difference(where, f"{missing.method} {missing.url}", NOTHING)
    return None


def _result_difference(expected: Any, got: Any) -> Difference | None:
    """What the tool said in structure goes before the text that says the same."""
    name = "structuredContent"
    if isinstance(expected, dict) and isinstance(got, dict) and name in expected and name in got:
        found = first_difference(expected[name], got[name], f"/result/{name}")
        if found:
            return found
    return first_difference(expected, got, "/result")


def _failure(invocation: Invocation) -> dict[str, Any] | None:
    return vars(invocation.failure) if invocation.failure else None


def _matrix(reports: Iterable[StageReport]) -> dict[str, Any]:
    """What the stages found, by stage, operation and case."""
    found: dict[str, Any] = {}
    for report in reports:
        if report.stage != NEEDS_NETWORK:
            cases: dict[str, dict[str, str]] = {}
            for case in report.cases:
                cases.setdefault(case.operation, {})[case.case] = case.verdict
            findings = [vars(finding) for finding in report.findings]
            found[report.stage] = {
                "verdict": report.verdict,
                "cases": cases,
                "findings": findings,
            }
    return found
