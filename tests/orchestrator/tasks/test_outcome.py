"""What who decides on a write is told of where its arguments come from."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tasks.run.filling import _mark_given
from orchestrator.tasks.run.outcome import explain_arguments, is_answered_by_person

CALL = {"lift_id": 3, "reason": "wind"}


@pytest.mark.parametrize(
    ("origins", "read_by", "told"),
    [
        ({"lift_id": "given", "reason": "given"}, "the client", "with the arguments that you gave"),
        (
            {"lift_id": "task", "reason": "given"},
            "the client",
            "with the arguments that you gave; read out of the task by rules: lift_id",
        ),
        (
            {"lift_id": "step", "reason": "given"},
            "rules",
            "with the arguments that you gave; taken from an earlier step: lift_id",
        ),
        (
            {"lift_id": "task", "reason": "task"},
            "rules",
            "arguments read out of the task by rules",
        ),
        ({"lift_id": "given", "reason": "given"}, "", ""),
    ],
)
def test_arguments_are_said_to_be_given_or_read_as_they_were(
    origins: dict[str, str], read_by: str, told: str
) -> None:
    step: Any = {"resolved": CALL, "origins": origins, "read_by": read_by}
    assert explain_arguments(step, by_person=True) == told


def test_what_a_client_s_model_answered_is_not_said_to_be_the_person_s() -> None:
    step: Any = {
        "resolved": CALL,
        "origins": dict.fromkeys(CALL, "given"),
        "read_by": "the client",
    }
    assert explain_arguments(step, by_person=False) == "with the arguments that were given"
    assert is_answered_by_person({"answered_by": ["page", "terminal"]})
    assert not is_answered_by_person({"answered_by": ["a client", "page"]})
    assert not is_answered_by_person({})


def test_an_argument_that_an_answer_only_adds_to_was_not_given_whole() -> None:
    known = {"body": {"name": "a"}, "page": 1}
    assert _mark_given(known, {"body": {"count": 2}, "page": 2}) == {"page": "given"}
    assert _mark_given(known, {"body": {"name": "b", "count": 2}}) == {"body": "given"}
