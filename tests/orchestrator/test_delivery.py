from __future__ import annotations

import base64
from typing import Any

import pytest

from orchestrator.delivery import MAX_BASE64, delivered
from sandbox.runner import Failure

BROKEN = Failure("schema", "'id' is missing", where="/body")


def binary(kind: str, data: bytes = b"\x89PNG") -> Any:
    text = base64.b64encode(data).decode()
    structured = {"status": 200, "base64": text, "content_type": kind}
    result = {"content": [{"type": "text", "text": text}], "structuredContent": structured}
    return delivered(result, None)


def test_an_answer_that_breaks_its_schema_is_flagged_and_no_error() -> None:
    told = {"isError": True, "content": [{"type": "text", "text": 'HTTP 201, but…\n\n{"a":1}'}]}
    assert delivered(told, BROKEN) == {"content": told["content"]}


def test_a_server_that_did_not_notice_is_corrected() -> None:
    silent = {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"status": 200}}
    made = delivered(silent, BROKEN)
    assert "'id' is missing" in made["content"][0]["text"]
    assert made["content"][1:] == silent["content"]
    assert made["structuredContent"] == {"status": 200}


@pytest.mark.parametrize("kind", ["http", "malformed", "timeout", "refused"])
def test_any_other_failure_stays_an_error(kind: str) -> None:
    told = {"isError": True, "content": [{"type": "text", "text": "HTTP 500"}]}
    assert delivered(told, Failure(kind, "HTTP 500")) == told


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        ("image/png", {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}),
        ("audio/ogg", {"type": "audio", "data": "iVBORw==", "mimeType": "audio/ogg"}),
    ],
)
def test_an_image_or_sound_is_one(kind: str, block: Any) -> None:
    made = binary(kind)
    assert made["content"] == [block]
    assert made["structuredContent"] == {"status": 200, "content_type": kind, "bytes": 4}


@pytest.mark.parametrize("kind", ["application/pdf", "image/svg+xml", ""])
def test_other_bytes_are_a_resource(kind: str) -> None:
    (block,) = binary(kind)["content"]
    assert block["type"] == "resource"
    assert block["resource"]["blob"] == "iVBORw=="
    assert block["resource"].get("mimeType", "") == kind


def test_bytes_beyond_the_cap_are_described() -> None:
    (block,) = binary("image/png", bytes(MAX_BASE64))["content"]
    assert block["type"] == "text"
    assert f"{MAX_BASE64} bytes of image/png" in block["text"]
