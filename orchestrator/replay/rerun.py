"""Running one recorded call or proof again, and finding the first difference from its record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from orchestrator.gateway.engine import Engine
from orchestrator.gateway.record import build_broken_outcome, settle_call
from registry.calls.invocations import limit_invocation
from registry.calls.recordings import StoredRecording
from registry.database.canonical import to_canonical_json
from registry.models import Invocation
from sandbox.broker.cassette import ReplayBroker
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import StageReport
from sandbox.errors import Frozen, SandboxError
from sandbox.session.interface import Outcome
from sandbox.session.recording import CallLog, CallRecording
from sandbox.stages.prove import prove_bundle
from sandbox.wire import exchange as exchange_json

MAX_SHOWN = 300
NOTHING = "nothing"
_ABSENT = object()


@dataclass(frozen=True)
class ReplayDifference:
    """`where` is a JSON pointer (RFC 6901); `expected` and `got` are JSON texts, shortened, or
    words where it is no value that differs.
    """

    where: str
    expected: str
    got: str


def find_difference(expected: Any, got: Any, where: str = "") -> ReplayDifference | None:
    """The first place where two values differ, of an object's members in the order of their names.

    A number's kind is part of it: 1 and 1.0 differ.
    """
    if (
        expected is not _ABSENT
        and got is not _ABSENT
        and to_canonical_json(expected) == to_canonical_json(got)
    ):
        return None
    parts: Iterator[tuple[str, Any, Any]] = iter(())
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        names = sorted({*expected, *got})
        parts = ((_escape_pointer(n), expected.get(n, _ABSENT), got.get(n, _ABSENT)) for n in names)
    elif isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        pairs = zip_longest(expected, got, fillvalue=_ABSENT)
        parts = ((str(place), one, other) for place, (one, other) in enumerate(pairs))
    inner = (find_difference(one, other, f"{where}/{name}") for name, one, other in parts)
    found = next(filter(None, inner), None)
    return found or ReplayDifference(where, _render_value(expected), _render_value(got))


def _render_value(value: Any) -> str:
    if value is _ABSENT:
        return NOTHING
    text = to_canonical_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"


def _escape_pointer(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


NEEDS_NETWORK = "live"
NOT_AUDITED = ReplayDifference(
    "/recording", "what the audit says was recorded", "something else: the database was edited"
)


async def compare_proof(
    engine: Engine,
    bundle: Bundle,
    stored: Sequence[StageReport],
    examples: Sequence[Example],
    suite: str = "",
) -> ReplayDifference | None:
    """Run the stages that need no network again; the first cell that is not as it was."""
    had_cases = any(report.stage == "cases" for report in stored)
    proof = await prove_bundle(
        bundle,
        engine,
        examples=examples if had_cases else None,
        suite=suite,
        available=engine.modules,
    )
    had = {report.stage for report in stored}
    again = [report for report in proof.reports if report.stage in had]
    return find_difference(_build_matrix(stored), _build_matrix(again))


async def compare_call(
    engine: Engine, bundle: Bundle, invocation: Invocation, kept: StoredRecording
) -> ReplayDifference | None:
    """Run the call in a fresh sandbox; the first thing that is not as it was."""
    recording = kept.recording
    world = ReplayBroker(recording.exchanges)
    outcome = await _run_call(engine, bundle, invocation, recording, world)
    again = limit_invocation(
        settle_call(replace(invocation, arguments=recording.arguments), outcome, None)
    )
    differences = (
        find_difference(invocation.arguments, again.arguments, "/arguments"),
        _compare_requests(world),
        _compare_results(invocation.result, again.result),
        find_difference(_encode_failure(invocation), _encode_failure(again), "/failure"),
        None if kept.intact else NOT_AUDITED,
    )
    return next(filter(None, differences), None)


async def _run_call(
    engine: Engine,
    bundle: Bundle,
    invocation: Invocation,
    recording: CallRecording,
    world: ReplayBroker,
) -> Outcome:
    """Raises Frozen."""
    tape = CallLog(recording.inputs)
    try:
        async with engine.open(bundle, world) as session:
            return await session.call(invocation.tool, recording.arguments, tape=tape)
    except Frozen:
        raise
    except SandboxError as error:
        return build_broken_outcome(invocation.entry, invocation.tool, error, tape)


def _compare_requests(world: ReplayBroker) -> ReplayDifference | None:
    """The first request that is not the recorded one, or the first recorded one that is missing."""
    if world.surprises:
        place, request = world.surprises[0]
        asked = exchange_json.request_to_json(request)
        if place == len(world.exchanges):
            return ReplayDifference(
                f"/exchanges/{place}", NOTHING, f"{request.method} {request.url}"
            )
        recorded = exchange_json.request_to_json(world.exchanges[place].request)
        return find_difference(recorded, asked, f"/exchanges/{place}/request")
    if world.unused:
        missing = world.unused[0].request
        where = f"/exchanges/{world.answered}"
        return ReplayDifference(where, f"{missing.method} {missing.url}", NOTHING)
    return None


def _compare_results(expected: Any, got: Any) -> ReplayDifference | None:
    """What the tool said in structure goes before the text that says the same."""
    name = "structuredContent"
    if isinstance(expected, dict) and isinstance(got, dict) and name in expected and name in got:
        found = find_difference(expected[name], got[name], f"/result/{name}")
        if found:
            return found
    return find_difference(expected, got, "/result")


def _encode_failure(invocation: Invocation) -> dict[str, Any] | None:
    return vars(invocation.failure) if invocation.failure else None


def _build_matrix(reports: Iterable[StageReport]) -> dict[str, Any]:
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
