"""Content blocks that come out of a sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.content import MAX_BLOCKS, MAX_MEDIA, content_problem

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
    assert content_problem([block, TEXT]) == ""


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
    assert content_problem(content) != ""
