"""Likeness of what is gone to what is new."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.health.likeness import (
    MOST,
    Renaming,
    find_renamed_fields,
    find_renamed_in_answer,
    pair_names,
    pair_paths,
)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (["GET /products"], ["GET /v2/products"], True),
        (["GET /things/{id}"], ["GET /api/v3/things/{key}"], True),
        (["GET /products"], ["DELETE /accounts/{id}/keys"], False),
        # Either may be it.
        (["GET /products"], ["GET /v2/products", "GET /v3/products"], False),
    ],
)
def test_a_moved_path_is_known_by_its_segments(old: list[str], new: list[str], found: bool) -> None:
    assert bool(pair_paths(old, new)) is found


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("price", "unit_price", True),
        ("createdAt", "created_at", True),
        ("colour", "color", True),
        ("price", "name", False),
    ],
)
def test_a_renamed_field_is_known_by_its_words(old: str, new: str, found: bool) -> None:
    assert bool(pair_names([old], [new])) is found


def test_a_field_of_another_type_is_not_the_renamed_one() -> None:
    before = {"properties": {"body": {"properties": {"price": {"type": "number"}}}}}
    after = {"properties": {"body": {"properties": {"unit_price": {"type": "number"}}}}}
    other = {"properties": {"body": {"properties": {"unit_price": {"type": "string"}}}}}
    assert find_renamed_fields(before, after) == (Renaming("/body/price", "/body/unit_price"),)
    assert find_renamed_fields(before, other) == ()


def test_an_answer_shows_a_missing_field_under_its_new_name() -> None:
    item = {"properties": {"price": {"type": "number"}}, "required": ["price"]}
    schema = {"properties": {"body": {"items": item}}}
    value = {"body": [{"price": 1}, {"unit_price": 2}]}
    assert find_renamed_in_answer(schema, value, "/body/1") == (Renaming("price", "unit_price"),)
    assert find_renamed_in_answer(schema, value, "/body/0") == ()
    assert find_renamed_in_answer(None, "text", "/body/x") == ()


@settings(max_examples=30)
@given(st.lists(st.text(max_size=8), max_size=6), st.lists(st.text(max_size=8), max_size=6))
def test_a_name_is_never_paired_twice(old: list[str], new: list[str]) -> None:
    for found in (pair_names(old, new), pair_paths(old, new)):
        assert len({each.old for each in found}) == len(found) == len({e.new for e in found})


def test_many_names_are_cut() -> None:
    assert len(pair_names([f"name{n}" for n in range(500)], ["x"])) <= MOST
