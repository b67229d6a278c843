"""The API that is not there answers from its document, or as it is told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from sandbox.answers import Answers, Documented, generic_error
from sandbox.apispec import APISpec, MediaType, Operation, Response
from sandbox.broker import Broker, Caps
from sandbox.bundle import read_bundle
from sandbox.clock import VirtualClock
from sandbox.exchange import Exchange, WireRequest, WireResponse
from sandbox.judge import Judge
from sandbox.mockapi import MockApi, Scripted
from sandbox.policy import read_policy

BUNDLE = read_bundle(Path(__file__).parents[1] / "fixtures" / "bad_bundles" / "good")
assert BUNDLE.spec is not None
SPEC: APISpec = BUNDLE.spec
NOTES = "https://notes.example/v1/notes"
JSON = "application/json"


def ask(mock: MockApi, method: str, url: str) -> WireResponse:
    return asyncio.run(mock.send(WireRequest(method, url)))


def test_unscripted_it_answers_each_operation_with_a_documented_success() -> None:
    mock = MockApi(SPEC, VirtualClock())
    judge = Judge(SPEC.schemas, "response")
    note = {"$ref": "#/$defs/Note"}
    assert judge.accepts(note, json.loads(ask(mock, "GET", NOTES + "/a%2Fb").body))
    assert judge.accepts({"type": "array", "items": note}, json.loads(ask(mock, "GET", NOTES).body))
    assert ask(mock, "POST", NOTES).status == 201
    assert ask(mock, "DELETE", NOTES).status == 404
    assert len(mock.requests) == 4


def test_a_scripted_answer_holds_until_the_next() -> None:
    mock = MockApi(SPEC, VirtualClock())
    mock.script(Scripted(WireResponse(503)))
    assert [ask(mock, "GET", NOTES).status for _ in range(2)] == [503, 503]
    mock.script(None)
    assert mock.requests == ()
    assert ask(mock, "GET", NOTES).status == 200


def exchanged(caps: Caps, answer: Scripted) -> tuple[Exchange, VirtualClock, MockApi]:
    clock = VirtualClock()
    mock = MockApi(SPEC, clock)
    mock.script(answer)
    broker = Broker(read_policy(BUNDLE), mock, caps=caps, clock=clock)
    exchange = asyncio.run(broker.perform(WireRequest("GET", NOTES)))
    return exchange, clock, mock


def test_a_slow_answer_crosses_the_broker_s_real_limit_at_once() -> None:
    caps = Caps(seconds=30)
    exchange, clock, _ = exchanged(caps, Scripted(WireResponse(200), delay=caps.seconds + 1))
    assert exchange.refusal == "timeout"
    assert clock.now() == caps.seconds
    assert exchanged(caps, Scripted(WireResponse(200), delay=caps.seconds - 1))[0].response


def test_a_429_that_stays_is_passed_on_after_the_broker_s_attempts() -> None:
    caps = Caps()
    refused = WireResponse(429, (("retry-after", "6"),))
    exchange, clock, mock = exchanged(caps, Scripted(refused))
    assert exchange.response == refused
    assert len(mock.requests) == exchange.attempts == caps.attempts
    assert clock.now() == 6.0 * (caps.attempts - 1)


def test_an_answer_above_the_limit_is_not_passed_on() -> None:
    caps = Caps(response_bytes=1000)
    assert exchanged(caps, Scripted(WireResponse(200, (), b" " * 1001)))[0].refusal == "too_large"
    assert exchanged(caps, Scripted(WireResponse(200, (), b" " * 1000)))[0].response


def operation(*responses: Response, method: str = "GET") -> Operation:
    return Operation("o", method, "/x", "https://a.example", "read", responses=responses)


def json_response(status: str, schema: object = True) -> Response:
    return Response(status, content=(MediaType(JSON, schema),))  # type: ignore[arg-type]


def statuses(found: tuple[Documented, ...]) -> list[int]:
    return [documented.status for documented in found]


def test_successes_and_errors_are_told_apart() -> None:
    answers = Answers(SPEC)
    mixed = operation(*map(json_response, ("200", "2XX", "304", "404", "5XX", "default")))
    assert statuses(answers.successes(mixed)) == [200, 201]
    assert statuses(answers.errors(mixed)) == [404, 500]
    assert statuses(answers.successes(operation(json_response("default")))) == [200]
    assert answers.successes(operation()) == (Documented(200, None),)


def test_json_comes_before_other_media_types_and_ranges_become_types() -> None:
    answers = Answers(SPEC)
    content = (MediaType("text/csv"), MediaType("image/*"), MediaType("*/*", {"type": "object"}))
    found = answers.successes(operation(Response("200", content=content)))
    sent = [answers.good(documented, "full").header("content-type") for documented in found]
    assert sent == [JSON, "text/csv", "image/png"]


@pytest.mark.parametrize(("status", "method"), [("204", "GET"), ("200", "HEAD")])
def test_what_never_carries_content_carries_none(status: str, method: str) -> None:
    answers = Answers(SPEC)
    (found,) = answers.successes(operation(json_response(status), method=method))
    assert answers.good(found, "full").body == b""


def test_a_wrong_type_is_one_that_no_success_allows() -> None:
    answers = Answers(SPEC)
    either = operation(
        json_response("200", {"type": "string"}), json_response("201", {"type": "array"})
    )
    wrong = answers.wrong_type(either)
    assert wrong is not None
    assert not isinstance(json.loads(wrong.body), str | list)
    assert answers.wrong_type(operation(json_response("200"))) is None
    assert answers.wrong_type(operation(Response("200"))) is None


def test_errors_that_no_document_describes_come_in_several_media_types() -> None:
    types = {generic_error(status).header("content-type") for status in (401, 404, 500)}
    assert len(types) == 3


def test_a_real_answer_is_held_against_the_document() -> None:
    answers = Answers(SPEC)
    note = SPEC.operation("getNote")
    good = b'{"id": 1, "text": "t", "author": {"name": "n"}}'
    headers = (("content-type", JSON),)
    assert answers.problem(note, WireResponse(200, headers, good)) is None
    assert answers.problem(note, WireResponse(500, headers, good)) == "the status is 500"
    assert "required" in str(answers.problem(note, WireResponse(200, headers, b'{"id": 1}')))
    assert "not JSON" in str(answers.problem(note, WireResponse(200, (), good)))
    assert "parse" in str(answers.problem(note, WireResponse(200, headers, b"{")))
