"""What a task names literally has to be asked for by its tests or cases."""

from __future__ import annotations

import pytest

from forge.drafts.brief import EXAMPLE
from forge.drafts.draft import Draft, parse_draft
from forge.drafts.literals import MAX_LITERALS, find_literals, find_unasked_literals


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("refuse what is no numeral (IIII, IC, and the empty text)", ("IIII", "IC")),
        ("durations such as P1DT2H, in ISO 8601", ("P1DT2H",)),
        ("no real date (2026-02-30, 26-1-1) is one", ("2026-02-30", "26-1-1")),
        ("1_000 and 0x1F are no numbers.", ("1_000", "0x1F")),
        ("versions (1.0, 01.2.3, v1.2.3)", ("01.2.3", "v1.2.3")),
        ("CSV by RFC 4180 over HTTP, UTF-8 (CSV, JSON or XML), see https://a.example/x1", ()),
        ("a number from 1 to 3999, rounded to 2.5", ()),
        ("ASCII TEXT IN CAPITALS", ()),
    ],
)
def test_values_are_told_from_names_of_standards(task: str, named: tuple[str, ...]) -> None:
    assert find_literals(task) == named


def test_a_draft_that_leaves_one_out_is_told_which() -> None:
    draft = parse_draft(EXAMPLE)
    assert isinstance(draft, Draft)
    assert find_unasked_literals("Roman numerals such as XIV", draft) == ()
    (problem,) = find_unasked_literals("Roman numerals such as XIV, but not (VVVV, XIXX)", draft)
    assert "names VVVV, XIXX" in problem.reason


def test_an_author_may_say_that_a_word_is_no_example() -> None:
    draft = parse_draft({**EXAMPLE, "why": "first draft; K9 is the customer's name"})
    assert isinstance(draft, Draft)
    assert find_unasked_literals("Roman numerals for K9", draft) == ()


def test_a_task_of_a_thousand_values_asks_for_a_few_and_takes_no_time() -> None:
    assert len(find_literals(" ".join(f"a{n}b" for n in range(5_000)))) == MAX_LITERALS
    assert find_literals("(" * 20_000) == ()
    assert find_literals("such as " * 3_000) == ()
