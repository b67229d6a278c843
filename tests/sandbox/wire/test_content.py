"""Content blocks that come out of a sandbox."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.sanitize import clean_json
from sandbox.wire.content import (
    MAX_BLOCKS,
    MAX_MEDIA,
    clean_answer,
    extract_page_text,
    find_content_problem,
    redact_tool_answer,
)
from sandbox.wire.redaction import Redaction

TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
DOCUMENT = {"uri": "test://a", "text": "a", "mimeType": "text/plain; charset=utf-8"}


def resource(**changed: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {**DOCUMENT, **changed}}


@pytest.mark.parametrize(
    "block",
    [
        TEXT,
        IMAGE,
        {**IMAGE, "type": "audio", "mimeType": "audio/wav", "annotations": {"priority": 1}},
        resource(),
        {"type": "resource", "resource": {"uri": "a:b", "blob": "aGk="}},
        {"type": "resource_link", "uri": "https://example.com/a", "name": "a"},
    ],
)
def test_blocks_of_every_kind_are_taken(block: dict[str, Any]) -> None:
    assert find_content_problem([block, TEXT]) == ""


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        "text",
        ["text"],
        [TEXT] * (MAX_BLOCKS + 1),
        [{}],
        [{"type": ["text"], "text": "a"}],
        [{"type": "html", "text": "<b>"}],
        [{"type": "text"}],
        [{"type": "text", "text": 5}],
        [{**IMAGE, "data": "aGk"}],
        [{**IMAGE, "data": "a Gk="}],
        [{**IMAGE, "data": "\ud800"}],
        [{**IMAGE, "data": b"aGk="}],
        [{**IMAGE, "mimeType": "image/png\r\nX: y"}],
        [{**IMAGE, "mimeType": ""}],
        [{"type": "image", "data": "aGk="}],
        [{"type": "resource", "resource": "test://a"}],
        [resource(uri="no scheme")],
        [resource(uri="test:a b")],
        [resource(uri="test:" + "a" * 3000)],
        [resource(blob="aGk=")],
        [resource(text=None)],
        [{"type": "resource_link", "uri": "test://a"}],
        [{**IMAGE, "data": "AAAA" * (MAX_MEDIA // 8)}] * 3,
    ],
)
def test_what_is_no_content_of_a_tool_is_told(content: Any) -> None:
    assert find_content_problem(content) != ""


def test_a_secret_in_the_bytes_of_a_block_does_not_come_back_and_the_block_stays_one() -> None:
    hide = Redaction(["c4nary-secret"])
    data = base64.b64encode(b"\xff c4nary-secret \xff").decode()
    blocks = [
        {**IMAGE, "data": data},
        {"type": "resource", "resource": {"uri": "a:b", "blob": data}},
        {"type": "text", "text": "c4nary-secret", "data": "aGk="},
    ]
    answer = {"id": "1", "result": {"content": blocks, "structuredContent": {"a": "x"}}}
    clean = redact_tool_answer(answer, hide)
    image, document, text = clean["result"]["content"]
    assert find_content_problem(clean["result"]["content"]) == ""
    assert base64.b64decode(image["data"]) == b"\xff [redacted] \xff"
    assert base64.b64decode(document["resource"]["blob"]) == b"\xff [redacted] \xff"
    assert text["text"] == "[redacted]"
    assert clean["result"]["structuredContent"] == {"a": "x"}


def test_a_short_secret_does_not_spoil_an_image_that_spells_it_by_chance() -> None:
    hide = Redaction(["hunt"])
    answer = {"result": {"content": [{**IMAGE, "data": "aahuntaa"}, TEXT]}}
    assert redact_tool_answer(answer, hide) is answer
    beside = {"result": {"content": [{**IMAGE, "data": "aahuntaa"}, {**TEXT, "text": "hunt"}]}}
    clean = redact_tool_answer(beside, hide)["result"]["content"]
    assert (clean[0]["data"], clean[1]["text"]) == ("aahuntaa", "[redacted]")


@pytest.mark.parametrize("broken", [None, [], {"result": 5}, {"result": {"content": ["c4nary"]}}])
def test_what_is_no_result_is_cleaned_as_it_is(broken: Any) -> None:
    answer = broken if isinstance(broken, dict) else {"error": broken}
    assert "c4nary" not in str(redact_tool_answer(answer, Redaction(["c4nary"])))


TEXTS = st.text(st.sampled_from('a"\\\n\t\x00\x1b\x7f\x9b[m\u200b\u202e\ud800\ufe0f\U000e0041é船u'))
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)


@given(VALUES)
@example({"a": ["x" * 40_000, "\x1b[m"]})
@example({"a": 2**70, "b": "\u202e"})
def test_an_answer_is_cleaned_as_any_json_is(value: Any) -> None:
    assert repr(clean_answer(value)) == repr(clean_json(value))


def test_a_clean_answer_stays_the_same_object() -> None:
    value = {"rows": [{"id": 1, "name": "é \\ \n", "empty": None}]}
    assert clean_answer(value) is value


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<!DOCTYPE html>\n<html><head><title>Error</title><style>a{b:c}</style></head>"
         "<body><h1>Error</h1><p>Plate <b>Z</b> &amp; co<br>is unknown.</body></html>",
         "Error\nPlate Z & co\nis unknown."),
        ("<html><script>if (a < b) { alert('</p>') }</SCRIPT><!-- x --><pre>Cannot GET /x</pre>",
         "Cannot GET /x"),
        ('<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0">\n<html>no</html>',
         "no"),
        ("<html><script>for ever", "(an HTML page without text)"),
        ("<html>" + "<script>" * 30_000, "(an HTML page without text)"),
        ("<html>" + "<" * 200_000 + "a", "<" * 200_000 + "a"),
        ('{"error": "<html>no</html>"}', '{"error": "<html>no</html>"}'),
        ("a <b> c", "a <b> c"),
        ("\n" * 200_000 + "a", "\n" * 200_000 + "a"),
        (f"<html>no &#{'9' * 200_000}; &#{'0' * 9}65; car", "no \ufffd A car"),
    ],
)  # fmt: skip
def test_of_a_page_that_tells_a_failure_the_text_is_told(page: str, text: str) -> None:
    assert extract_page_text(f"HTTP 404 Not Found\n\n{page}") == f"HTTP 404 Not Found\n\n{text}"
