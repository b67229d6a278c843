"""What a draft leaves out is what the drafts before it said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from forge.drafts.brief import EXAMPLE, EXAMPLE_CODE, EXAMPLE_TESTS
from forge.drafts.draft import Draft
from orchestrator.forging.drafts.compose import EARLIER, add_earlier_cases, compose_draft
from registry.models import DraftRow
from sandbox.bundle.report import CaseCode, CaseResult, StageReport, finding_at

SPECIFICATION = {key: EXAMPLE[key] for key in ("tools", "cases", "tests")}
MORE_TESTS = """from server import from_roman


def test_more():
    assert from_roman(numeral="V") == {"number": 5}
"""
CASES = {"cases": EXAMPLE["cases"][:2]}


def kept(*given: Mapping[str, Any]) -> tuple[dict[str, Any], Draft]:
    """The last of these drafts, each handed in after the ones before it failed."""
    rows: list[DraftRow] = []
    for number, each in enumerate(given, start=1):
        content, draft = compose_draft(each, None, rows)
        assert isinstance(draft, Draft), draft
        reports = (StageReport("suite", "failed", 0.0),)
        rows.append(DraftRow("j", number, draft.compute_digest(), 1.0, content, "failed", reports))
    assert isinstance(draft, Draft)
    return content, draft


def refused(given: Mapping[str, Any], *rows: DraftRow) -> list[tuple[str, str]]:
    """Where and why a draft is none, after these."""
    _, problems = compose_draft(given, None, rows)
    assert not isinstance(problems, Draft)
    return [(problem.where, problem.reason) for problem in problems]


TO_ROMAN = {**EXAMPLE["tools"][0], "name": "to_roman"}
TWO_CODE = EXAMPLE_CODE + "\n\n@tool\ndef to_roman(numeral):\n    return {'number': 1}\n"
TWO = {
    "code": TWO_CODE,
    "tools": [*EXAMPLE["tools"], TO_ROMAN],
    "cases": [*EXAMPLE["cases"], {**EXAMPLE["cases"][0], "tool": "to_roman"}],
    "tests": EXAMPLE_TESTS + MORE_TESTS.replace("from_roman", "to_roman"),
    "why": "first",
}
ONE = {"code": EXAMPLE_CODE, "tools": EXAMPLE["tools"]}


def row(content: Mapping[str, Any], verdict: Any = "failed", *cells: CaseResult) -> DraftRow:
    report = StageReport("suite", "failed", 0.0, cells)
    return DraftRow("j", 1, "d", 1.0, content, verdict, reports=(report,))


def test_a_tool_that_is_taken_out_in_so_many_words_takes_its_cases_with_it() -> None:
    content, draft = kept(TWO, {**ONE, "why": "to_roman is not asked for; drop test_more"})
    assert {tool.name for tool in draft.tools} == {"from_roman"}
    assert {case["tool"] for case in content["cases"]} == {"from_roman"}
    assert len(content["cases"]) == len(EXAMPLE["cases"])
    assert "to_roman" not in draft.tests


def test_a_tool_is_not_lost_without_a_word_nor_are_its_tests() -> None:
    ((where, reason),) = refused({**ONE, "why": "better"}, row(TWO))
    assert where == "/cases/3/tool"
    assert "name it in `why`" in reason
    told = refused({**ONE, "why": "to_roman is not asked for"}, row(TWO))
    assert told == [
        ("/tests", "test_more is about a tool that is taken out: say `drop test_more` in `why`")
    ]
    own = {**ONE, "cases": TWO["cases"], "why": "to_roman is out, drop test_more"}
    assert [where for where, _ in refused(own, row(TWO))] == ["/cases/3/tool"]


def test_a_test_that_was_said_to_prove_nothing_is_changed_without_naming_it() -> None:
    weak = MORE_TESTS.replace("assert from_roman", "assert 1 or from_roman")
    before = {**SPECIFICATION, "tests": weak}
    given = {**SPECIFICATION, "tests": MORE_TESTS, "why": "tests that say something"}
    cell = CaseResult("tests", "test_more", "failed", "it passes where …", code="proves_nothing")
    blamed = row(before, "failed", cell)
    content, draft = compose_draft(given, None, (blamed,))
    assert isinstance(draft, Draft), draft
    assert content["tests"] == MORE_TESTS
    finding = finding_at("tests/test_server.py", 4, "no-assertion", "asserts nothing")
    unfit = StageReport("suite", "failed", 0.0, findings=(finding,))
    _, draft = compose_draft(given, None, (replace(blamed, reports=(unfit,)),))
    assert isinstance(draft, Draft), draft
    # A test's own message is its author's: it frees no test, whatever it says.
    said = CaseResult("tests", "test_more", "failed", "AssertionError: proves nothing")
    for other in (row(before), row(before, "failed", said)):
        assert [where for where, _ in refused(given, other)] == ["/tests"]


def test_what_the_repair_of_a_specification_leaves_out_stays() -> None:
    before = row(SPECIFICATION)
    for part in ("tools", "cases", "tests"):
        content, draft = compose_draft(
            {part: SPECIFICATION[part], "why": "mended"}, None, (before,)
        )
        assert isinstance(draft, Draft), draft
        assert draft.is_specification
        assert {key: content[key] for key in SPECIFICATION} == SPECIFICATION
    unread = DraftRow("j", 1, "d", 1.0, {**SPECIFICATION, "cases": 7}, "failed")
    _, draft = compose_draft({"cases": SPECIFICATION["cases"], "why": "a list"}, None, (unread,))
    assert isinstance(draft, Draft)
    assert draft.tests == EXAMPLE_TESTS


def test_a_specification_that_holds_is_followed_by_code() -> None:
    assert refused({"cases": EXAMPLE["cases"]}, row(SPECIFICATION, "passed")) == [
        ("/code", "is missing")
    ]


def test_code_that_is_left_out_stays() -> None:
    tests = {"tests": MORE_TESTS, **CASES}
    for later in ((CASES,), (tests,), (tests, {"cases": EXAMPLE["cases"]})):
        _, draft = kept(SPECIFICATION, {"code": EXAMPLE_CODE}, *later)
        assert draft.source_code == EXAMPLE_CODE
        assert not draft.is_specification


def test_tests_without_code_are_a_specification_while_there_is_none() -> None:
    _, draft = kept(SPECIFICATION, {"tests": MORE_TESTS})
    assert draft.is_specification


def test_a_new_tool_without_code_is_a_specification_again() -> None:
    tools = [*EXAMPLE["tools"], {**EXAMPLE["tools"][0], "name": "to_roman"}]
    more = MORE_TESTS.replace("from_roman", "to_roman")
    _, draft = kept(SPECIFICATION, {"code": EXAMPLE_CODE}, {"tools": tools, "tests": more})
    assert draft.is_specification


def test_the_tests_that_were_not_handed_in_are_known() -> None:
    content, draft = kept(SPECIFICATION, {"code": EXAMPLE_CODE, "tests": MORE_TESTS})
    assert content[EARLIER] == ["test_normal", "test_boundary_the_longest", "test_error_no_numeral"]
    assert "def test_more" in draft.tests
    content, _ = kept({**EXAMPLE, "tests": EXAMPLE_TESTS})
    assert content[EARLIER] == []


def sent_back(evidence: str, code: CaseCode = "") -> DraftRow:
    """A draft whose second case of a tool was sent back for this."""
    cell = CaseResult("from_roman", "case 2", "failed", evidence, code=code, example=2)
    return DraftRow(
        "j", 1, "d", 1.0, EXAMPLE, "failed", (StageReport("cases", "failed", 0.0, (cell,)),)
    )


ANOTHER = {"tool": "from_roman", "arguments": {"numeral": "V"}, "result": {"number": 5}}


def test_a_case_that_was_sent_back_because_it_proves_nothing_goes_where_others_come() -> None:
    given = {"code": "x", "cases": [ANOTHER]}
    first, _, third = EXAMPLE["cases"]
    joined = add_earlier_cases(given, sent_back("an empty result satisfies it", "proves_nothing"))
    assert joined["cases"] == [first, third, ANOTHER]


def test_a_case_that_the_code_only_fails_stays() -> None:
    given = {"code": "x", "cases": [ANOTHER]}
    for evidence in ("the result is another", "the call failed: it proves nothing"):
        joined = add_earlier_cases(given, sent_back(evidence))
        assert joined["cases"] == [*EXAMPLE["cases"], ANOTHER]
    assert add_earlier_cases({"code": "x"}, sent_back("", "proves_nothing")) == {"code": "x"}
