"""What a tool's code gets and what its caller is shown: every kind of result and failure."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from tests.images.conftest import Start
from tests.images.host import Host, answer, definition, refusal

SOURCE = """
from toolwright import UNSET, HttpError, ToolError, http, tool
from toolwright.styles import csv

@tool
def fetch(key="a", tags=UNSET):
    return http.request("GET", "/items/{key}", path={"key": key}, query={"tag": csv(tags)})

@tool
def create(item, *, note=UNSET):
    return http.request("POST", "/items", json={"item": item, "note": note})

@tool
def upload(content):
    return http.request("PUT", "/files", binary=content, content_type="image/png")

@tool
def plain(value):
    return value

@tool
def kinds(**rest):
    kind = rest.get("kind")
    if kind == "tool":
        raise ToolError("no such colour")
    if kind == "bug":
        raise KeyError("secret")
    if kind == "exit":
        raise SystemExit(3)
    if kind == "deep":
        return kinds(**rest)
    if kind == "bodies":
        return http.request("POST", "/items", json={}, text="")
    if kind == "hole":
        return http.request("GET", "/items/{other}", path=rest)
    if kind == "mute":
        class Mute(Exception):
            def __str__(self):
                raise SystemExit
        raise Mute
    if kind == "late":
        class Late(ToolError):
            kind = {1}
        raise Late("x")
    if kind == "later":
        class Later(ToolError):
            def __str__(self):
                return 1 / 0
        raise Later("x")
    return object()

@tool
def forgiving(key):
    try:
        return http.request("GET", "/items/{key}", path={"key": key})
    except HttpError as error:
        return {"status": error.status, "said": error.answer.body}
"""
BODY = {
    "type": "object",
    "properties": {"status": {"type": "integer"}, "body": {"$ref": "#/$defs/Item"}},
    "required": ["status", "body"],
    "$defs": {"Item": {"type": "object", "required": ["name"]}},
}
TOOLS = (
    definition("fetch", output_schema=BODY),
    *map(definition, ("create", "upload", "plain", "kinds", "forgiving")),
)


@pytest.fixture
def host(start: Start) -> Host:
    host = start()
    host.serve_bundle(SOURCE, *TOOLS)
    return host


def failure(result: dict[str, Any]) -> dict[str, Any]:
    assert result["isError"] is True
    assert "structuredContent" not in result
    return dict(result["_meta"]["toolwright/error"])


def text(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    assert block["type"] == "text"
    return str(block["text"])


def test_the_host_is_asked_for_exactly_the_request_that_the_code_makes(host: Host) -> None:
    host.broker = lambda params: answer(200, {"name": "n"})
    identity = host.send("tools/call", {"name": "fetch", "arguments": {"key": "a/b", "tags": [1]}})
    host.wait(identity)
    assert host.asked == [
        {
            "kind": "http",
            "call": identity,
            "method": "GET",
            "url": "https://api.test/v1/items/a%2Fb?tag=1",
            "headers": [["accept", "application/json, */*;q=0.5"]],
        }
    ]


def test_an_answer_is_its_status_and_body_and_the_text_is_the_body_as_sent(host: Host) -> None:
    sent = '{"name": "n",  "size": 12345678901234567890123}'
    host.broker = lambda params: answer(200, sent)
    result = host.call("fetch")
    assert text(result) == sent
    body = {"name": "n", "size": 12345678901234567890123}
    assert result["structuredContent"] == {"status": 200, "body": body}


def test_arguments_that_are_absent_or_unset_are_left_out_of_a_body(host: Host) -> None:
    host.broker = lambda params: answer(201, {})
    host.call("create", item={"n": None})
    host.call("create")
    assert [params["body"] for params in host.asked] == ['{"item":{"n":null}}', "{}"]
    assert ["content-type", "application/json"] in host.asked[0]["headers"]


def of_bytes(kind: str, data: bytes) -> dict[str, Any]:
    headers = [["content-type", kind]] if kind else []
    return {
        "result": {
            "status": 200,
            "headers": headers,
            "body_base64": base64.b64encode(data).decode(),
        }
    }


def test_bytes_travel_as_base64_and_arrive_as_an_image_beside_what_they_are(host: Host) -> None:
    content = base64.b64encode(b"\x89PNG\xff").decode()
    host.broker = lambda params: of_bytes("image/png", b"\x89PNG\xff")
    result = host.call("upload", content=content)
    assert host.asked[0]["body_base64"] == content
    assert "body" not in host.asked[0]
    digest = hashlib.sha256(b"\x89PNG\xff").hexdigest()
    assert result["structuredContent"] == {
        "status": 200,
        "bytes": 5,
        "sha256": digest,
        "content_type": "image/png",
    }
    told, shown = result["content"]
    assert told["text"] == f"image/png, 5 bytes, sha256 {digest}"
    assert shown == {"type": "image", "data": content, "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("sent", "block", "told"),
    [
        ("audio/x-anything", "audio", "audio/x-anything"),
        ("image/jpg; q=1", "image", "image/jpeg"),
        ("image/tiff", "resource", "image/tiff"),
        ("application/pdf", "resource", "application/pdf"),
        ("no type at all", "resource", "application/octet-stream"),
        ("", "resource", "application/octet-stream"),
    ],
)
def test_what_is_no_image_that_clients_show_is_a_document(
    host: Host, sent: str, block: str, told: str
) -> None:
    host.broker = lambda params: of_bytes(sent, b"\xff\x00")
    shown = host.call("forgiving", key="a")["content"][1]
    assert shown["type"] == block
    assert shown.get("resource", shown)["mimeType"] == told


def test_a_document_has_one_uri_as_long_as_its_bytes_are_the_same(host: Host) -> None:
    host.broker = lambda params: of_bytes("application/pdf", params["url"].encode() + b"\xff")
    first, again, other = (
        host.call("forgiving", key=key)["content"][1]["resource"] for key in ("a", "a", "b")
    )
    assert first == again
    assert first["uri"] != other["uri"]
    digest = hashlib.sha256(b"https://api.test/v1/items/a\xff").hexdigest()
    assert first["uri"] == f"toolwright://answer/forgiving/{digest[:16]}"


def test_more_bytes_than_a_result_carries_are_a_failure_that_says_what_to_do(host: Host) -> None:
    host.broker = lambda params: of_bytes("application/pdf", b"\xff" * (3 * 1024 * 1024 + 1))
    result = host.call("forgiving", key="a")
    assert failure(result) == {"kind": "too_large"}
    assert "3145729 bytes" in text(result)
    assert "HTTP 200 OK, so what was asked for is done" in text(result)
    assert "Ask for less" in text(result)


def test_bytes_that_break_the_output_schema_are_shown_all_the_same(host: Host) -> None:
    host.broker = lambda params: of_bytes("image/png", b"\xff")
    result = host.call("fetch")
    assert failure(result)["kind"] == "schema"
    assert result["content"][1]["data"] == "/w=="


def test_a_tool_whose_schema_knows_base64_gives_it_beside_the_block(start: Start) -> None:
    knows = {"type": "object", "properties": {"base64": {"type": "string"}}}
    source = (
        "from toolwright import http, tool\n@tool\ndef a():\n    return http.request('GET', '/')"
    )
    host = start()
    host.serve_bundle(source, definition("a", output_schema=knows))
    host.broker = lambda params: of_bytes("image/png", b"\xff")
    result = host.call("a")
    told = {"status": 200, "base64": "/w==", "content_type": "image/png"}
    assert result["structuredContent"] == told
    assert result["content"][1]["data"] == "/w=="


def test_an_empty_answer_is_a_success(host: Host) -> None:
    host.broker = lambda params: answer(204)
    result = host.call("create", item=1)
    assert result["structuredContent"] == {"status": 204}
    assert text(result) == "HTTP 204 No Content"


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        ({"a": [1]}, {"a": [1]}),
        ([1, "x"], {"result": [1, "x"]}),
        ("text", {"result": "text"}),
        (None, {"result": None}),
        (10**30, {"result": 10**30}),
    ],
)
def test_plain_values_become_structured_content(
    host: Host, value: Any, structured: dict[str, Any]
) -> None:
    result = host.call("plain", value=value)
    assert result["structuredContent"] == structured
    assert json.loads(text(result)) == value


@pytest.mark.parametrize("status", [301, 400, 401, 404, 429, 500, 503, 599])
def test_another_status_than_2xx_is_told_with_all_the_api_said(host: Host, status: int) -> None:
    host.broker = lambda params: answer(status, {"message": "why it failed"}, retry_after="7")
    result = host.call("fetch")
    assert failure(result) == {"kind": "http", "status": status, "retry_after": 7.0}
    assert f"HTTP {status}" in text(result)
    assert "retry after 7 s" in text(result)
    assert '{"message": "why it failed"}' in text(result)


def test_a_retry_date_is_told_in_seconds(host: Host) -> None:
    dates = {
        "retry_after": "Wed, 21 Oct 2015 07:28:30 GMT",
        "date": "Wed, 21 Oct 2015 07:28:00 GMT",
    }
    host.broker = lambda params: answer(503, "<p>later</p>", content_type="text/html", **dates)
    result = host.call("fetch")
    assert failure(result)["retry_after"] == 30.0
    assert "<p>later</p>" in text(result)


def test_a_long_error_body_is_cut_and_says_so(host: Host) -> None:
    host.broker = lambda params: answer(500, "x" * 100_000, content_type="text/plain")
    told = text(host.call("fetch"))
    assert len(told) < 66_000
    assert "(100000 characters in all)" in told


@pytest.mark.parametrize(
    "sent",
    ['{"name": ', "NaN", '{"n": Infinity}', "[" * 50_000, "<html>", '{"n": ' + "1" * 5000 + "}"],
    ids=["cut", "nan", "infinity", "deep", "html", "digits"],
)
def test_declared_json_that_does_not_parse_is_malformed_and_shown(host: Host, sent: str) -> None:
    host.broker = lambda params: answer(200, sent)
    result = host.call("fetch")
    assert failure(result)["kind"] == "malformed"
    assert failure(result)["status"] == 200
    assert sent[:1000] in text(result)


@pytest.mark.parametrize("sent", ["[" * 110 + "]" * 110, '{"a":' * 110 + "1" + "}" * 110])
def test_a_result_nested_deeper_than_the_host_takes_is_a_failure(host: Host, sent: str) -> None:
    host.broker = lambda params: answer(200, sent)
    assert failure(host.call("forgiving", key="a"))["kind"] == "too_large"


def test_a_number_beyond_a_double_is_a_failure_and_not_a_broken_line(host: Host) -> None:
    host.broker = lambda params: answer(200, '{"n": 1e999}')
    assert failure(host.call("forgiving", key="a"))["kind"] == "too_large"


def test_a_result_that_breaks_the_output_schema_says_where_and_shows_the_body(host: Host) -> None:
    host.broker = lambda params: answer(200, {"title": "lost?"})
    result = host.call("fetch")
    told = failure(result)
    assert (told["kind"], told["where"]) == ("schema", "/body")
    assert "'name' is missing" in told["reason"]
    assert '{"title": "lost?"}' in text(result)
    assert "HTTP 200" in text(result)


@pytest.mark.parametrize(
    "kind", ["refused", "timeout", "unreachable", "too_large", "rate_limited", "frozen", "captured"]
)
def test_what_the_broker_refuses_is_told_by_its_kind(host: Host, kind: str) -> None:
    host.broker = lambda params: refusal(kind, "this is why", retry_after=2)
    result = host.call("fetch")
    assert failure(result) == {"kind": kind, "retry_after": 2.0}
    assert "this is why" in text(result)


@pytest.mark.parametrize(
    "error",
    [None, [], {}, {"data": []}, {"data": {"kind": ["x"]}}, {"data": {"kind": "unsupported"}}],
)
def test_a_broker_error_without_a_known_kind_is_a_refusal(host: Host, error: Any) -> None:
    host.broker = lambda params: {"error": error}
    assert failure(host.call("fetch"))["kind"] == "refused"


@pytest.mark.parametrize("key", ["", ".", "..", None, []])
def test_a_path_value_that_would_change_the_route_is_an_argument_failure(
    host: Host, key: Any
) -> None:
    told = failure(host.call("fetch", key=key))
    assert (told["kind"], told["where"]) == ("arguments", "/key")
    assert host.asked == []


def test_an_argument_that_the_code_does_not_take_is_an_argument_failure(host: Host) -> None:
    told = failure(host.call("fetch", other=1))
    assert (told["kind"], told["where"]) == ("arguments", "/other")


def test_a_tool_error_is_the_caller_s_to_read(host: Host) -> None:
    result = host.call("kinds", kind="tool")
    assert failure(result) == {"kind": "tool"}
    assert text(result) == "no such colour"


@pytest.mark.parametrize(
    ("kind", "name", "line"),
    [
        ("bug", "KeyError", 27),
        ("exit", "SystemExit", 29),
        ("deep", "RecursionError", 31),
        ("bodies", "TypeError", 33),
        ("hole", "TypeError", 35),
        ("mute", "Mute", 40),
        ("late", "TypeError", None),
        ("later", "ZeroDivisionError", 48),
        ("object", "TypeError", None),
    ],
)
def test_any_other_exception_is_a_bug_with_type_and_line_only(
    host: Host, kind: str, name: str, line: int | None
) -> None:
    result = host.call("kinds", kind=kind)
    assert failure(result) == {"kind": "bug", "type": name, "line": line}
    assert "secret" not in text(result)
    assert "result" in host.request("ping")


def test_the_code_may_handle_what_the_api_answered(host: Host) -> None:
    host.broker = lambda params: answer(404, {"code": 5})
    result = host.call("forgiving", key="a")
    assert result["structuredContent"] == {"status": 404, "said": {"code": 5}}


def test_with_a_broker_the_host_has_checked_the_arguments(start: Start) -> None:
    host = start()
    schema = {"type": "object", "properties": {"value": {"type": "integer"}}}
    host.serve_bundle(
        "from toolwright import tool\n@tool\ndef plain(value):\n    return value\n",
        definition("plain", input_schema=schema),
    )
    assert host.call("plain", value="x")["structuredContent"] == {"result": "x"}


def test_without_a_broker_the_arguments_are_checked(start: Start) -> None:
    host = start()
    schema = {
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"type": "integer"}}},
        "required": ["value"],
    }
    host.serve_bundle(
        "from toolwright import tool\n@tool\ndef plain(value):\n    return value\n",
        definition("plain", input_schema=schema),
        brokered=False,
    )
    assert failure(host.call("plain", value=[1, "x"]))["where"] == "/value/1"
    assert failure(host.call("plain"))["kind"] == "arguments"
    assert host.call("plain", value=[1])["structuredContent"] == {"result": [1]}
