"""What a replay changes and compares, without a sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.bundle.example import Example, is_same_value
from sandbox.session.interface import Failure, Outcome
from sandbox.stages.acceptance import Claim, _find_problem
from sandbox.stages.mutants import STEPS_ENDED, add_step_limit
from sandbox.stages.replay.fields import (
    is_shown_optional,
    list_fields,
    says_missing,
    with_other_values,
    without_field,
)
from sandbox.stages.replay.paging import find_marks, find_untold_total, set_mark
from sandbox.stages.replay.splicing import find_splice
from sandbox.wire.exchange import WireRequest


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ({"$any": True}, None, True),
        ({"$any": "string"}, "k-1", True),
        ({"$any": "string"}, 1, False),
        ({"$any": "integer"}, True, False),
        ({"$any": "boolean"}, True, True),
        ({"key": {"$any": "string"}, "n": 1}, {"key": "x", "n": 2}, False),
        ({"$any": "nothing"}, {"$any": "nothing"}, True),
        ({"$any": "string", "more": 1}, "x", False),
    ],
)
def test_a_placeholder_admits_a_value_of_its_type(expected: Any, got: Any, same: bool) -> None:
    assert is_same_value(expected, got) is same


def test_fields_are_those_that_the_code_names_and_go_from_every_element() -> None:
    value = {"rows": [{"id": 1, "USD": 2}, {"id": 3}]}
    assert list_fields(value, {"rows", "id"}) == (("rows",), ("rows", "*", "id"))
    assert without_field(value, ("rows", "*", "id")) == {"rows": [{"USD": 2}, {}]}
    renamed = without_field(value, ("rows", "*", "id"), "id_v2")
    assert renamed == {"rows": [{"USD": 2, "id_v2": 1}, {"id_v2": 3}]}


def test_a_mark_that_the_last_page_leaves_out_is_optional_and_a_number_is_not() -> None:
    pages = [{"next": 2, "cents": 5}, {}]
    assert is_shown_optional(pages, ("next",))
    assert not is_shown_optional(pages, ("cents",))
    assert not is_shown_optional(pages[:1], ("next",))
    assert not is_shown_optional([{"next": 2}, {"next": None}], ("next",))
    assert is_shown_optional([{"next": "a2"}, {"next": None}], ("next",))


def test_other_values_are_of_the_same_type() -> None:
    value = {"rows": [{"id": 1, "paid": True}, {"id": None}], "base": "EUR"}
    changed = with_other_values(value, ("rows", "*", "id"))
    assert changed["rows"] == [{"id": 2, "paid": True}, {"id": None}]
    assert with_other_values(value, ("base",))["base"] != "EUR"


def test_only_what_the_output_schema_lets_be_missing_says_so() -> None:
    loose = {"properties": {"a": {"type": ["string", "null"]}, "b": {"type": "integer"}}}
    assert says_missing({"a": "x", "b": 1}, {"a": None, "b": 1}, loose)
    assert says_missing({"a": "x", "b": 1}, {"a": "x"}, loose)
    assert not says_missing({"a": "x", "b": 1}, {"a": "x"}, {**loose, "required": ["b"]})
    assert not says_missing({"a": "x", "b": 1}, {"a": "", "b": 1}, loose)
    assert not says_missing({"a": "x", "b": 1}, {"a": "x", "b": 0}, loose)


def test_marks_of_more_are_found_and_set() -> None:
    value = {"items": [{"next": 1}], "paging": {"next_cursor": None}, "has_more": False}
    assert dict(find_marks(value)) == {("paging", "next_cursor"): None, ("has_more",): False}
    assert set_mark(value, ("paging", "next_cursor"))["paging"] == {"next_cursor": "more-1"}
    assert find_untold_total({"total": 9, "items": [1]}) == 9
    assert find_untold_total({"total": 1, "items": [1]}) is None


@pytest.mark.parametrize(
    ("url", "spliced", "differs"),
    [
        ("https://a.test/x/ada?q=1", "https://a.test/x/a%2F..%2Fb?q=1", False),
        ("https://a.test/x/ada", "https://a.test/x/a/../b", True),
        ("https://a.test/x?q=ada", "https://a.test/x?q=a/../b", False),
        ("https://a.test/x?q=ada", "https://a.test/x?q=a&d=1", True),
    ],
)
def test_a_url_keeps_its_parts(url: str, spliced: str, differs: bool) -> None:
    found = find_splice(WireRequest("GET", url), WireRequest("GET", spliced), "ada", "a/../b")
    assert bool(found) is differs


@pytest.mark.parametrize(
    ("body", "spliced", "differs"),
    [
        (b'{"q": "<n>ada</n>"}', b'{"q": "<n>a&lt;b&gt;&amp;c</n>"}', False),
        (b'{"q": "<n>ada</n>"}', b'{"q": "<n>a<b>&c</n>"}', True),
        (b'{"name": "ada"}', b'{"name": "a<b>&c"}', False),
        (b'{"q": "{\\"n\\": \\"ada\\"}"}', b'{"q": "{\\"n\\": \\"a<b>&c\\"}"}', False),
    ],
)
def test_a_document_in_a_body_keeps_its_form(body: bytes, spliced: bytes, differs: bool) -> None:
    one, other = (WireRequest("POST", "https://a.test/", (), each) for each in (body, spliced))
    assert bool(find_splice(one, other, "ada", "a<b>&c")) is differs


def test_code_without_an_end_is_ended_by_its_steps() -> None:
    head = '"""Doc."""\nfrom __future__ import annotations\n'
    code = f"{head}\ndef f():\n    while True:\n        pass\n"
    space: dict[str, Any] = {}
    exec(add_step_limit(code, 100), space)
    with pytest.raises(BaseException, match="too many steps") as raised:
        space["f"]()
    assert type(raised.value).__name__ == STEPS_ENDED
    exec(add_step_limit("def f():\n    return [n for n in range(3)]\n", 1), space)
    assert space["f"]() == [0, 1, 2]


def test_a_refusal_has_to_name_what_a_claim_says() -> None:
    claim = Claim(Example("t", {}, failure="tool"), "refuse it", ("Parsec",))
    told = Outcome("t", {}, Failure("tool", "the unit parsec is unknown"))
    assert _find_problem(claim, told) == ""
    assert "does not name" in _find_problem(claim, Outcome("t", {}, Failure("tool", "no")))
    assert _find_problem(claim, Outcome("t", {}, Failure("bug", "parsec"))) == "it is not refused"
