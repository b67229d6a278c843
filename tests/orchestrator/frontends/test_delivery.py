from __future__ import annotations

import pytest

from orchestrator.frontends.protocol import clean_result
from sandbox.session.interface import Failure

BROKEN = Failure("schema", "'id' is missing", where="/body")


def test_an_answer_that_breaks_its_schema_is_flagged_and_no_error() -> None:
    told = {"isError": True, "content": [{"type": "text", "text": 'HTTP 201, but…\n\n{"a":1}'}]}
    assert clean_result(told, BROKEN) == {"content": told["content"]}


def test_a_server_that_did_not_notice_is_corrected() -> None:
    silent = {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"status": 200}}
    made = clean_result(silent, BROKEN)
    assert "'id' is missing" in made["content"][0]["text"]
    assert made["content"][1:] == silent["content"]
    assert made["structuredContent"] == {"status": 200}


@pytest.mark.parametrize("kind", ["http", "malformed", "timeout", "refused"])
def test_any_other_failure_stays_an_error(kind: str) -> None:
    told = {"isError": True, "content": [{"type": "text", "text": "HTTP 500"}]}
    assert clean_result(told, Failure(kind, "HTTP 500")) == told


def test_an_image_is_handed_on_as_it_is() -> None:
    shown = {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    told = {"content": [shown], "structuredContent": {"status": 200, "bytes": 4}}
    assert clean_result(told, None) is told
