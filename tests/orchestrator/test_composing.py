"""What a draft leaves out is what the drafts before it said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forge.brief import EXAMPLE, EXAMPLE_CODE, EXAMPLE_TESTS
from forge.draft import Draft
from orchestrator.composing import EARLIER, composed
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
