"""The stages over whole bundles: good ones pass, and each bad one fails where it should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.broker.broker import Broker
from sandbox.bundle.apispec import MediaType, Operation, Response
from sandbox.bundle.model import Bundle, read_bundle
from sandbox.bundle.report import Proof, StageReport
from sandbox.clock import VirtualClock
from sandbox.engines.docker.engine import Client, ContainerLabels, DockerRunner
from sandbox.errors import (
    CallTimedOut,
    Frozen,
    LoadFailed,
    SessionBroken,
    UpstreamUnreachable,
)
from sandbox.session.interface import Failure, Outcome, Runner, Session
from sandbox.stages.live import find_candidates, prove_live
from sandbox.stages.mock.answers import AnswerBuilder
from sandbox.stages.mock.api import MockApi
from sandbox.stages.mock.cases import SCHEMAS, build_subjects
from sandbox.stages.mock.faults import FAULTS, OF_DECISIONS
from sandbox.stages.mock.stage import MAX_BREAKS, MOCK_CAPS, MockBench, OpenBench, prove_mock
from sandbox.stages.prove import prove_bundle
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse
from sandbox.wire.policy import Policy, build_read_policy
from tests.sandbox.local import LocalRunner

BUNDLES = Path(__file__).parents[2] / "fixtures" / "bad_bundles"
GOOD = read_bundle(BUNDLES / "good")
BAD: Mapping[str, frozenset[str]] = {
    "swallowed_500": frozenset({"error:404", "401", "404", "429", "500"}),
    "wrong_path": frozenset({"ok:200:min", "ok:200:full", "error:404", "empty", "oversized"}),
    "unvalidated_answer": frozenset({"wrong_type"}),
    "lost_field": frozenset({"ok:200:full"}),
    "hard_coded_answer": frozenset({"ok:200:min", "ok:200:full", "500", "empty", "slow"}),
    "hidden_write": frozenset({"ok:200:min", "ok:200:full", "500", "empty", "slow"}),
}
PLAIN_FAULTS = tuple(name for name in FAULTS if name not in OF_DECISIONS)
EXACT = ("swallowed_500", "unvalidated_answer")
UNLIKE = ("null:*", "shape", "mixed")


def proved(bundle: Bundle, runner: Runner, **more: Any) -> Proof:
    return asyncio.run(prove_bundle(bundle, runner, **more))


def check_bad(name: str, proof: Proof) -> None:
    static, mock = proof.reports
    assert static.verdict == "passed"
    assert mock.verdict == "failed"
    assert {cell.operation for cell in mock.list_failures()} == {"getNote"}
    failed = {cell.case for cell in mock.list_failures() if not cell.case.startswith("more:")}
    assert failed == BAD[name] if name in EXACT else failed >= BAD[name]


def check_good(proof: Proof) -> None:
    assert [(report.stage, report.verdict) for report in proof.reports] == [
        ("static", "passed"),
        ("mock", "passed"),
        ("live", "skipped"),
    ]
    assert proof.passed
    assert proof.bundle_digest == GOOD.compute_digest()


def test_a_good_bundle_passes_every_cell_of_the_matrix() -> None:
    proof = proved(GOOD, LocalRunner())
    check_good(proof)
    mock = proof.reports[1]
    cells = {(cell.operation, cell.case) for cell in mock.cases}
    assert {case for operation, case in cells if operation == "getNote"} == {
        "ok:200:min",
        "ok:200:full",
        "error:404",
        *SCHEMAS,
        *PLAIN_FAULTS,
        *UNLIKE,
    }
    assert len(mock.cases) == 3 * (5 + len(PLAIN_FAULTS) + len(UNLIKE))
    assert mock.coverage == 1.0
    assert all(cell.evidence for cell in mock.cases)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_bundle_fails_at_the_mock_stage(name: str) -> None:
    check_bad(name, proved(read_bundle(BUNDLES / name), LocalRunner()))


@pytest.mark.docker
def test_bundles_are_proved_in_real_containers(docker_engine: tuple[Client, str]) -> None:
    async def run() -> dict[str, Proof]:
        async with DockerRunner(*docker_engine, ContainerLabels("test", "stages")) as runner:
            names = ("good", *BAD)
            return {name: await prove_bundle(read_bundle(BUNDLES / name), runner) for name in names}

    proofs = asyncio.run(run())
    check_good(proofs.pop("good"))
    for name, proof in proofs.items():
        check_bad(name, proof)


def test_the_429_case_lets_every_attempt_of_the_broker_happen() -> None:
    mock = proved(GOOD, LocalRunner()).reports[1]
    told = {c.operation: c.evidence for c in mock.cases if c.case == "429"}
    assert f"429 after {MOCK_CAPS.attempts} attempts" in told["getNote"]
    assert "attempts" not in told["addNote"]


def test_nothing_follows_a_failed_stage() -> None:
    seen: list[str] = []

    def on_stage(stage: StageReport | str) -> None:
        seen.append(stage if isinstance(stage, str) else f"{stage.stage} {stage.verdict}")

    broken = replace(GOOD, source_code=GOOD.source_code + "\nimport os\n")
    proof = proved(broken, LocalRunner(), on_stage=on_stage)
    assert seen == ["static", "static failed"]
    assert not proof.passed
    seen.clear()
    proved(read_bundle(BUNDLES / "lost_field"), LocalRunner(), on_stage=on_stage)
    assert seen == ["static", "static passed", "mock", "mock failed"]


def test_code_that_does_not_load_fails_the_mock_stage() -> None:
    broken = replace(GOOD, source_code=GOOD.source_code + "\nX = [1][2:3:0]\n")
    static, mock = proved(broken, LocalRunner()).reports
    assert static.verdict == "passed"
    assert mock.verdict == "failed"
    assert [finding.rule for finding in mock.findings] == ["load"]


def test_an_operation_without_a_tool_fails() -> None:
    proof = proved(replace(GOOD, source_code=_without_add(), tools=GOOD.tools[:2]), LocalRunner())
    assert [(cell.operation, cell.case) for cell in proof.reports[1].list_failures()] == [
        ("addNote", "tool")
    ]


def _without_add() -> str:
    return GOOD.source_code[: GOOD.source_code.rindex("@tool")]


def test_a_bundle_without_an_api_skips_the_mock_stage() -> None:
    pure = replace(GOOD, spec=None, tools=(), source_code='"""Nothing."""\n')
    static, mock, live = proved(pure, LocalRunner()).reports
    assert (static.verdict, mock.verdict, live.verdict) == ("passed", "skipped", "skipped")
    assert mock.note


class Scripted:
    """A session that does what a function says; it stands for a server that we do not trust."""

    def __init__(self, act: Callable[[str], Outcome]) -> None:
        self._act = act

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        return ()

    async def call(
        self, tool: str, arguments: Mapping[str, Any], seconds: float | None = None
    ) -> Outcome:
        return self._act(tool)


def scripted(act: Callable[[str], Outcome]) -> tuple[OpenBench, list[Session]]:
    opened: list[Session] = []

    @asynccontextmanager
    async def bench() -> AsyncIterator[MockBench]:
        assert GOOD.spec is not None
        mock = MockApi(GOOD.spec, VirtualClock())
        session = Scripted(act)
        opened.append(session)
        yield MockBench(session, Broker(Policy(()), mock), mock)

    return bench, opened


@pytest.mark.parametrize("error", [SessionBroken("gone"), CallTimedOut("t", 60)])
def test_sessions_that_break_are_replaced_a_few_times_and_every_cell_fails(
    error: Exception,
) -> None:
    def act(tool: str) -> Outcome:
        raise error

    bench, opened = scripted(act)
    report = asyncio.run(prove_mock(GOOD, bench, lanes=1))
    assert len(opened) == MAX_BREAKS + 1
    assert report.verdict == "failed"
    assert len(report.cases) == 3 * (5 + len(PLAIN_FAULTS) + len(UNLIKE))
    assert {cell.case for cell in report.cases if cell.verdict != "failed"} <= set(SCHEMAS)


def test_an_outcome_that_claims_what_no_exchange_shows_fails() -> None:
    def act(tool: str) -> Outcome:
        return Outcome(tool, {"isError": True, "content": []}, Failure("http", "", 404), ())

    report = asyncio.run(prove_mock(GOOD, scripted(act)[0]))
    called = [cell for cell in report.cases if cell.case not in SCHEMAS]
    assert {cell.verdict for cell in called} == {"failed"}


def test_a_freeze_ends_the_stage() -> None:
    def act(tool: str) -> Outcome:
        raise Frozen

    with pytest.raises(Frozen):
        asyncio.run(prove_mock(GOOD, scripted(act)[0]))


def test_a_bundle_that_is_refused_fails_with_the_reason() -> None:
    @asynccontextmanager
    async def bench() -> AsyncIterator[MockBench]:
        raise LoadFailed("server.py line 3: no")
        yield

    report = asyncio.run(prove_mock(GOOD, bench))
    assert report.verdict == "failed"
    assert report.findings[0].reason == "server.py line 3: no"


def test_cells_that_cannot_be_produced_say_why() -> None:
    assert GOOD.spec is not None
    tool = replace(GOOD.tools[0], operation="head", input_schema={"type": "object"})
    head = Operation("head", "HEAD", "/notes", "https://notes.example/v1", "read")
    text = Operation(
        "text",
        "GET",
        "/notes",
        "https://notes.example/v1",
        "read",
        responses=(Response("200", content=(MediaType("text/csv"),)),),
    )
    spec = replace(GOOD.spec, operations=(head, text))
    tools = (tool, replace(tool, name="text", operation="text"))
    bare, csv = build_subjects(spec, tools, MOCK_CAPS)
    skipped = {case.name: case.skipped for case in bare.iterate_cases() if case.skipped}
    assert skipped.keys() == {"malformed", "lines", "wrong_type", "oversized"}
    assert "HEAD" in skipped["malformed"]
    skipped = {case.name: case.skipped for case in csv.iterate_cases() if case.skipped}
    assert skipped.keys() == {"wrong_type"}
    for subject in (bare, csv):
        assert tuple(case.name for case in subject.iterate_cases()) == subject.list_cells()


def test_arguments_that_cannot_be_made_skip_the_operation_and_the_report_says_so() -> None:
    never = {"type": "object", "required": ["x"], "properties": {"x": False}}
    bundle = replace(GOOD, tools=(*GOOD.tools[:2], replace(GOOD.tools[2], input_schema=never)))
    assert bundle.spec is not None
    *_, subject = build_subjects(bundle.spec, bundle.tools, MOCK_CAPS)
    assert all(case.skipped for case in subject.iterate_cases() if case.name not in SCHEMAS)


class Real:
    """An upstream in place of the network."""

    def __init__(self, answer: Callable[[WireRequest], WireResponse]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def send(self, request: WireRequest) -> WireResponse:
        self.asked.append(f"{request.method} {request.url}")
        return self.answer(request)


def live_report(answer: Callable[[WireRequest], WireResponse]) -> tuple[StageReport, Real]:
    upstream = Real(answer)
    proof = proved(GOOD, LocalRunner(), live=Broker(Policy(()), upstream))
    return proof.reports[-1], upstream


def documented(request: WireRequest) -> WireResponse:
    assert GOOD.spec is not None
    answers = AnswerBuilder(GOOD.spec)
    return answers.build_answer(
        answers.list_successes(GOOD.spec.get_operation("listNotes"))[0], "full"
    )


def test_a_documented_success_passes_the_live_stage() -> None:
    report, upstream = live_report(documented)
    assert report.verdict == "passed"
    assert upstream.asked == ["GET https://notes.example/v1/notes"]
    assert report.cases[0].evidence.startswith("GET https://notes.example/v1/notes: 200")


@pytest.mark.parametrize(
    "answer",
    [
        WireResponse(401),
        WireResponse(500, (("content-type", "application/json"),), b"{}"),
        WireResponse(200, (("content-type", "application/json"),), b'[{"id": "no number"}]'),
        WireResponse(200, (("content-type", "text/html"),), b"<html>"),
    ],
)
def test_anything_else_is_inconclusive_and_no_failure(answer: WireResponse) -> None:
    report, _ = live_report(lambda request: answer)
    assert report.verdict == "inconclusive"
    assert report.passed
    assert report.note


def test_an_api_out_of_reach_is_inconclusive() -> None:
    def unreachable(request: WireRequest) -> WireResponse:
        raise UpstreamUnreachable("connection refused")

    report, _ = live_report(unreachable)
    assert report.verdict == "inconclusive"
    assert "connection refused" in report.cases[0].evidence


def test_only_safe_reads_without_required_arguments_are_tried() -> None:
    assert [tool.name for tool, _ in find_candidates(GOOD)] == ["list_notes"]
    first = GOOD.tools[0]
    for changes in ({"access": "write"}, {"input_schema": {"type": "object", "required": ["x"]}}):
        assert find_candidates(replace(GOOD, tools=(replace(first, **changes),))) == ()


def _apis(count: int) -> Bundle:
    """A bundle with one argument-less read per number; the first documents no JSON."""
    assert GOOD.spec is not None
    ok = Response("200", content=(MediaType("application/json", {"type": "object"}),))
    operations = tuple(
        Operation(
            f"o{n}",
            "GET",
            "/x" + "/y" * (count - n),
            "https://notes.example/v1",
            "read",
            responses=(ok,) if n else (),
        )
        for n in range(count)
    )
    tools = tuple(
        replace(GOOD.tools[0], name=o.id, operation=o.id, input_schema={"type": "object"})
        for o in operations
    )
    return replace(GOOD, tools=tools, spec=replace(GOOD.spec, operations=operations))


def test_the_likeliest_three_are_tried_until_one_passes() -> None:
    bundle = _apis(5)
    chosen = [tool.name for tool, _ in find_candidates(bundle)]
    assert chosen == ["o4", "o3", "o2"]

    def act(tool: str) -> Outcome:
        request = WireRequest("GET", "https://notes.example/v1/x")
        headers = (("content-type", "application/json"),)
        status = 200 if tool == "o2" else 404
        exchange = Exchange(request, WireResponse(status, headers, b"{}"))
        failure = None if status == 200 else Failure("http", "", status)
        return Outcome(tool, {}, failure, (exchange,))

    report = asyncio.run(prove_live(bundle, Scripted(act)))
    assert [(c.operation, c.verdict) for c in report.cases] == [
        ("o4", "inconclusive"),
        ("o3", "inconclusive"),
        ("o2", "passed"),
    ]
    assert report.verdict == "passed"


def test_the_live_broker_gets_the_read_policy() -> None:
    broker = Broker(Policy(()), Real(documented))
    proved(GOOD, LocalRunner(), live=broker)
    assert broker.policy == build_read_policy(GOOD)
