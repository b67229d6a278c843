"""An OpenAI-compatible endpoint as an author: whatever it says or does is bounded and told."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from forge.authors.endpoint import MAX_BYTES, OpenAIAuthor
from forge.authors.interface import Endpoint, ModelReply, ModelRequest
from forge.errors import AuthorFailed
from tests.world.model import Answers, Model, Said, model, said

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
    assert [sorted(r.keys() - {"model", "messages"}) for r in here.asked] == [
        ["max_completion_tokens", "response_format"],
        ["max_completion_tokens"],
        ["max_tokens"],
    ]
    assert '"required":["code"]' in here.prompts[2]


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
