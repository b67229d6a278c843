"""What arrived with 2xx is the result: whole, no error, readable, whatever the document says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from jsonschema import Draft202012Validator
from toolwright.broker import BrokerTransport
from toolwright.protocol import Connection, PendingCall

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from orchestrator.calls import Call, Done
from orchestrator.frontends.protocol import clean_result
from orchestrator.views.replies import build_reply_result
from registry.trust import TrustRecord, compute_standing
from sandbox.bundle.model import Bundle
from sandbox.schemas.validator import get_checker
from sandbox.session.differences import judge_result
from sandbox.session.interface import Outcome
from tests.images import conftest  # noqa: F401

JSON_TYPE = "application/json"
words = some.text('abcxyzäö {}[]",:-0179\\', max_size=8)
values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(-1e9, 1e9) | words,
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(some.sampled_from(["a", "b", "c", "x-y"]), inner, max_size=4)
    ),
    max_leaves=8,
)
scalars: some.SearchStrategy[dict[str, Any]] = some.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "enum": ["on", "off"]},
        {"type": "string", "const": "thing"},
        {"type": "string", "minLength": 3, "maxLength": 5, "pattern": "^[a-c]*$"},
        {"type": "integer", "minimum": 1, "maximum": 9},
        {"type": "number"},
        {"type": "boolean"},
        {"$ref": "#/components/schemas/Node"},
    ]
)
schemas = some.recursive(
    scalars,
    lambda inner: some.one_of(
        some.builds(lambda item: {"type": "array", "items": item, "uniqueItems": True}, inner),
        some.builds(
            lambda parts, closed: {
                "type": "object",
                "properties": parts,
                "required": sorted(parts),
                "additionalProperties": not closed,
            },
            some.dictionaries(some.sampled_from(["a", "b", "c"]), inner, max_size=3),
            some.booleans(),
        ),
        some.builds(lambda one, two: {"oneOf": [one, two]}, inner, inner),
        some.builds(lambda one, two: {"allOf": [one, {"anyOf": [one, two]}]}, inner, inner),
    ),
    max_leaves=5,
)
NODE = {
    "type": "object",
    "required": ["a", "next"],
    "properties": {"a": {"type": "integer"}, "next": {"$ref": "#/components/schemas/Node"}},
}
Edit = Callable[[Any], Any]


class Standalone(BrokerTransport):
    """A way out as that of an exported server, whose client sees the output schema."""

    checks_arguments = False


def compiled(schema: Any, method: str = "get") -> Bundle:
    content = {JSON_TYPE: {"schema": schema}}
    operation = {"operationId": "thing", "responses": {"200": {"content": content}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Things", "version": "1"},
        "servers": [{"url": "https://api.test"}],
        "paths": {"/thing": {method: operation}},
        "components": {"schemas": {"Node": NODE}},
    }
    return compile_document(parse_document(json.dumps(document).encode(), "t.json")).bundle


def called(
    bundle: Bundle,
    body: str,
    status: int = 200,
    way: type[BrokerTransport] = BrokerTransport,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The result of the bundle's tool where its API answers with this body, as JSON."""
    told = {"content-type": JSON_TYPE, **(headers or {})}
    answer = {"status": status, "headers": list(map(list, told.items())), "body": body}
    connection = Connection(
        None, lambda made, _: way(made.base_url, lambda params: {"result": answer})
    )
    load = {
        "manifest": bundle.build_manifest(),
        "tools": bundle.list_runtime_tools(),
        "source": bundle.source_code,
    }
    begin = {"capabilities": {"experimental": {"toolwright/request": {}}}}
    call = {"name": bundle.tools[0].name, "arguments": {}}
    for method, params in (("toolwright/load", load), ("initialize", begin), ("tools/call", call)):
        got = connection.receive({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert isinstance(got, PendingCall)
    result: dict[str, Any] = got.run()["result"]
    return result


def judged(bundle: Bundle, result: dict[str, Any]) -> Outcome:
    """What the host makes of a runtime's result."""
    tool = bundle.tools[0]
    assert not result.get("isError"), result
    problem = get_checker(tool.output_schema).find_problem(result.get("structuredContent"))
    made = judge_result(tool, result, problem)
    return Outcome(tool.name, made.result, made.failure, difference=made.difference)


def check_whole(bundle: Bundle, body: str) -> Outcome:
    """The result of an answer, after it was found to be whole for every kind of client."""
    outcome = judged(bundle, called(bundle, body))
    assert outcome.ok
    call = Call(bundle.name, outcome.tool, {})
    done = Done(call, "1", outcome, compute_standing(TrustRecord(1)))
    for given_ in (build_reply_result(done), clean_result(outcome.delivered, outcome.failure)):
        assert not given_.get("isError")
        texts = [block["text"] for block in given_["content"]]
        assert texts[0] == (body or "HTTP 200 OK")
        assert len(texts) == 1 + (outcome.difference is not None)
        if "structuredContent" in given_:
            check_structured(bundle, given_["structuredContent"], body)
    strict = called(bundle, body, way=Standalone)
    assert not strict.get("isError")
    assert strict["content"][0]["text"] == (body or "HTTP 200 OK")
    check_structured(bundle, strict["structuredContent"], body)
    return outcome


def check_structured(bundle: Bundle, structured: Any, body: str) -> None:
    """Whether a strict client takes it: it validates, and holds the body."""
    schema = bundle.tools[0].build_listing(bundle.base_url)["outputSchema"]
    Draft202012Validator(schema).validate(structured)
    if "body" in structured:
        assert structured["body"] == json.loads(body)
    elif body.strip():
        assert structured["text"] == body


@settings(max_examples=60)
@given(schemas, values)
def test_any_json_is_given_whole_whatever_is_documented(schema: Any, value: Any) -> None:
    check_whole(compiled(schema), json.dumps(value, ensure_ascii=False))


@settings(max_examples=30)
@given(schemas, words | some.just('{"a": 1}\n{"a": null}\n') | some.just('{"cut": [1, '))
def test_what_is_sent_as_json_and_is_none_is_given_whole_as_text(schema: Any, body: str) -> None:
    check_whole(compiled(schema), body)


def holed(schema: Any, hole: int, depth: int = 0) -> Any:
    """A value of the schema in which each place may be null or missing, as `hole`'s bits say."""
    if hole >> depth & 1 or depth > 6:
        return None
    if "$ref" in schema:
        return {"a": None, "next": holed(NODE, hole, depth + 1)}
    for key in ("oneOf", "allOf", "anyOf"):
        if key in schema:
            return holed(schema[key][0], hole, depth)
    if schema.get("type") == "array":
        return [holed(schema["items"], hole, depth + 1)]
    if schema.get("type") == "object":
        parts = list(schema["properties"].items())[hole % 2 :]
        return {name: holed(part, hole, depth + 1) for name, part in parts}
    fits = {"integer": 5, "number": 0.5, "boolean": True}
    kind = schema.get("type")
    return schema.get("const", (schema.get("enum") or [fits.get(kind, "abc")])[0])


@settings(max_examples=60)
@given(schemas, some.integers(0, 127))
def test_nulls_and_missing_fields_are_no_difference_anywhere(schema: Any, hole: int) -> None:
    bundle = compiled(schema)
    outcome = check_whole(bundle, json.dumps(holed(schema, hole)))
    assert outcome.difference is None
    assert outcome.delivered is outcome.result


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_difference_is_told_beside_the_answer_and_to_whoever_records_it(method: str) -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    bundle = compiled(schema, method)
    outcome = check_whole(bundle, '{"count": "seven"}')
    assert outcome.difference is not None
    assert (outcome.difference.kind, outcome.difference.where) == ("schema", "/body/count")
    assert outcome.structured == {"status": 200, "body": {"count": "seven"}}
    assert "structuredContent" not in outcome.delivered
    note = outcome.result["content"][1]["text"]
    assert note.startswith("(Note: this differs from the API's description at /body/count: ")


def test_headers_to_go_on_by_are_told_beside_an_answer_that_differs() -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    bundle = compiled(schema)
    headers = {"ETag": '"v7"', "X-Pagination": '{"total": 9}', "Server": "x"}
    result = called(bundle, '{"count": "seven"}', headers=headers)
    delivered = judged(bundle, result).delivered
    assert delivered["content"][-1]["text"] == '(Headers: etag: "v7"; x-pagination: {"total": 9})'
    plain = judged(bundle, called(bundle, '{"count": 7}', headers=headers)).delivered
    assert len(plain["content"]) == 1
    assert plain["structuredContent"]["headers"]["etag"] == '"v7"'


@pytest.mark.parametrize("prefix", ["", "X-"])
def test_headers_that_tell_of_pages_are_told_with_and_without_their_old_prefix(prefix: str) -> None:
    names = ("Total-Count", "Next-Page", "Pagination-Count", "RateLimit-Remaining")
    headers = {f"{prefix}{name}": "9" for name in names}
    result = called(compiled({"type": "object"}), "{}", headers=headers | {"Server": "x"})
    told = result["structuredContent"]["headers"]
    assert told == {name.lower(): "9" for name in headers}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"a": 1}\n\n{"a": 2}\n', "2 lines, each of them JSON"),
        ("moved, see the wiki", "is no JSON (Expecting value"),
        ('{"a": NaN}', "is no JSON (NaN is not JSON"),
    ],
)
def test_a_body_that_is_no_json_is_text_and_a_note_says_what_it_is(body: str, told: str) -> None:
    outcome = check_whole(compiled({"type": "object"}), body)
    assert outcome.difference is not None
    assert outcome.difference.kind == "malformed"
    assert told in outcome.text
    assert outcome.structured["text"] == body


def test_json_nested_deeper_than_a_result_may_be_is_given_as_text() -> None:
    outcome = check_whole(compiled({"type": "array"}), "[" * 150 + "]" * 150)
    assert outcome.difference is not None
    assert outcome.difference.kind == "depth"
    assert "body" not in outcome.structured


def test_other_statuses_than_2xx_stay_failures() -> None:
    result = called(compiled({"type": "object"}), '{"error": null}', 404)
    assert result["isError"]
    assert '{"error": null}' in result["content"][0]["text"]


AUTHORED = """
from toolwright import http, tool

@tool
def thing():
    return http.request("GET", "/thing")
"""


@pytest.mark.parametrize("body", ['{"count": "seven"}', "no json"])
def test_a_tool_of_its_own_making_is_held_to_its_schema(body: str) -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    made = compiled(schema)
    tool = made.tools[0]
    own = type(tool)(**{**vars(tool), "operation": ""})
    bundle = type(made)(**{**vars(made), "tools": (own,), "source_code": AUTHORED})
    result = called(bundle, body)
    assert result["isError"]
    assert result["_meta"]["toolwright/error"]["kind"] in ("schema", "malformed")
