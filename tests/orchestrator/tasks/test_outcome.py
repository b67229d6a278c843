"""What who decides on a write is told of where its arguments come from."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tasks.model import Reading
from orchestrator.tasks.run.filling import Filled, _doubt_unbound, _mark_given
from orchestrator.tasks.run.outcome import (
    build_outcome,
    explain_arguments,
    is_answered_by_person,
)
from orchestrator.views.task_results import render_task_result

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


def done(name: str, body: Any, **more: Any) -> dict[str, Any]:
    result = {
        "content": [{"type": "text", "text": "…"}],
        "structuredContent": {"status": 200, "body": body},
    }
    reply = {"state": "called", "call": name, "trust": "", "rule": "", "cause": "", "failure": None}
    return {
        "id": name,
        "task": f"show {name}",
        "tool": f"shop.{name}",
        "arguments": {},
        "choice": "confirm",
        "end": "done",
        "reply": {**reply, "result": result},
        **more,
    }


def test_each_step_whose_answer_no_other_uses_is_told_with_its_answer() -> None:
    page = "There may be more than these 3."
    steps = [
        done("boat", {"id": 1}, resolved={"id": 1}, page=page),
        done("zones", [{"id": 2}]),
        done("records", ["a"], arguments={"zone": {"$ref": "zones", "path": "$[0].id"}}),
    ]
    state: Any = {"steps": {step["id"]: step for step in steps}}
    told = render_task_result(build_outcome(state))
    assert told["structuredContent"] == {
        "answers": [
            {"task": "show boat", "tool": "shop.boat", "answer": {"id": 1}, "page": page},
            {"task": "show records", "tool": "shop.records", "answer": ["a"]},
        ]
    }
    assert told["content"][0]["text"] == (
        'show boat: shop.boat with {"id": 1} answered {"id": 1} There may be more than these 3.'
    )


def test_what_one_step_answered_is_told_beside_another_s_failure_or_question() -> None:
    failure = {"kind": "refused", "message": "no", "status": 404}
    lost = done("order", None, end="failed")
    lost["reply"] = {**lost["reply"], "failure": failure, "result": {"content": []}}
    waits = done("cancel", None, end="pending")
    waits["reply"] = {
        "state": "pending",
        "approval": "a1",
        "why": "it writes",
        "request": {"method": "POST", "url": "https://api.example/1"},
    }
    for last in (lost, waits):
        state: Any = {"steps": {"boat": done("boat", {"id": 1}), last["id"]: last}}
        told = render_task_result(build_outcome(state))
        assert told["content"][0]["text"] == 'show boat: shop.boat answered {"id": 1}'
        assert "answers" not in told.get("structuredContent", {})


def test_a_step_that_takes_nothing_of_the_result_that_it_points_at_is_doubted() -> None:
    each: Any = {"after": ["s1"], "pick": "each", "uses": ""}
    (told,) = _doubt_unbound(each, Filled({}, Reading(), ()))
    assert told.startswith("'each' of the task went into no argument")
    bound = Filled({"zone": {"$ref": "s1", "path": "$[*].id"}}, Reading(), ())
    assert _doubt_unbound(each, bound) == ()
    alone: Any = {"after": [], "pick": "", "uses": "name"}
    assert _doubt_unbound(alone, Filled({}, Reading(), ())) == ()
