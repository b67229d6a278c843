"""An OpenAI-compatible endpoint as an author: whatever it says or does is bounded and told."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from forge.authors.endpoint import MAX_BYTES, SHAPES, OpenAIAuthor
from forge.authors.interface import Endpoint, ModelReply, ModelRequest
from forge.errors import AuthorFailed
from tests.world.model import EVENTS as STREAM
from tests.world.model import Answers, Model, Said, event, model, said

KEY = "sk-canary-31337"
SCHEMA = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
ASK = ModelRequest("code", "Write it.", SCHEMA, 500)
SOON = (("Retry-After-Ms", "1"),)
GOOD = said({"code": "x = 1"})


def asked(here: Model, **more: Any) -> ModelReply:
    async def told() -> ModelReply:
        place = Endpoint(here.url, **{"model": "m-1", "key": KEY, "seconds": 20.0, **more})
        author = OpenAIAuthor(place)
        try:
            return await author.write(ASK)
        finally:
            await author.close()

    return asyncio.run(told())


def failing(answer: Answers, **more: Any) -> AuthorFailed:
    with model(answer) as here, pytest.raises(AuthorFailed) as failed:
        asked(here, **more)
    return failed.value


def in_turn(*answers: Said) -> Answers:
    coming = iter((*answers, *itertools.repeat(answers[-1], 50)))
    return lambda request: next(coming)


def test_an_endpoint_is_asked_for_one_object_of_the_schema() -> None:
    with model(lambda request: GOOD) as here:
        reply = asked(here)
    assert reply.content == {"code": "x = 1"}
    assert (reply.model, reply.tokens_in, reply.tokens_out) == ("m-1", 100, 10)
    (request,) = here.asked
    assert request["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (request["model"], request["max_completion_tokens"]) == ("m-1", 500)
    assert request["messages"][-1]["content"] == "Write it."
    assert here.headers[0]["authorization"] == f"Bearer {KEY}"


def test_the_only_model_that_is_listed_needs_no_name() -> None:
    with model(lambda request: GOOD) as here:
        assert asked(here, model="").content
        here.models = ("a", "b")
        with pytest.raises(AuthorFailed, match="OPENAI_MODEL is not set"):
            asked(here, model="")


def test_a_malformed_answer_is_asked_for_once_more_with_what_is_wrong() -> None:
    with model(in_turn(Said("Sure, I will."), GOOD)) as here:
        reply = asked(here)
    assert reply.content == {"code": "x = 1"}
    assert (reply.tokens_in, reply.tokens_out) == (200, 20)
    assert "It holds no JSON object" in here.prompts[1]


def test_two_malformed_answers_end_it_and_both_are_paid_for() -> None:
    failed = failing(lambda request: Said('{"code": 7}'))
    assert (failed.kind, failed.tokens_in, failed.tokens_out) == ("malformed", 200, 20)


def test_an_endpoint_that_takes_no_schema_is_asked_in_words() -> None:
    def answer(request: Mapping[str, Any]) -> Said:
        odd = {"response_format", "max_completion_tokens"} & request.keys()
        return Said(status=400, body=b'{"error": {"message": "unknown field"}}') if odd else GOOD

    with model(answer) as here:
        assert asked(here).content == {"code": "x = 1"}
    usual = {"model", "messages", "stream", "stream_options", "tool_choice"}
    assert [sorted(r.keys() - usual) for r in here.asked] == [
        ["max_completion_tokens", "response_format"],
        ["max_completion_tokens", "tools"],
        ["max_completion_tokens"],
        ["max_tokens", "response_format"],
        ["max_tokens", "tools"],
    ]
    assert here.asked[-1]["tools"][0]["function"]["parameters"] == SCHEMA


def test_an_endpoint_that_takes_neither_schema_nor_tools_is_told_the_schema_in_words() -> None:
    def answer(request: Mapping[str, Any]) -> Said:
        odd = {"response_format", "tools", "stream"} & request.keys()
        return Said(status=422, body=b'{"error": {"message": "unknown field"}}') if odd else GOOD

    with model(answer) as here:
        assert asked(here).content == {"code": "x = 1"}
    assert '"required":["code"]' in here.prompts[-1]
    assert "stream" not in here.asked[-1]


@pytest.mark.parametrize("whole", [True, False])
def test_the_arguments_of_a_tool_that_is_called_are_the_answer(whole: bool) -> None:
    def call(request: Mapping[str, Any]) -> Said:
        if "tools" not in request:
            return Said(status=400, body=b"{}")
        calls = [{"index": 0, "id": "t", "function": {"name": "answer", "arguments": GOOD.content}}]
        return Said("", message={"tool_calls": calls}, whole=whole, finish="tool_calls")

    with model(call) as here:
        assert asked(here).content == {"code": "x = 1"}
    assert here.asked[-1]["tool_choice"]["function"]["name"] == "answer"


def test_an_answer_comes_as_a_stream_and_whole_where_the_endpoint_sends_no_stream() -> None:
    for whole in (False, True):
        with model(lambda request, whole=whole: replace(GOOD, whole=whole)) as here:
            assert asked(here).content == {"code": "x = 1"}
        assert here.asked[0]["stream"] is True
        assert here.asked[0]["stream_options"] == {"include_usage": True}


def test_what_no_other_form_mends_is_asked_for_once_and_the_form_is_kept() -> None:
    long = b'{"error": {"message": "too long", "code": "context_length_exceeded"}}'

    async def twice(here: Model) -> None:
        author = OpenAIAuthor(Endpoint(here.url, "m-1", KEY, 20.0))
        with pytest.raises(AuthorFailed, match="too long"):
            await author.write(ASK)
        await author.write(ASK)
        await author.close()

    with model(in_turn(Said(status=400, body=long), GOOD)) as here:
        asyncio.run(twice(here))
    assert ["response_format" in request for request in here.asked] == [True, True]


def test_a_question_that_every_form_of_is_refused_leaves_the_first_form_for_the_next() -> None:
    bad = Said(status=400, body=b'{"error": {"message": "no"}}')

    async def twice(here: Model) -> None:
        author = OpenAIAuthor(Endpoint(here.url, "m-1", KEY, 20.0))
        with pytest.raises(AuthorFailed):
            await author.write(ASK)
        await author.write(ASK)
        await author.close()

    with model(in_turn(*[bad] * len(SHAPES), GOOD)) as here:
        asyncio.run(twice(here))
    assert len(here.asked) == len(SHAPES) + 1
    assert "response_format" in here.asked[-1]


def events(*told: Any, done: bool = True) -> Said:
    """A stream of these events."""
    body = b"".join(event(json.dumps(one)) for one in told) + (event("[DONE]") if done else b"")
    return Said(body=body, headers=STREAM)


def piece(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (events(piece('{"code": "x'), done=False), "unavailable", "cut off before its end"),
        (events(piece('{"code": "x', "length")), "endless", "longer than 500 tokens"),
        (events({"error": {"message": f"down, {KEY}"}}), "unavailable", "broke off: down"),
        (events({"choices": [{"delta": {"refusal": "I will not"}}]}), "refused", "I will not"),
        (events(7, [], {"choices": 3}, {"choices": [{"delta": []}]}), "malformed", "no JSON"),
        (Said(body=b"data: {\n\ndata\n: ping\n\n", headers=STREAM), "unavailable", "cut off"),
    ],
)
def test_a_stream_that_is_no_answer_is_a_failure_of_its_kind(
    answer: Said, kind: str, told: str
) -> None:
    failed = failing(lambda request: answer, retries=0)
    assert failed.kind == kind
    assert told in failed.reason
    assert KEY not in str(failed)
    assert failed.tokens_in > 0


@pytest.mark.parametrize("chunk", [b"x" * 65_536, event(json.dumps(piece("x" * 65_536)))])
def test_an_endless_stream_is_cut(chunk: bytes) -> None:
    said = Said(chunks=lambda: itertools.repeat(chunk), headers=STREAM)
    failed = failing(lambda request: said, retries=0)
    assert (failed.kind, str(MAX_BYTES) in str(failed)) == ("endless", True)


def test_a_question_that_is_cancelled_ends_its_connection() -> None:
    began, gone = threading.Event(), threading.Event()

    def writing() -> Iterator[bytes]:
        try:
            for _ in range(10_000_000):
                yield event(json.dumps(piece("x")))
                began.set()
        finally:
            gone.set()

    async def cancel(here: Model) -> None:
        author = OpenAIAuthor(Endpoint(here.url, "m-1", KEY, 60.0))
        asking = asyncio.ensure_future(author.write(ASK))
        assert await asyncio.to_thread(began.wait, 30)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(gone.wait, 30)
        await author.close()

    with model(lambda request: Said(chunks=writing, headers=STREAM)) as here:
        asyncio.run(cancel(here))


def test_a_model_that_reasons_is_asked_how_much_and_what_it_thought_is_no_answer() -> None:
    thought = Said('<think>{"code": 7}, or rather</think>\n{"code": "x = 1"}')
    with model(lambda request: thought) as here:
        assert asked(here, effort="low").content == {"code": "x = 1"}
        asked(here)
    assert [request.get("reasoning_effort") for request in here.asked] == ["low", None]


def test_an_answer_that_reasoning_used_up_says_so() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 490}}
    usage = {"prompt_tokens": 100, "completion_tokens": 500, **details}
    failed = failing(lambda request: Said("", finish="length", usage=usage))
    assert failed.kind == "endless"
    assert "490 of them reasoning: raise TOOLWRIGHT_MODEL_TOKENS" in failed.reason
    assert failed.tokens_out == 500


@pytest.mark.parametrize(("cached", "counted"), [(64, 64), (9_000, 100), (-1, 0), ("64", 0)])
def test_what_came_from_the_endpoints_cache_is_counted(cached: Any, counted: int) -> None:
    usage = {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": cached}}
    with model(lambda request: replace(GOOD, usage=usage)) as here:
        assert asked(here).cached == counted


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_endpoint_that_puts_us_off_is_asked_again(status: int) -> None:
    with model(in_turn(Said(status=status, headers=SOON, body=b"busy"), GOOD)) as here:
        assert asked(here).content
    assert len(here.asked) == 2


@pytest.mark.parametrize("status", [429, 500])
def test_one_that_always_does_is_given_up(status: int) -> None:
    failed = failing(lambda request: Said(status=status, headers=SOON, body=b"busy"))
    assert failed.kind == "unavailable"


def test_a_refused_key_is_told_without_the_key() -> None:
    told = f'{{"error": {{"message": "Incorrect API key provided: {KEY}"}}}}'
    failed = failing(lambda request: Said(status=401, body=told.encode()))
    assert failed.kind == "refused"
    assert KEY not in str(failed)


def endless() -> Iterator[bytes]:
    yield b'{"choices": "'
    yield from itertools.repeat(b"x" * 65_536)


@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_body_is_cut(status: int) -> None:
    failed = failing(lambda request: Said(status=status, chunks=endless), retries=0)
    assert failed.kind == "endless"
    assert str(MAX_BYTES) in str(failed)


def test_a_body_that_never_ends_is_cut_by_time() -> None:
    failed = failing(lambda request: Said(chunks=lambda: itertools.repeat(b"")), seconds=0.3)
    assert failed.kind == "timeout"


def test_a_compressed_body_is_not_blown_up() -> None:
    bomb = gzip.compress(bytes(9_000_000))
    failed = failing(
        lambda request: Said(body=bomb, headers=(("Content-Encoding", "gzip"),)), retries=0
    )
    assert failed.kind == "malformed"


def test_a_redirect_is_not_followed() -> None:
    with model(lambda request: GOOD) as other:
        there = (("Location", f"{other.url}/chat/completions"),)
        failed = failing(lambda request: Said(status=307, headers=there))
        assert failed.kind == "unavailable"
        assert other.asked == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Said('{"code": "x', finish="length"), "endless"),
        (Said("", message={"refusal": "I will not"}), "refused"),
        (Said("", finish="content_filter"), "refused"),
        (Said(body=b"<html>"), "malformed"),
        (Said(body=b"[" * 100_000), "malformed"),
        (Said(body=b'{"choices": {"0": 1}}'), "malformed"),
        (Said(body=b'{"choices": [{"message": {"content": 7}}]}'), "malformed"),
    ],
)
def test_what_is_no_answer_is_a_failure_of_its_kind(answer: Said, kind: str) -> None:
    assert failing(lambda request: answer).kind == kind


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": '{"code": '}, {"type": "text", "text": '"y"}'}]
    with model(lambda request: Said("", message={"content": parts})) as here:
        assert asked(here).content == {"code": "y"}


def test_nobody_at_the_other_end_is_told() -> None:
    with model(lambda request: GOOD) as here:
        pass
    with pytest.raises(AuthorFailed) as failed:
        asked(here, retries=0)
    assert failed.value.kind == "unavailable"


def test_a_key_that_no_header_holds_is_refused_before_it_is_sent() -> None:
    with model(lambda request: GOOD) as here, pytest.raises(AuthorFailed, match="no header"):
        asked(here, key="sk-\u20ac\n")
