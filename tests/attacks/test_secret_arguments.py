"""A key that a document lists as an ordinary parameter goes to its API and nowhere else."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from orchestrator.app import App, open_app
from orchestrator.calls import Call, Done, RefusedCall, Reply
from orchestrator.replay.rerun import compare_call
from orchestrator.settings import load_settings
from registry.models import build_entry
from tests.granted import allow
from tests.world.loopback import Answering, served

CANARY = "zq7-canary-of-an-api-key-4711"


@dataclass
class World:
    """An API that repeats in its answers whatever it is asked."""

    url: str
    asked: list[str] = field(default_factory=list)


class _Answering(Answering):
    def do_GET(self) -> None:
        self.world.asked.append(self.path)
        asked = parse_qs(urlsplit(self.path).query)
        self.answer_json(400 if "/rain" in self.path else 200, {"you asked": asked})

    def do_POST(self) -> None:
        self.world.asked.append(self.path)
        self.answer_json(201, {})


def describe(url: str) -> bytes:
    """The weather's API: its key is a required parameter that no security scheme names."""

    def operation(name: str, *others: str) -> dict[str, Any]:
        parameters = [
            {"name": each, "in": "query", "required": True, "schema": {"type": "string"}}
            for each in ("api_key", *others)
        ]
        answers = {"200": {"description": "ok"}}
        return {"operationId": name, "parameters": parameters, "responses": answers}

    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "Weather", "version": "1"},
            "servers": [{"url": url}],
            "paths": {
                "/weather": {"get": operation("getWeather", "key"), "post": operation("addDay")},
                "/rain": {"get": operation("getRain")},
            },
        }
    ).encode()


@dataclass
class Place:
    app: App
    world: World
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    def call(self, tool: str, **arguments: Any) -> Reply:
        reply: Reply = self.run(self.app.dispatch.call_tool(Call("weather", tool, arguments)))
        self.run(self.app.dispatch.ledger.wait_written())
        return reply

    def list_records(self, identity: str) -> str:
        """All that is stored of a call, its recording and the audit included."""
        store = self.app.store
        rows = [str(row) for row in store.audit.find(limit=1000)]
        return f"{store.calls.get(identity)} {store.calls.get_recording(identity)} {rows}"


@pytest.fixture(scope="module")
def place(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    settings = load_settings(home=tmp_path_factory.mktemp("weather"), engine=any_engine)
    with served(_Answering, World) as world, asyncio.Runner() as runner:
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(settings, "do")))
        try:
            allow(settings, app.store, world.url)
            bundle = compile_document(parse_document(describe(world.url), "w.json")).bundle
            app.forge.shelf.publish_bundle(bundle, build_entry(bundle, time.time()), (), None)
            app.roster.forget_servers()
            yield Place(app, world, runner.run)
        finally:
            runner.run(stack.aclose())


def test_a_key_among_the_arguments_is_in_no_record_and_no_result(place: Place) -> None:
    reply = place.call("get_weather", api_key=CANARY, key="berlin")
    assert isinstance(reply, Done)
    assert CANARY in place.world.asked[-1]
    told = f"{reply.outcome} {place.list_records(reply.invocation)}"
    assert CANARY not in told
    assert reply.outcome.structured["body"]["you asked"]["key"] == ["berlin"]
    assert place.app.store.calls.get(reply.invocation).arguments["key"] == "berlin"


def test_a_refusal_that_repeats_the_key_is_told_without_it(place: Place) -> None:
    reply = place.call("get_rain", api_key=CANARY)
    assert isinstance(reply, Done)
    assert reply.outcome.failure is not None
    assert reply.outcome.failure.status == 400
    assert CANARY not in f"{reply.outcome} {reply.cause} {place.list_records(reply.invocation)}"


def test_a_call_runs_again_from_a_record_without_its_key(place: Place) -> None:
    reply = place.call("get_weather", api_key=CANARY, key="bern")
    assert isinstance(reply, Done)
    calls, dispatch = place.app.store.calls, place.app.dispatch
    bundle = dispatch.roster.get_server("weather").bundle
    asked = len(place.world.asked)
    stored = calls.get(reply.invocation), calls.get_recording(reply.invocation)
    again = compare_call(dispatch.execution.engine, bundle, *stored)
    assert place.run(again) is None
    assert len(place.world.asked) == asked


def test_a_write_with_a_key_among_its_arguments_is_not_kept_for_an_approval(place: Place) -> None:
    asked = len(place.world.asked)
    reply = place.call("add_day", api_key=CANARY)
    assert isinstance(reply, RefusedCall)
    assert "toolwright secret set weather.api_key --auth query:api_key" in reply.reason
    assert CANARY not in reply.reason
    assert len(place.world.asked) == asked
    assert place.app.store.approvals.find() == ()
