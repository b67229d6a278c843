from __future__ import annotations

from typing import Any

import pytest

from registry.search.words import parse_query


@pytest.mark.parametrize(
    ("task", "access"),
    [
        ("show me the free berths", "read"),
        ("Could you please list every zone?", "read"),
        ("find the boat Albatros", "read"),
        ("which zones were created today?", "read"),
        ("delete the zone", "write"),
        ("how do I add a zone", "write"),
        ("how can I book a berth", None),
        ("book berth 4 and show me the bill", None),
        ("zones", None),
        ("", None),
    ],
)
def test_a_task_tells_by_its_first_verb_whether_it_writes(task: str, access: Any) -> None:
    assert parse_query(task).access == access


def test_words_of_one_stem_are_one_term() -> None:
    assert [term.word for term in parse_query("zones of a zone, zoned").terms] == ["zones"]


def test_a_name_with_an_s_is_what_every_one_asks_for() -> None:
    forms = parse_query("show every berth of each bus").forms
    assert {"berths", "bus"} <= forms
    assert "berth" not in forms


@pytest.mark.parametrize("word", ["settings", "listing", "printer", "news"])
def test_a_noun_that_only_looks_like_a_verb_has_no_intent(word: str) -> None:
    assert parse_query(word).terms[0].intent is None
