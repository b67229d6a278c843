from __future__ import annotations

import hashlib
from typing import Any

import pytest
from toolwright.answers import Answer
from toolwright.errors import MalformedAnswer

ALL = frozenset({"status", "body", "text", "bytes", "sha256", "content_type"})


def structured(content_type: str, data: bytes, wanted: frozenset[str] = ALL) -> dict[str, Any]:
    headers = [("Content-Type", content_type)] if content_type else []
    found = Answer(200, headers, data).checked().structured(wanted)
    assert found.pop("status") == 200
    found.pop("content_type", None)
    if "sha256" in found:
        assert found.pop("sha256") == hashlib.sha256(data).hexdigest()
    return found


@pytest.mark.parametrize(
    ("content_type", "data", "expected"),
    [
        ("application/json", b'{"a":1}', {"body": {"a": 1}}),
        ("application/json", b"null", {"body": None}),
        ("applcation/json", b"[1]", {"body": [1]}),
        ("application/json; charset=utf-8", '"é"'.encode(), {"body": "é"}),
        ("application/json", b'\xef\xbb\xbf"bom"', {"body": "bom"}),
        ("application/json", '"é"'.encode("utf-16"), {"body": "é"}),
        ("application/json;charset=iso-8859-1", b'"\xe9"', {"body": "é"}),
        ("application/json", b'"\xe9"', {"body": "é"}),
        ("application/problem+json", b"[]", {"body": []}),
        ("APPLICATION/VND.X+JSON", b"[]", {"body": []}),
        ("text/json", b"1", {"body": 1}),
        ("application/json", b"", {}),
        ("application/json", b" \r\n", {}),
        ("", b'{"a":1}', {"body": {"a": 1}}),
        ("", b"plain", {"text": "plain"}),
        ("", b"\xff\xfe\xfd\x00\x01", {"bytes": 5}),
        ("application/x-ndjson", b'{"a":1}\n{"a":2}\n', {"text": '{"a":1}\n{"a":2}\n'}),
        ("application/jsonl", b"1", {"text": "1"}),
        ("text/plain", "é".encode(), {"text": "é"}),
        ("text/plain; charset=ISO-8859-1", b"\xe9", {"text": "é"}),
        ('text/plain; charset="windows-1252"', b"\x80", {"text": "€"}),
        ("text/plain; charset=shift_jis", "日".encode("shift_jis"), {"text": "日"}),
        ("text/plain; charset=nonsense", "é".encode(), {"text": "é"}),
        ("text/plain; charset=punycode", b"abc", {"text": "abc"}),
        ("text/plain; charset=utf-8", b"\xe9", {"text": "é"}),
        ("text/html", b"\xe9", {"text": "é"}),
        ("application/xml", b"<a/>", {"text": "<a/>"}),
        ("application/atom+xml", b"<a/>", {"text": "<a/>"}),
        ("text/plain", b'{"a":1}', {"text": '{"a":1}'}),
        ("image/png", b"\x89PNG", {"bytes": 4}),
        ("application/octet-stream", b"text", {"bytes": 4}),
        ("application/vnd.x.v2", b"plain", {"text": "plain"}),
        ("application/vnd.x.v2", b"a\x00", {"bytes": 2}),
        ("application/yaml", b"\x89PNG\x1a", {"bytes": 5}),
    ],
)
def test_a_body_is_what_its_type_says(
    content_type: str, data: bytes, expected: dict[str, Any]
) -> None:
    assert structured(content_type, data) == expected


@pytest.mark.parametrize(
    ("content_type", "data", "wanted", "expected"),
    [
        ("text/plain", b'{"a":1}', {"body"}, {"body": {"a": 1}}),
        ("text/plain", b"plain", {"base64"}, {"base64": "cGxhaW4="}),
        ("application/octet-stream", b"text", {"text"}, {"text": "text"}),
        ("application/octet-stream", b"\xff", {"text"}, {"bytes": 1}),
        ("application/json", b"1", {"text"}, {"body": 1}),
        ("", b"1", {"text"}, {"text": "1"}),
        ("image/png", b"\xff", set(), {"bytes": 1}),
        ("image/png", b"\xff", {"base64"}, {"base64": "/w=="}),
    ],
)
def test_a_body_of_another_type_takes_the_form_that_the_schema_knows(
    content_type: str, data: bytes, wanted: set[str], expected: dict[str, Any]
) -> None:
    assert structured(content_type, data, frozenset(wanted)) == expected


def test_declared_json_that_does_not_parse_is_malformed() -> None:
    with pytest.raises(MalformedAnswer, match="HTTP 200"):
        Answer(200, [("content-type", "application/json")], b"<html>").checked()


def test_what_only_looks_like_json_is_text() -> None:
    assert structured("text/plain", b"{oops") == {"text": "{oops"}
    assert structured("", b"[oops") == {"text": "[oops"}


def test_repeated_headers_are_joined() -> None:
    assert Answer(200, [("A", "1"), ("a", "2")], b"").headers == {"a": "1, 2"}


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("Sat, 01 Jan 2000 00:01:00 GMT", 60.0),
        ("Fri, 31 Dec 1999 00:00:00 GMT", 0.0),
        ("Wed, 01 Mar 2000 00:00:00 GMT", 60 * 86400.0),
        ("-1", None),
        ("soon", None),
        ("1.5", None),
        ("9" * 40, None),
        ("Sat, 01 Foo 2000 00:01:00 GMT", None),
    ],
)
def test_a_retry_hint_is_seconds_or_none(value: str, seconds: float | None) -> None:
    headers = [("Retry-After", value), ("Date", "Sat, 01 Jan 2000 00:00:00 GMT")]
    assert Answer(429, headers, b"").retry_after == seconds
