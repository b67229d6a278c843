"""No decision hangs on words: every sentence of a value is replaced, and all is decided alike.

What a message says is for people. A field that holds one stands in SENTENCES; where one is added
to a value that decisions are made of, and its name tells that it is a sentence, the last test
wants it there.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from forge.drafts.brief import EXAMPLE, Brief
from forge.drafts.diagnosis import Diagnosis, diagnose_proof
from forge.drafts.draft import Draft, parse_draft
from orchestrator.approvals.gate import GateQuestion, WriteFacts, judge_call
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.needs import allow_needs, engine_need, is_allowable, is_met, suite_need
from orchestrator.errors import ModelNotAsked
from orchestrator.forging.authors.choice import AuthorChoice, AuthorOptions, choose_author
from orchestrator.forging.drafts.checks import check_tests
from orchestrator.forging.drafts.compose import add_earlier_cases, compose_draft
from orchestrator.forging.drafts.proposal import Proposal
from orchestrator.forging.drafts.rounds import find_progress, is_admissible, select_shown
from orchestrator.forging.order import ForgeOrder, ForgeStep
from orchestrator.settings import load_settings
from registry import needs
from registry.health.causes import Cause, find_cause
from registry.jobs.pending import PendingForge, pending_json, read_pending
from registry.models import CallFailure, DraftRow, Job
from registry.needs import (
    AnswerNeed,
    BudgetLine,
    BudgetNeed,
    CredentialNeed,
    DecisionNeed,
    EngineNeed,
    FileNeed,
    HostNeed,
    Need,
    OfferedService,
    OrderNeed,
    PackageNeed,
    PermissionNeed,
    ServiceNeed,
    SourceNeed,
    SuccessionNeed,
    TestsNeed,
    UnfreezeNeed,
    need_json,
)
from registry.store import Store
from registry.trust import Standing
from sandbox.bundle.report import (
    CaseCode,
    CaseResult,
    Finding,
    Proof,
    ReportCode,
    StageReport,
    finding_at,
)
from sandbox.errors import BaseImageMissing, ComponentMissing, EngineUnavailable
from sandbox.schemas.validator import SchemaViolation
from sandbox.session.interface import Difference, Failure
from sandbox.stages.trials import NoOutcome
from tests.granted import consents, person
from tests.registry.samples import invocation

SENTENCES: Mapping[type, tuple[str, ...]] = {
    SchemaViolation: ("reason",),
    CaseResult: ("evidence",),
    Cause: ("reason",),
    AuthorChoice: ("told",),
    CredentialNeed: ("question",),
    HostNeed: ("instead",),
    Difference: ("reason",),
    Diagnosis: ("reason",),
    EngineNeed: ("reason",),
    CallFailure: ("message",),
    Failure: ("message",),
    Finding: ("reason",),
    Job: ("message",),
    NoOutcome: ("reason",),
    PendingForge: ("brief", "diagnosis"),
    Standing: ("last_failure_reason",),
    StageReport: ("note",),
    ForgeStep: ("message",),
}
NAMES = ("detail", "evidence", "message", "note", "reason", "sentence", "told")
"""Names of fields that hold sentences."""
OTHER_WORDS = (
    "",
    "Ganz andere Worte.",
    # What was matched once, and what is written elsewhere: no sentence is another's code.
    "proves nothing: read by case 1 at line 4, redirected to an undeclared target, the credential "
    "is not set, its directory is gone (quarantined), it was revoked, nobody signed it",
)


def reword(value: Any, words: str) -> Any:
    """The value with other words in each of its sentences, and in those of the values in it."""
    if isinstance(value, tuple | list):
        return type(value)(reword(each, words) for each in value)
    if isinstance(value, Mapping):
        return {key: reword(each, words) for key, each in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    inner = {f.name: reword(getattr(value, f.name), words) for f in fields(value) if f.init}
    return replace(value, **(inner | dict.fromkeys(SENTENCES.get(type(value), ()), words)))


def rewordings(value: Any) -> Iterator[Any]:
    return (reword(value, words) for words in OTHER_WORDS)


def report(
    stage: Any, *cases: CaseResult, findings: Iterable[Finding] = (), code: ReportCode = ""
) -> StageReport:
    return StageReport(stage, "failed", 1.0, cases, tuple(findings), note="it failed", code=code)


def cell(case: str, code: CaseCode = "", example: int = 0) -> CaseResult:
    return CaseResult("from_roman", case, "failed", "it is 3", code=code, example=example)


OTHER_TESTS = """from server import from_roman


def test_normal():
    assert from_roman(numeral="V") == {"number": 5}
"""
RESPECIFIED = {"tests": OTHER_TESTS, "why": "other tests"}
RECODED = {"code": "x", "cases": [{"tool": "from_roman", "arguments": {}, "result": 1}]}


def row(*reports: StageReport, number: int = 1, **changes: Any) -> DraftRow:
    digest = f"d{number}"
    content = {**EXAMPLE, **changes}
    return DraftRow("j1", number, digest, 1.0, content, "failed", reports, diagnosed(*reports))


def diagnosed(*reports: StageReport) -> tuple[Mapping[str, Any], ...]:
    return tuple(map(vars, diagnose_proof(Proof("d", reports), "one\ntwo")))


SUITE_FINDING = finding_at("tests/test_server.py", 4, "no-assertion", "asserts nothing")
ROWS = (
    row(report("suite", cell("test_normal", "proves_nothing"))),
    row(report("suite", cell("test_normal"))),
    row(report("suite", findings=[SUITE_FINDING])),
    row(report("cases", cell("case 2", "proves_nothing", 2))),
    row(report("cases", cell("case 2", example=2), cell("case 3", example=3), cell("extreme: a"))),
    row(report("static", findings=[finding_at("server.py", 1, "imports", "may not import os")])),
    row(report("acceptance", cell("claim 1"), code="read_independently")),
    row(report("acceptance", cell("claim 1"))),
)


def decided_of(before: DraftRow) -> Any:
    """What the next draft becomes after one, and what is shown and allowed of that one."""
    found = [Diagnosis(**each) for each in before.diagnosis]
    content, draft = compose_draft(RESPECIFIED, None, (before,))
    problems = () if isinstance(draft, Draft) else draft
    return (
        content,
        [problem.where for problem in problems],
        add_earlier_cases(RECODED, before)["cases"],
        [
            (each.stage, each.where, each.case, each.example, each.excerpt)
            for each in select_shown(found)
        ],
        is_admissible([before]),
        find_progress([before]),
    )


@pytest.mark.parametrize("before", ROWS)
def test_what_the_stages_say_of_a_draft_decides_by_codes(before: DraftRow) -> None:
    wanted = decided_of(before)
    for words in OTHER_WORDS:
        found = (reword(Diagnosis(**each), words) for each in before.diagnosis)
        other = replace(reword(before, words), diagnosis=tuple(map(vars, found)))
        assert decided_of(other) == wanted


def test_these_drafts_are_not_all_decided_alike() -> None:
    seen = [json.dumps(decided_of(each), default=str) for each in ROWS]
    assert len(set(seen)) >= 6


def binds(given: Grants, *rows: DraftRow) -> bool:
    """Whether code that passes other tests than the rows' has to be allowed by a person."""
    last = row(number=9, tests=OTHER_TESTS)
    draft = parse_draft(last.content, earlier=OTHER_TESTS)
    assert isinstance(draft, Draft), draft
    job = Job("j1", "forge", {}, created=1.0, updated=1.0)
    proposal = Proposal(
        job, ForgeOrder(), None, Brief("roman", "roman"), (*rows, last), draft, lambda _: None
    )
    try:
        check_tests(given, proposal)
    except ModelNotAsked as why:
        return isinstance(why.needs, TestsNeed)
    return False


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'registry.db'}", "test") as opened:
        yield opened


@pytest.fixture
def given(store: Store, tmp_path: Path) -> Grants:
    settings = load_settings({"TOOLWRIGHT_HOME": str(tmp_path / "home")})
    person(settings.pin)
    return consents(settings, store)


PASSED = replace(report("suite", cell("test_normal")), verdict="passed")


@pytest.mark.parametrize(
    ("rows", "bound"),
    [
        ((row(PASSED),), True),
        ((row(report("suite", cell("test_normal", "proves_nothing"))),), False),
        ((row(report("suite", findings=[SUITE_FINDING])),), False),
        ((row(PASSED, report("acceptance", code="read_independently")),), False),
        ((row(PASSED, report("acceptance")),), True),
    ],
)
def test_which_tests_bind_is_decided_by_codes(
    given: Grants, rows: tuple[DraftRow, ...], bound: bool
) -> None:
    assert binds(given, *rows) == bound
    for others in rewordings(rows):
        assert binds(given, *others) == bound


NEEDS: tuple[Need, ...] = (
    HostNeed("api.example:443"),
    HostNeed("api.example:443", "the server that was asked may be meant"),
    FileNeed(str(Path(__file__).resolve())),
    PackageNeed(("a",), ("a==1",)),
    BudgetNeed(BudgetLine("job", "tokens", 2.0, 1.0), 0),
    PermissionNeed("lengths", ("clock", "fs:/my data:ro")),
    suite_need(("test_a",), "def test_a(): ..."),
    SuccessionNeed("bank", 1, ("made from b.json, and so far from a.json",), "0" * 64),
    SourceNeed("https://dns.example/", ("dns",), "0" * 64),
    ServiceNeed(
        "1" * 64,
        (
            OfferedService(
                "directory:a.example", "A", "a.example", "a.example:443", hosts=("a.example:443",)
            ),
        ),
    ),
    OrderNeed((HostNeed("other.example:443"), PackageNeed(("b",), ("b==2",)))),
    CredentialNeed("https://api.example/", "It asks for a key."),
    engine_need(EngineUnavailable("no socket")),
    engine_need(BaseImageMissing("base")),
    engine_need(ComponentMissing("none")),
    UnfreezeNeed(),
    AnswerNeed("s1.confirm.0", "Is this call meant?", {"type": "object"}),
    DecisionNeed("0" * 16),
)


@pytest.mark.parametrize("need", NEEDS)
def test_what_a_job_needs_is_allowed_and_met_by_its_fields(
    store: Store, given: Grants, tmp_path: Path, need: Need
) -> None:
    signer = person(load_settings({"TOOLWRIGHT_HOME": str(tmp_path / "home")}).pin)
    job = Job("j1", "forge", {}, created=1.0, updated=1.0, state="waiting", needs=need)
    for other in rewordings(job):
        assert is_allowable(other.needs) == is_allowable(need)
        assert is_met(given, other) == is_met(given, job)
    if is_allowable(need):
        allow_needs(store.grants, given, reword(job, "other words"), "ann", signer, ())
        assert all(is_met(given, other) for other in (job, *rewordings(job)))


@pytest.mark.parametrize("need", NEEDS)
def test_no_sentence_is_stored_that_is_made_of_a_needs_fields(need: Need) -> None:
    assert not {"what", "how"} & need_json(need).keys()


@pytest.mark.parametrize("waits_for", ["draft", "document", ""])
def test_what_a_job_waits_for_is_not_read_in_its_brief(waits_for: Any) -> None:
    pending = PendingForge(waits_for, "roman", near=(), brief="Write it.", diagnosis="[suite] no")
    for other in rewordings(pending):
        read = read_pending(json.loads(json.dumps(pending_json(other))))
        assert read is not None
        assert (read.waits_for, read.name, read.near) == (waits_for, "roman", ())


def test_who_writes_is_decided_without_the_words_for_the_endpoint() -> None:
    line = BudgetLine("day", "forges", 4, 3)
    for able in (
        AuthorOptions("m at host"),
        AuthorOptions("m", HostNeed("h:1")),
        AuthorOptions("m", spent=line),
        AuthorOptions(),
    ):
        wanted = choose_author("", able, "j1")
        named = able.endpoint and "other words: client, none, sampling"
        choice = choose_author("", replace(able, endpoint=named), "j1")
        assert (choice.writer, choice.needs) == (wanted.writer, wanted.needs)


KINDS = (
    *(("http", status) for status in (400, 401, 404, 405, 408, 410, 429, 500)),
    *((kind, None) for kind in ("arguments", "tool", "credential", "rate_limited", "schema")),
    *((kind, None) for kind in ("malformed", "drift", "timeout", "unreachable", "too_large")),
    *((kind, None) for kind in ("bug", "frozen", "cancelled", "engine", "captured")),
)


@pytest.mark.parametrize(("kind", "status"), KINDS)
def test_why_a_call_failed_is_decided_by_codes(kind: str, status: int | None) -> None:
    def judged(message: str) -> Any:
        request = {"method": "GET", "url": "https://api.example:8443/zones/7"}
        exchange = {"request": request, "refusal": kind, "reason": message}
        failure = CallFailure(kind, message, status)
        found = find_cause(invocation("c1", failure=failure, exchanges=(exchange,)))
        assert found is not None
        return found.kind, found.repair, found.where, found.host

    assert {judged(words) for words in OTHER_WORDS} == {judged("it broke")}


@pytest.mark.parametrize("state", ["active", "experimental", "quarantined"])
@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("level", ["probationary", "trusted", "degraded"])
def test_the_gate_rules_alike_whatever_a_failure_was_told_as(
    state: str, access: Any, level: Any
) -> None:
    record = Standing(level, 1, 60, 60, 60, 60, 1.0, 1.0, 1.0, 60, 60, 1.0, None, "it broke")
    question = GateQuestion(
        state, access, record, WriteFacts(record, vouched=60, erases=False), False
    )
    wanted = type(judge_call(question))
    assert {type(judge_call(other)) for other in rewordings(question)} == {wanted}


MODULES = (
    "forge.drafts.diagnosis",
    "orchestrator.forging.authors.choice",
    "orchestrator.forging.order",
    "registry.health.causes",
    "registry.jobs.pending",
    "registry.needs",
    "sandbox.bundle.report",
    "sandbox.schemas.validator",
    "sandbox.session.interface",
    "sandbox.stages.trials",
)


@pytest.mark.parametrize("name", MODULES)
def test_every_sentence_of_these_values_is_reworded(name: str) -> None:
    module = importlib.import_module(name)
    values = [each for each in vars(module).values() if isinstance(each, type)]
    own = [each for each in values if each.__module__ == name and is_dataclass(each)]
    assert own
    for kind in own:
        named = {field.name for field in fields(kind)} & {*NAMES}
        assert named <= {*SENTENCES.get(kind, ())}, kind


def test_every_kind_of_need_is_tried() -> None:
    assert {type(need) for need in NEEDS} == set(needs.Need.__args__)
