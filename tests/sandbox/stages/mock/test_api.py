"""The API that is not there answers from its document, or as it is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from sandbox.broker.broker import Broker
from sandbox.bundle.apispec import APISpec, MediaType, Operation, Response
from sandbox.bundle.model import read_bundle
from sandbox.clock import VirtualClock
from sandbox.schemas.directional import DirectionalValidator
from sandbox.stages.mock.answers import AnswerBuilder, DocumentedAnswer, build_generic_error
from sandbox.stages.mock.api import MockApi, ScriptedAnswer
from sandbox.wire.exchange import Caps, Exchange, WireRequest, WireResponse
from sandbox.wire.policy import build_read_policy

BUNDLE = read_bundle(Path(__file__).parents[3] / "fixtures" / "bad_bundles" / "good")
assert BUNDLE.spec is not None
SPEC: APISpec = BUNDLE.spec
NOTES = "https://notes.example/v1/notes"
JSON = "application/json"


def ask(mock: MockApi, method: str, url: str) -> WireResponse:
    return asyncio.run(mock.send(WireRequest(method, url)))


def test_unscripted_it_answers_each_operation_with_a_documented_success() -> None:
    mock = MockApi(SPEC, VirtualClock())
    judge = DirectionalValidator(SPEC.schemas, "response")
    note = {"$ref": "#/$defs/Note"}
    assert judge.accepts(note, json.loads(ask(mock, "GET", NOTES + "/a%2Fb").body))
    assert judge.accepts({"type": "array", "items": note}, json.loads(ask(mock, "GET", NOTES).body))
    assert ask(mock, "POST", NOTES).status == 201
    assert ask(mock, "DELETE", NOTES).status == 404
    assert len(mock.requests) == 4


def test_a_scripted_answer_holds_until_the_next() -> None:
    mock = MockApi(SPEC, VirtualClock())
    mock.script_answers(ScriptedAnswer(WireResponse(503)))
    assert [ask(mock, "GET", NOTES).status for _ in range(2)] == [503, 503]
    mock.script_answers(None)
    assert mock.requests == ()
    assert ask(mock, "GET", NOTES).status == 200


def exchanged(caps: Caps, answer: ScriptedAnswer) -> tuple[Exchange, VirtualClock, MockApi]:
    clock = VirtualClock()
    mock = MockApi(SPEC, clock)
    mock.script_answers(answer)
    broker = Broker(build_read_policy(BUNDLE), mock, caps=caps, clock=clock)
    exchange = asyncio.run(broker.perform(WireRequest("GET", NOTES)))
    return exchange, clock, mock


def test_a_slow_answer_crosses_the_broker_s_real_limit_at_once() -> None:
    caps = Caps(seconds=30)
    exchange, clock, _ = exchanged(caps, ScriptedAnswer(WireResponse(200), delay=caps.seconds + 1))
    assert exchange.refusal == "timeout"
    assert clock.now() == caps.seconds
    assert exchanged(caps, ScriptedAnswer(WireResponse(200), delay=caps.seconds - 1))[0].response


def test_a_429_that_stays_is_passed_on_after_the_broker_s_attempts() -> None:
    caps = Caps()
    refused = WireResponse(429, (("retry-after", "6"),))
    exchange, clock, mock = exchanged(caps, ScriptedAnswer(refused))
    assert exchange.response == refused
    assert len(mock.requests) == exchange.attempts == caps.attempts
    assert clock.now() == 6.0 * (caps.attempts - 1)


def test_an_answer_above_the_limit_is_not_passed_on() -> None:
    caps = Caps(response_bytes=1000)
    assert (
        exchanged(caps, ScriptedAnswer(WireResponse(200, (), b" " * 1001)))[0].refusal
        == "too_large"
    )
    assert exchanged(caps, ScriptedAnswer(WireResponse(200, (), b" " * 1000)))[0].response


def operation(*responses: Response, method: str = "GET") -> Operation:
    return Operation("o", method, "/x", "https://a.example", "read", responses=responses)


def json_response(status: str, schema: object = True) -> Response:
    return Response(status, content=(MediaType(JSON, schema),))  # type: ignore[arg-type]


def statuses(found: tuple[DocumentedAnswer, ...]) -> list[int]:
    return [documented.status for documented in found]


def test_successes_and_errors_are_told_apart() -> None:
    answers = AnswerBuilder(SPEC)
    mixed = operation(*map(json_response, ("200", "2XX", "304", "404", "5XX", "default")))
    assert statuses(answers.list_successes(mixed)) == [200, 201]
    assert statuses(answers.list_errors(mixed)) == [404, 500]
    assert statuses(answers.list_successes(operation(json_response("default")))) == [200]
    assert answers.list_successes(operation()) == (DocumentedAnswer(200, None),)


def test_json_comes_before_other_media_types_and_ranges_become_types() -> None:
    answers = AnswerBuilder(SPEC)
    content = (MediaType("text/csv"), MediaType("image/*"), MediaType("*/*", {"type": "object"}))
    found = answers.list_successes(operation(Response("200", content=content)))
    sent = [
        answers.build_answer(documented, "full").get_header("content-type") for documented in found
    ]
    assert sent == [JSON, "text/csv", "image/png"]


@pytest.mark.parametrize(("status", "method"), [("204", "GET"), ("200", "HEAD")])
def test_what_never_carries_content_carries_none(status: str, method: str) -> None:
    answers = AnswerBuilder(SPEC)
    (found,) = answers.list_successes(operation(json_response(status), method=method))
    assert answers.build_answer(found, "full").body == b""


def test_a_wrong_type_is_one_that_no_success_allows() -> None:
    answers = AnswerBuilder(SPEC)
    either = operation(
        json_response("200", {"type": "string"}), json_response("201", {"type": "array"})
    )
    wrong = answers.build_wrong_type(either)
    assert wrong is not None
    assert not isinstance(json.loads(wrong.body), str | list)
    assert answers.build_wrong_type(operation(json_response("200"))) is None
    assert answers.build_wrong_type(operation(Response("200"))) is None


def test_errors_that_no_document_describes_come_in_several_media_types() -> None:
    types = {build_generic_error(status).get_header("content-type") for status in (401, 404, 500)}
    assert len(types) == 3


def test_a_real_answer_is_held_against_the_document() -> None:
    answers = AnswerBuilder(SPEC)
    note = SPEC.get_operation("getNote")
    good = b'{"id": 1, "text": "t", "author": {"name": "n"}}'
    headers = (("content-type", JSON),)
    assert answers.find_problem(note, WireResponse(200, headers, good)) is None
    assert answers.find_problem(note, WireResponse(500, headers, good)) == "the status is 500"
    assert "required" in str(answers.find_problem(note, WireResponse(200, headers, b'{"id": 1}')))
    assert "not JSON" in str(answers.find_problem(note, WireResponse(200, (), good)))
    assert "parse" in str(answers.find_problem(note, WireResponse(200, headers, b"{")))
