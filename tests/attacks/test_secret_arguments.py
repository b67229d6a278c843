"""A key that a document lists as an ordinary parameter, and a password in a body, go to their API
and nowhere else.
"""

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
from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.approvals.text import hash_approval, render_approval
from orchestrator.calls import Call, Done, Pending, RefusedCall, Reply
from orchestrator.errors import SecretInTask
from orchestrator.gateway.secret_arguments import (
    MAX_SCHEMAS,
    find_secret_arguments,
    hide_outcome_beside,
)
from orchestrator.replay.rerun import compare_call
from orchestrator.settings import load_settings
from registry.models import build_entry
from registry.secrets.vault import SEALED, Secret
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import ToolDefinition
from sandbox.session.interface import Outcome
from sandbox.session.recording import CallLog
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse
from tests.granted import PIN, allow
from tests.world.loopback import Answering, served

CANARY = "zq7-canary-of-an-api-key-4711"


@dataclass
class World:
    """An API that repeats in its answers whatever it is asked."""

    url: str
    asked: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


class _Answering(Answering):
    def do_GET(self) -> None:
        self.world.asked.append(self.path)
        asked = parse_qs(urlsplit(self.path).query)
        self.answer_json(400 if "/rain" in self.path else 200, {"you asked": asked})

    def do_POST(self) -> None:
        self.world.asked.append(self.path)
        self.world.bodies.append(self.body())
        self.answer_json(201, {"made": json.loads(self.world.bodies[-1] or b"{}")})


TEXT = {"type": "string"}
USER = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "password": TEXT,
        "logins": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"site": TEXT, "pin_code": {**TEXT, "format": "password"}},
            },
        },
    },
}


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
                "/users": {
                    "post": {
                        "operationId": "addUser",
                        "requestBody": {"content": {"application/json": {"schema": USER}}},
                        "responses": {"201": {"description": "made"}},
                    }
                },
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

    def approve(self, approval: str) -> Reply:
        """A person approves, and this process carries it out."""
        store, now = self.app.store, time.time()
        digest = hash_approval(store.approvals.get(approval))
        wanted = Decision(approval, True, PIN, "test", digest=digest)
        assert not decide_with_pin(self.app.settings, store, wanted, now).refused
        forgery = self.app.signed_policy.check_forgery
        claimed = store.approvals.claim(approval, self.app.process, now, forgery)
        assert claimed is not None
        reply: Reply = self.run(self.app.dispatch.carry_out_approval(claimed))
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


SECRETS = (CANARY, "second-canary-4712", "third-canary-4713")
NEW_USER = {
    "name": "Ada",
    "password": SECRETS[0],
    "logins": [{"site": "a", "pin_code": SECRETS[1]}, {"site": "b", "pin_code": SECRETS[2]}],
}


def test_a_password_in_a_body_waits_in_the_vault_and_is_sent_as_it_was_given(place: Place) -> None:
    """Whoever approves is shown all of the request but the secrets; the row has as little."""
    reply = place.call("add_user", body=NEW_USER)
    assert isinstance(reply, Pending)
    row = place.app.store.approvals.get(reply.approval.id)
    shown = render_approval(row)
    assert '"site":"b"' in shown.replace(" ", "")
    assert shown.count("[redacted]") >= len(SECRETS)
    files = [path for path in place.app.settings.home.rglob("*") if path.is_file()]
    kept = b"".join(path.read_bytes() for path in files)
    assert not any(secret in f"{shown} {row}" or secret.encode() in kept for secret in SECRETS)
    done = place.approve(row.id)
    assert isinstance(done, Done)
    assert json.loads(place.world.bodies[-1]) == NEW_USER
    assert done.outcome.structured["body"]["made"] == NEW_USER
    records = f"{place.list_records(done.invocation)} {place.app.store.approvals.get(row.id)}"
    assert not any(secret in records for secret in SECRETS)
    assert place.app.vault.get(SEALED, row.id) is None


def test_a_value_that_is_elsewhere_in_the_request_hides_nothing_from_who_approves(
    place: Place,
) -> None:
    """Else a caller could have any part of a request left out by calling it the password."""
    reply = place.call("add_user", body={"name": "drop everything", "password": "drop everything"})
    assert isinstance(reply, Pending)
    assert "drop everything" in render_approval(place.app.store.approvals.get(reply.approval.id))
    done = place.approve(reply.approval.id)
    assert isinstance(done, Done)
    assert json.loads(place.world.bodies[-1])["name"] == "drop everything"


PINS = {
    "one that counts for nothing": ["x[redacted]"],
    "one over two places": ["left", "right", 'left"}, {"pin_code": "right'],
    "one over two places, closely written": ["left", "right", 'left"},{"pin_code":"right'],
}


@pytest.mark.parametrize("pins", PINS)
@pytest.mark.parametrize("word", ["drop everything", "users", "name"])
def test_no_number_of_secrets_hides_anything_else_from_who_approves(
    place: Place, word: str, pins: str
) -> None:
    logins = [{"pin_code": pin} for pin in PINS[pins]]
    reply = place.call(
        "add_user", body={"name": "drop everything", "logins": logins, "password": word}
    )
    assert isinstance(reply, Pending)
    row = place.app.store.approvals.get(reply.approval.id)
    assert row.wire.url == f"{place.world.url}/users"
    assert json.loads(row.wire.body)["name"] == "drop everything"


@pytest.mark.parametrize("change", ["gone", "another name", "another path"])
def test_a_sealed_write_that_is_not_the_one_that_was_shown_is_not_made(
    place: Place, change: str
) -> None:
    reply = place.call("add_user", body={"name": "Bob", "password": CANARY})
    assert isinstance(reply, Pending)
    held = place.app.vault.get(SEALED, reply.approval.id)
    assert held is not None
    kept = json.loads(held.reveal())
    if change == "another name":
        kept["arguments"]["body"]["name"] = "Eve"
        kept["wire"][3] = bytes.fromhex(kept["wire"][3]).replace(b"Bob", b"Eve").hex()
    elif change == "another path":
        kept["wire"][1] += "?admin=true"
    place.app.vault.put(SEALED, reply.approval.id, Secret(json.dumps(kept)))
    if change == "gone":
        place.app.vault.delete(SEALED, reply.approval.id)
    asked = len(place.world.asked)
    refused = place.approve(reply.approval.id)
    assert isinstance(refused, RefusedCall)
    assert "ask again" in refused.reason
    assert len(place.world.asked) == asked
    assert place.app.store.approvals.get(reply.approval.id).state == "failed"


def test_what_was_sealed_for_a_write_that_was_rejected_is_forgotten(place: Place) -> None:
    kept = place.call("add_user", body={"name": "Cy", "password": CANARY})
    reply = place.call("add_user", body={"name": "Di", "password": CANARY})
    assert isinstance(reply, Pending)
    assert isinstance(kept, Pending)
    place.app.store.approvals.decide(reply.approval.id, False, by="test", now=time.time())
    place.app.dispatch.captures.sealed.prune()
    assert place.app.vault.get(SEALED, reply.approval.id) is None
    assert place.app.vault.get(SEALED, kept.approval.id) is not None


def test_a_task_that_says_the_key_is_recorded_without_it(place: Place) -> None:
    call = Call("weather", "get_weather", {"api_key": CANARY, "key": "x"}, f"weather with {CANARY}")
    reply = place.run(place.app.dispatch.call_tool(call))
    place.run(place.app.dispatch.ledger.wait_written())
    assert isinstance(reply, Done)
    assert CANARY not in place.list_records(reply.invocation)
    assert "weather with" in place.app.store.calls.get(reply.invocation).task


def test_a_task_with_a_password_in_its_words_is_not_stored(place: Place) -> None:
    before = place.app.store.jobs.find()
    with pytest.raises(SecretInTask) as refused:
        place.app.jobs.create_job("do", {"task": "add the user ada with password: Xk82hfq91"})
    assert "Xk82hfq91" not in str(refused.value)
    assert place.app.store.jobs.find() == before


@pytest.mark.parametrize(
    "task", ["reset the password of user 12345678", "explain token: a word", "show commit 3f9a8c1d"]
)
def test_a_task_about_passwords_is_a_task(place: Place, task: str) -> None:
    assert place.app.jobs.create_job("do", {"task": task}).request["task"] == task


def tool(name: str, place: str, schema: dict[str, Any], **fields: Any) -> ToolDefinition:
    properties = {name: {**schema, "x-in": place}}
    schema = {"type": "object", "properties": properties, **fields}
    return ToolDefinition("tool", "", schema, {"type": "object"}, "read")


@pytest.mark.parametrize(
    ("name", "place", "schema", "wanted"),
    [
        ("password", "query:password", TEXT, ""),
        ("pass", "path:pass", {**TEXT, "description": "Password of the account"}, ""),
        ("answer", "query:answer", {**TEXT, "format": "password"}, ""),
        ("token", "query:token", {**TEXT, "description": "Your API token"}, "query:token"),
        ("key", "header:key", {**TEXT, "description": "Authentication key"}, "header:key"),
        ("X-Shop", "header:X-Shop", TEXT, "header:X-Shop"),
        ("api_key", "path:api_key", TEXT, ""),
    ],
)
def test_what_a_document_says_of_a_parameter_makes_it_a_secret(
    name: str, place: str, schema: dict[str, Any], wanted: str
) -> None:
    declared = (Credential("shop", "apiKey", "header", "X-Shop"),)
    assert find_secret_arguments(tool(name, place, schema), declared) == {(name,): wanted}


@pytest.mark.parametrize(
    ("name", "place", "schema"),
    [
        ("key", "query:key", {**TEXT, "description": "The key of the project, such as ABC"}),
        ("token", "query:token", {**TEXT, "description": "Token of the next page"}),
        ("code", "query:code", {**TEXT, "description": "Country code"}),
        ("password", "query:password", {"type": "boolean"}),
        ("password", "query:password", {**TEXT, "enum": ["none", "required"]}),
        ("password_hint", "query:password_hint", TEXT),
        ("passport", "query:passport", TEXT),
        ("compass", "query:compass", TEXT),
        ("pin", "query:pin", {**TEXT, "description": "Whether it stays at the top"}),
    ],
)
def test_names_alone_make_no_secret_of_what_is_none(
    name: str, place: str, schema: dict[str, Any]
) -> None:
    assert find_secret_arguments(tool(name, place, schema)) == {}


def test_a_schema_that_refers_to_itself_is_searched_within_bounds() -> None:
    """Ninety-nine fields that each have ninety-nine such fields."""
    fields = {f"f{each}": {"$ref": "#/$defs/Node"} for each in range(99)}
    node = {"type": "object", "properties": {**fields, "password": TEXT}}
    body = tool("body", "body", {"$ref": "#/$defs/Node"}, **{"$defs": {"Node": node}})
    found = find_secret_arguments(body)
    assert ("body", "password") in found
    assert len(found) <= MAX_SCHEMAS


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
    assert "add_day" not in {each.tool for each in place.app.store.approvals.find()}


@pytest.mark.parametrize("of", ["the call", "its server"])
def test_nothing_waits_until_what_an_api_answered_is_searched_for_a_secret(of: str) -> None:
    """Neither for the caller's answer nor, once more, for the record."""
    tape, unseen = CallLog(), "a\u200b" * 500_000
    tape.keep_out({CANARY})
    request = WireRequest("GET", "https://api.test/users", (), b"")
    answer = WireResponse(200, (), f"{unseen}{CANARY}".encode())
    tape.exchanges.append(Exchange(request, answer))
    outcome = Outcome("add_user", {"content": [{"type": "text", "text": unseen}]}, None)
    secrets = frozenset({CANARY}) if of == "the call" else frozenset()
    call = Call("weather", "add_user", secrets=secrets)

    async def run() -> int:
        hiding, turns = asyncio.create_task(hide_outcome_beside(call, outcome, tape)), 0
        while not hiding.done():
            turns += 1
            await asyncio.sleep(0)
        await hiding
        return turns

    assert asyncio.run(run()) > 100
    (safe,) = tape.list_safe_exchanges()
    assert safe is tape.list_safe_exchanges()[0]
    assert safe.response is not None
    assert CANARY.encode() not in safe.response.body
    tape.keep_out({"another secret"})
    tape.exchanges.append(Exchange(request, WireResponse(200, (), b"another secret")))
    assert [e.response and e.response.body for e in tape.list_safe_exchanges()][1] == b"[redacted]"
