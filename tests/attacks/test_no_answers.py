"""What a server sends in place of an answer: its call fails at once, on both engines."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.session.interface import Limits, Outcome
from tests.engine.conftest import Engine, engine
from tests.engine.samples import Api, body, broker, bundle

__all__ = ["engine"]

PATIENT = Limits(call_seconds=3600.0)
"""So that a call that waits out its limit is not taken for one that fails at once."""
SPEAK = """
import toolwright.wire as wire
from toolwright import tool

write = wire._written
FORMS = []
REQUEST = '"method":"toolwright/request","params":{"kind":"http","call":"ID","method":"GET",'
REQUEST += '"url":"https://api.test/v1/items/a","headers":[]}'
TOLD = {
    "deep": '"result":' + "[" * 200 + "1" + "]" * 200,
    "deeper than any parser": '"result":' + "[" * 5000 + "1" + "]" * 5000,
    "many": '"result":[' + "[]," * 1100000 + "1]",
    "neither": '"results":{}',
    "both": '"result":{},"error":{}',
    "cut": '"result":{"content":[',
    "no number": '"result":{"content":[],"structuredContent":{"n":Infinity}}',
    "a request": REQUEST,
    "an answer and a request": '"result":{"content":[]}}\\n{"jsonrpc":"2.0","id":"r9",' + REQUEST,
    "nested": '"result":{"content":[],"structuredContent":' + '{"a":' * 100 + "1" + "}" * 101,
}


def spoken(message):
    if "result" not in message or not FORMS:
        return write(message)
    told = '{"jsonrpc":"2.0","id":"ID",' + TOLD[FORMS.pop()] + "}"
    return told.replace("ID", message["id"])


wire._written = spoken


@tool
def say(form):
    if form:
        FORMS.append(form)
    return {"said": form}
"""
SAMPLE = bundle(SPEAK, "say")
UNREADABLE = ("deep", "deeper than any parser", "many", "neither", "both", "cut", "no number")
MEANT_FOR_TWO = ("a request", "an answer and a request")
"""In a container an answer is a line, and another line another message."""


def said(engine: Engine, upstream: Api, *forms: str) -> list[Outcome]:
    async def run() -> list[Outcome]:
        async with engine(limits=PATIENT) as runner:
            async with runner.open(SAMPLE, broker(SAMPLE, upstream)) as session:
                return [await session.call("say", {"form": form}) for form in forms]

    return asyncio.run(run())


@pytest.mark.parametrize("form", UNREADABLE)
def test_a_call_fails_at_once_where_its_answer_is_none(engine: Engine, form: str) -> None:
    failed, then = said(engine, body(b"{}"), form, "")
    assert failed.failure is not None
    assert (failed.failure.kind, "cannot be read" in failed.failure.message) == ("bug", True)
    assert then.structured == {"said": ""}


@pytest.mark.parametrize("engine_name", ["wasm"], indirect=True)
@pytest.mark.parametrize("form", MEANT_FOR_TWO)
def test_a_request_in_place_of_an_answer_is_not_carried_out(engine: Engine, form: str) -> None:
    upstream = body(b"{}")
    failed, then = said(engine, upstream, form, "")
    assert failed.failure is not None
    assert "cannot be read" in failed.failure.message
    assert then.structured == {"said": ""}
    assert upstream.asked == []


def test_an_answer_that_is_nested_as_deep_as_allowed_is_read(engine: Engine) -> None:
    deep, then = said(engine, body(b"{}"), "nested", "")
    assert deep.failure is None
    assert then.structured == {"said": ""}
