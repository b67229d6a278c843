"""Answers unlike their documentation: what each kind of code is tried with."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.stages.mock.unlike import EXTRA, build_unlike_answers

ROW = {"id": 7, "name": "x", "tags": ["a", "b"]}


def answers(sample: Any, decided: bool) -> dict[str, Any]:
    return {made.name: made.value for made in build_unlike_answers(sample, decided)}


def test_code_that_decides_is_tried_with_each_difference_by_itself() -> None:
    made = answers(ROW, decided=True)
    assert set(made) == {
        *("null:", "null:*", "null:/id", "null:/name", "null:/tags"),
        *("shape", "scalar", "extra", "missing"),
    }
    assert made["null:/name"] == {**ROW, "name": None}
    assert made["scalar"] == {**ROW, "id": "scalar-8472"}
    assert made["extra"] == {**ROW, **EXTRA}
    assert made["missing"] == {"name": "x", "tags": ["a", "b"]}


def test_code_that_hands_answers_on_is_tried_with_every_kind_of_difference_in_few_answers() -> None:
    made = answers(ROW, decided=False)
    assert set(made) == {"null:*", "shape", "mixed"}
    assert made["null:*"] == {"id": None, "name": None, "tags": [None, "b"]}
    assert made["mixed"] == {"name": "x", "tags": [84_710.25, "b"], **EXTRA}


@pytest.mark.parametrize("decided", [True, False])
def test_a_scalar_answer_is_null_and_of_another_shape(decided: bool) -> None:
    made = answers("done", decided)
    assert made["null:"] is None
    assert made["shape"] == {**EXTRA, "None": None}


@pytest.mark.parametrize("sample", [{}, [], [[]], None, {"only": 1}, [{"a": {"b": [1]}}]])
def test_every_sample_has_answers_of_another_shape_and_null(sample: Any) -> None:
    for decided in (True, False):
        made = answers(sample, decided)
        assert "shape" in made
        assert any(name.startswith("null:") for name in made)
