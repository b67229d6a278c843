"""What a draft leaves out is what the drafts before it said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from forge.brief import EXAMPLE, EXAMPLE_CODE, EXAMPLE_TESTS
from forge.draft import Draft
from orchestrator.composing import EARLIER, composed, with_cases
from registry.records import DraftRow

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
        content, draft = composed(each, None, rows)
        assert isinstance(draft, Draft), draft
        reports = ({"stage": "suite"},)
        rows.append(DraftRow("j", number, draft.digest(), 1.0, content, "failed", reports))
    assert isinstance(draft, Draft)
    return content, draft


def refused(given: Mapping[str, Any], *rows: DraftRow) -> list[tuple[str, str]]:
    """Where and why a draft is none, after these."""
    _, problems = composed(given, None, rows)
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


def row(content: Mapping[str, Any], verdict: Any = "failed", **cell: str) -> DraftRow:
    cells = ({"operation": "tests", **cell},) if cell else ()
    return DraftRow(
        "j", 1, "d", 1.0, content, verdict, reports=({"stage": "suite", "cases": cells},)
    )


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
    blamed = row(before, case="test_more", evidence="proves nothing: it passes where …")
    content, draft = composed(given, None, (blamed,))
    assert isinstance(draft, Draft), draft
    assert content["tests"] == MORE_TESTS
    unfit = {"stage": "suite", "findings": ({"where": "line 4", "reason": "asserts nothing"},)}
    _, draft = composed(given, None, (replace(blamed, reports=(unfit,)),))
    assert isinstance(draft, Draft), draft
    for other in (row(before), row(before, case="test_more", evidence="gave 4")):
        assert [where for where, _ in refused(given, other)] == ["/tests"]


def test_what_the_repair_of_a_specification_leaves_out_stays() -> None:
    before = row(SPECIFICATION)
    for part in ("tools", "cases", "tests"):
        content, draft = composed({part: SPECIFICATION[part], "why": "mended"}, None, (before,))
        assert isinstance(draft, Draft), draft
        assert draft.is_specification
        assert {key: content[key] for key in SPECIFICATION} == SPECIFICATION
    unread = DraftRow("j", 1, "d", 1.0, {**SPECIFICATION, "cases": 7}, "failed")
    _, draft = composed({"cases": SPECIFICATION["cases"], "why": "a list"}, None, (unread,))
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


def sent_back(evidence: str) -> DraftRow:
    """A draft whose second case of a tool was sent back with these words."""
    cell = {"operation": "from_roman", "case": "case 2", "evidence": evidence}
    reports = ({"stage": "cases", "cases": [cell]},)
    return DraftRow("j", 1, "d", 1.0, EXAMPLE, "failed", reports)


ANOTHER = {"tool": "from_roman", "arguments": {"numeral": "V"}, "result": {"number": 5}}


def test_a_case_that_was_sent_back_because_it_proves_nothing_goes_where_others_come() -> None:
    given = {"code": "x", "cases": [ANOTHER]}
    first, _, third = EXAMPLE["cases"]
    joined = with_cases(given, sent_back("proves nothing: an empty result satisfies it"))
    assert joined["cases"] == [first, third, ANOTHER]


def test_a_case_that_the_code_only_fails_stays() -> None:
    given = {"code": "x", "cases": [ANOTHER]}
    for evidence in ("the result is another", "the input schema refuses these arguments"):
        joined = with_cases(given, sent_back(evidence))
        assert joined["cases"] == [*EXAMPLE["cases"], ANOTHER]
    assert with_cases({"code": "x"}, sent_back("proves nothing")) == {"code": "x"}
