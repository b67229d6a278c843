"""Documented successes whose content is never a JSON body: none at all, or lines of JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from sandbox.engines.process import ProcessRunner
from sandbox.stages.prove import prove_bundle
from tests.forge.directory.samples import description


def is_proved(document: dict[str, Any]) -> bool:
    bundle = compile_document(parse_document(json.dumps(document).encode(), "x")).bundle
    return asyncio.run(prove_bundle(bundle, ProcessRunner())).passed


@pytest.mark.parametrize("status", ["204", "205", "200"])
def test_content_of_an_answer_without_any_is_no_claim_on_the_schema(status: str) -> None:
    document = description()
    content = {"application/json": {"schema": {"type": "object", "properties": {}}}}
    document["paths"]["/berths"]["get"]["responses"] = {
        status: {"description": "ok", "content": content}
    }
    assert is_proved(document)


@pytest.mark.parametrize("kind", ["application/*", "*/*", "applcation/json"])
def test_an_answer_of_any_type_is_of_json_where_the_mock_answers_so(kind: str) -> None:
    document = description()
    content = {kind: {"schema": {"type": "object", "properties": {"name": {"type": "string"}}}}}
    document["paths"]["/berths"]["get"]["responses"] = {
        "200": {"description": "ok", "content": content}
    }
    assert is_proved(document)


LINES = (
    "application/x-ndjson",
    "application/jsonl",
    "application/json-seq",
    "application/jsonlines",
)


@pytest.mark.parametrize("kind", LINES)
def test_what_a_document_says_of_each_line_of_an_answer_is_no_claim_on_its_body(kind: str) -> None:
    document = description()
    line = {"type": "object", "properties": {"done": {"type": "boolean"}}}
    content = {kind: {"schema": line}}
    document["paths"]["/berths"]["get"]["responses"] = {
        "200": {"description": "ok", "content": content}
    }
    assert is_proved(document)
