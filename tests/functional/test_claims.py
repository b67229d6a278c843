"""Arguments that are not as an API's document says: the API decides, unless they may choose what is
done.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from orchestrator.app import open_app
from orchestrator.approvals.rules import RuleRequest, create_rule
from orchestrator.calls import Done, Pending, Reply
from orchestrator.frontends.bundle_directory import BundleDirectory, DirectoryGrants
from orchestrator.settings import load_settings
from orchestrator.views.replies import build_reply_result
from sandbox.broker.live import LiveHttp
from sandbox.bundle.model import Bundle
from sandbox.engines.process import ProcessRunner
from sandbox.wire.policy import parse_origin
from tests.functional.test_calls import Place, relaying
from tests.granted import allow, person
from tests.world.loopback import Answering, served

DOCUMENT = """
openapi: 3.1.0
info: {title: Shop, version: '1'}
paths:
  /things:
    get:
      operationId: getThings
      summary: Get things
      parameters:
      - {name: action, in: query, required: true, schema: {type: string, enum: [list, show]}}
      - {name: sort, in: query, schema: {type: string, enum: [name]}}
      - {name: limit, in: query, schema: {type: integer, maximum: 10}}
      - {name: full, in: query, schema: {type: boolean}}
      - {name: tags, in: query, schema: {type: array, items: {type: string}}}
      responses: {'200': {description: They, content: {application/json: {}}}}
  /things/{id}/files:
    get:
      operationId: getFiles
      summary: Get files
      parameters:
      - {name: id, in: path, required: true, schema: {type: string, pattern: '^[0-9]+$'}}
      responses: {'200': {description: They, content: {application/json: {}}}}
  /orders/{number}:
    get:
      operationId: getOrder
      summary: Get an order
      parameters:
      - {name: number, in: path, required: true, schema: {type: integer}}
      - {name: detail, in: query, schema: {type: object}}
      responses: {'200': {description: It, content: {application/json: {}}}}
  /orders:
    post:
      operationId: createOrder
      parameters:
      - {name: X-Shop, in: header, required: true, schema: {type: string}}
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [item, count]
              properties:
                item: {type: string, enum: [tea]}
                count: {type: integer, maximum: 3}
                paid: {type: boolean}
                colour: {type: object}
      responses: {'200': {description: It, content: {application/json: {}}}}
"""
READING = {"action": "list"}


@dataclass
class Shop:
    """An API that minds nothing but a limit over 100. `heard` is every request that reached it."""

    url: str
    heard: list[tuple[str, str, bytes]] = field(default_factory=list)


class _Counter(Answering):
    def do_GET(self) -> None:
        self.world.heard.append((self.command, self.path, self.body()))
        limit = parse_qs(urlsplit(self.path).query).get("limit", ["1"])[0]
        if int(limit) > 100:
            self.answer_json(422, {"error": "limit is too much"})
        else:
            self.answer_json(200, {"path": self.path})

    do_POST = do_GET


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with served(_Counter, Shop) as api:
        yield api


@pytest.fixture(scope="module")
def made(shop: Shop) -> Bundle:
    document = parse_document(DOCUMENT.encode(), "shop.yaml")
    return compile_document(document, name="shop", base_url=shop.url).bundle


@pytest.fixture(scope="module")
def place(
    any_engine: str, shop: Shop, made: Bundle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    settings = load_settings(home=tmp_path_factory.mktemp("claims"), engine=any_engine)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(settings, "do")))
        try:
            allow(settings, app.store, shop.url)
            here = Place(app, settings, None, runner.run)  # type: ignore[arg-type]
            here.publish(made)
            yield here
        finally:
            runner.run(stack.aclose())


@pytest.fixture
def heard(shop: Shop) -> list[tuple[str, str, bytes]]:
    """What reached the API during a test."""
    shop.heard.clear()
    return shop.heard


def done(reply: Reply) -> Done:
    assert isinstance(reply, Done), reply
    return reply


def texts(reply: Reply) -> list[str]:
    return [block["text"] for block in done(reply).outcome.result["content"]]


Heard = list[tuple[str, str, bytes]]


def test_a_value_that_the_document_does_not_know_is_sent_and_the_api_decides(
    place: Place, heard: Heard
) -> None:
    reply = done(place.call("shop.get_things", **READING, sort="age", limit=50))
    assert reply.outcome.ok
    assert reply.outcome.structured["body"] == {"path": "/things?action=list&sort=age&limit=50"}
    assert len(reply.outcome.result["content"]) == 1


def test_a_path_value_of_another_pattern_is_sent(place: Place, heard: Heard) -> None:
    assert done(place.call("shop.get_files", id="a1")).outcome.ok
    assert [path for _, path, _ in heard] == ["/things/a1/files"]


@pytest.mark.parametrize(
    ("number", "path"),
    [("mine", "/orders/mine"), ("7f/ü", "/orders/7f%2F%C3%BC"), ("7", "/orders/7")],
)
def test_a_text_for_a_number_in_a_path_is_sent(
    number: str, path: str, place: Place, heard: Heard
) -> None:
    assert done(place.call("shop.get_order", number=number)).outcome.ok
    assert [sent for _, sent, _ in heard] == [path]


@pytest.mark.parametrize("number", ["", " ", ".", "..", "1.5", [1], None])
def test_what_is_no_text_and_no_number_for_a_path_is_refused(
    number: Any, place: Place, heard: Heard
) -> None:
    failure = done(place.call("shop.get_order", number=number)).outcome.failure
    assert failure is not None
    assert failure.kind == "arguments"
    assert "/number" in failure.message
    assert "any of the given schemas" not in failure.message
    assert "does not match" not in failure.message
    assert heard == []


@pytest.mark.parametrize(
    ("detail", "query"), [("lid", "detail=lid"), (5, "detail=5"), ({"of": "lid"}, "of=lid")]
)
def test_an_object_of_which_nothing_is_told_is_sent_as_what_it_is(
    detail: Any, query: str, place: Place, heard: Heard
) -> None:
    assert done(place.call("shop.get_order", number=7, detail=detail)).outcome.ok
    assert [sent for _, sent, _ in heard] == [f"/orders/7?{query}"]


def test_a_text_is_sent_in_a_body_where_nothing_is_told_of_an_object(
    place: Place, heard: Heard
) -> None:
    body = {"item": "tea", "count": 1, "colour": "green"}
    asked = place.call("shop.create_order", x_shop="a", body=body)
    assert isinstance(asked, Pending)
    assert done(place.approve(asked.approval)).outcome.ok
    assert [json.loads(sent) for _, _, sent in heard] == [body]


def test_where_the_api_refuses_its_answer_comes_first_and_then_what_the_document_says(
    place: Place, heard: Heard
) -> None:
    reply = place.call("shop.get_things", **READING, sort="age", limit=101)
    said, claims = texts(reply)
    assert "422" in said
    assert "limit is too much" in said
    assert "/limit: 101 is greater than the maximum of 10 (given: 101)" in claims
    assert "/sort: 'age' is not one of ['name']" in claims
    failure = done(reply).outcome.failure
    assert failure is not None
    assert failure.status == 422
    assert failure.message.startswith(said)


def test_a_refusal_of_what_the_document_allows_says_nothing_of_the_document(
    place: Place, heard: Heard
) -> None:
    (said,) = texts(place.call("shop.get_files", id="7?"))
    assert "document" not in said


def test_values_are_read_by_their_types_before_the_record_and_it_is_told_once(
    place: Place, heard: Heard
) -> None:
    reply = place.call("shop.get_things", **READING, full="true", limit="5", tags="new")
    told, note = texts(reply)
    assert "limit=5" in told
    assert note == (
        'Arguments were read by their types: /full "true" as true; /limit "5" as 5; '
        '/tags "new" as ["new"].'
    )
    (latest, *_) = place.records("shop")
    assert latest.arguments == {**READING, "full": True, "limit": 5, "tags": ["new"]}


def test_a_value_with_two_readings_is_refused_naming_both_and_nothing_is_sent(
    place: Place, heard: Heard
) -> None:
    failure = done(place.call("shop.get_things", **READING, tags="a,b")).outcome.failure
    assert failure is not None
    assert failure.kind == "arguments"
    assert '["a,b"] or ["a", "b"]' in failure.message
    assert heard == []


@pytest.mark.parametrize("value", ["", ".", "..", None])
def test_a_path_value_that_would_be_another_path_is_refused(
    value: Any, place: Place, heard: Heard
) -> None:
    reply = place.call("shop.get_files", id=value)
    assert isinstance(reply, Pending) or not done(reply).outcome.ok
    assert heard == []


@pytest.mark.parametrize("value", ["a/b", "../orders", "a/../../orders", "%2e%2e", "a?x=1", "a#b"])
def test_a_path_value_stays_inside_its_segment(value: str, place: Place, heard: Heard) -> None:
    place.call("shop.get_files", id=value)
    for _, path, _ in heard:
        bare = path.partition("?")[0]
        assert bare.startswith("/things/")
        assert bare.count("/") == 3
        assert path == bare


@pytest.mark.parametrize(
    "arguments", [{"action": "delete"}, {"action": "x"}, {"action": 5}, {}, {"action": None}]
)
def test_a_reading_tool_that_is_asked_for_another_act_waits_for_a_person(
    arguments: dict[str, Any], place: Place, heard: Heard
) -> None:
    reply = place.call("shop.get_things", **arguments)
    assert isinstance(reply, Pending)
    assert "may do something else" in reply.reason
    assert heard == []


def test_what_a_person_approves_of_it_is_sent_once_as_it_was_shown(
    place: Place, heard: Heard
) -> None:
    asked = place.call("shop.get_things", action="delete", limit="5")
    assert isinstance(asked, Pending)
    assert asked.approval.wire.url.endswith("/things?action=delete&limit=5")
    assert asked.approval.arguments == {"action": "delete", "limit": 5}
    assert "as 5" in asked.reason
    assert done(place.approve(asked.approval)).outcome.ok
    assert [path for _, path, _ in heard] == ["/things?action=delete&limit=5"]
    (latest, *_) = place.records("shop")
    assert latest.access == "write"


def test_a_composite_that_reads_cannot_have_it_done_either(place: Place, heard: Heard) -> None:
    place.publish(relaying("through", "shop.get_things"), "call:shop.get_things")
    kept = place.call("through.relay", to="shop.get_things", arguments={"action": "list"})
    assert done(kept).outcome.ok
    before = len(heard)
    reply = place.call("through.relay", to="shop.get_things", arguments={"action": "delete"})
    assert not done(reply).outcome.ok
    assert len(heard) == before


def test_nested_calls_have_their_arguments_read_too(place: Place, heard: Heard) -> None:
    place.publish(relaying("typed", "shop.get_things"), "call:shop.get_things")
    given = {"action": "list", "limit": "7"}
    assert done(place.call("typed.relay", to="shop.get_things", arguments=given)).outcome.ok
    assert [path for _, path, _ in heard] == ["/things?action=list&limit=7"]


def test_a_write_is_shown_as_it_would_be_sent_whatever_its_document_requires(
    place: Place, heard: Heard
) -> None:
    reply = place.call("shop.create_order", body={"item": "coal", "count": "9", "paid": None})
    assert isinstance(reply, Pending)
    assert json.loads(reply.approval.wire.body) == {"item": "coal", "count": 9, "paid": None}
    # Who decides, and who asked, is told what the document says otherwise.
    assert "The API's document says otherwise of these arguments" in reply.claims
    assert "/body/paid" in reply.claims
    assert reply.approval.reason.startswith(reply.claims)
    assert "/body/paid" in json.dumps(build_reply_result(reply))
    assert heard == []
    assert done(place.approve(reply.approval)).outcome.ok
    assert [json.loads(body) for _, _, body in heard] == [
        {"item": "coal", "count": 9, "paid": None}
    ]


def test_a_body_that_is_required_and_not_given_is_not_sent(place: Place, heard: Heard) -> None:
    reply = place.call("shop.create_order")
    assert isinstance(reply, Pending)
    assert reply.approval.wire.body == b""


@pytest.fixture
def ruled(place: Place) -> Iterator[None]:
    """A standing rule for orders of one cup of anything."""
    asked = place.call("shop.create_order", x_shop="a", body={"item": "tea", "count": 1})
    assert isinstance(asked, Pending)
    store = place.app.store
    request = RuleRequest(("body.count=1",))
    signer = person(place.settings.pin)
    made = create_rule(store, asked.approval, request, signer, "ann", time.time())
    store.rules.add(made)
    yield
    store.rules.revoke(made.id, "ann", time.time())


def test_a_rule_covers_values_as_they_were_read(place: Place, ruled: None, heard: Heard) -> None:
    reply = done(place.call("shop.create_order", x_shop="a", body={"item": "tea", "count": "1"}))
    assert reply.rule
    assert [json.loads(body) for _, _, body in heard] == [{"item": "tea", "count": 1}]
    assert isinstance(
        place.call("shop.create_order", x_shop="a", body={"item": "tea", "count": "2"}), Pending
    )


def test_a_rule_covers_no_write_without_what_is_required(
    place: Place, ruled: None, heard: Heard
) -> None:
    reply = place.call("shop.create_order", body={"item": "tea", "count": 1})
    assert isinstance(reply, Pending)
    assert heard == []


def test_a_rule_covers_no_value_that_is_not_listed(place: Place, ruled: None, heard: Heard) -> None:
    reply = place.call("shop.create_order", x_shop="a", body={"item": "poison", "count": 1})
    assert isinstance(reply, Pending)
    assert heard == []


def directory_call(made: Bundle, tool: str, writes: bool = False, **arguments: Any) -> Any:
    """The result of a call by `toolwright run DIRECTORY`."""

    async def call() -> Any:
        origin = parse_origin(made.base_url)
        assert origin is not None
        async with LiveHttp(frozenset({origin})) as upstream:
            grants = DirectoryGrants(private=True, writes=writes)
            directory = BundleDirectory(made, ProcessRunner(), grants, upstream)
            try:
                return await directory.call_tool(tool, arguments)
            finally:
                await directory.close()

    return asyncio.run(call())


def test_a_server_that_is_run_from_its_directory_does_the_same(made: Bundle, heard: Heard) -> None:
    read = directory_call(made, "get_things", **READING, limit="50")
    assert read["structuredContent"]["body"] == {"path": "/things?action=list&limit=50"}
    assert "as 50" in read["content"][-1]["text"]
    refused = directory_call(made, "get_things", action="delete")
    assert refused["isError"]
    assert "--allow-writes" in refused["content"][0]["text"]
    assert len(heard) == 1


def test_a_server_that_somebody_wrote_keeps_its_own_schema(made: Bundle, heard: Heard) -> None:
    written = replace(made, provenance=replace(made.provenance, author="client"))
    refused = directory_call(written, "get_things", **READING, limit=50)
    assert refused["isError"]
    assert heard == []
    read = directory_call(written, "get_things", **READING, limit="5")
    assert read["structuredContent"]["status"] == 200
