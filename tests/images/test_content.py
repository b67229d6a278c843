"""What a tool gives beside JSON values."""

from __future__ import annotations

from toolwright import content
from toolwright.results import success
from toolwright.schema import Schema

OPEN = Schema({"type": "object"})


def test_text_stays_as_it_is_and_is_not_written_as_json() -> None:
    result = success(content.text('say "hi"'), OPEN, "t")
    assert result == {"content": [{"type": "text", "text": 'say "hi"'}], "structuredContent": {}}


def test_bytes_are_encoded_once_and_base64_is_taken_as_it_is() -> None:
    for data in (b"hi", "aGk="):
        block = success(content.image(data, "image/png"), OPEN, "t")["content"][0]
        assert block == {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def test_several_parts_keep_their_order_and_programs_get_their_own_value() -> None:
    parts = content.mixed("one", content.audio(b"", "audio/wav"), structured={"n": 2})
    result = success(parts, Schema({"type": "object", "required": ["n"]}), "t")
    assert [block["type"] for block in result["content"]] == ["text", "audio"]
    assert result["structuredContent"] == {"n": 2}


def test_a_document_is_text_or_bytes_under_its_uri() -> None:
    text = content.document("test://a", "a", "text/plain").blocks[0]["resource"]
    blob = content.document("test://a", b"a", "text/plain").blocks[0]["resource"]
    assert (text["text"], blob["blob"]) == ("a", "YQ==")
