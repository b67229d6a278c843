"""Texts whose patterns only backtracking can match: whether a sample fits one is not known."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from sandbox.bundle.model import Bundle
from sandbox.engines.process import ProcessRunner
from sandbox.schemas.directional import DirectionalValidator
from sandbox.stages.prove import prove_bundle
from tests.forge.directory.samples import description

PATTERNS = [
    r"^arn:(?=[^:]+:fsx:[^:]+:\d{12}:)((|(?=[a-z0-9-.]{1,63})(?!\d{1,3})[a-z0-9-.]*):)*x$",
    r"^(a|b)-\1-(?>c+)$",
    r"(?<=v)\d+$",
]


def compile_answer(schema: Any) -> Bundle:
    """A server of one list that answers with this schema's values."""
    document = description()
    content = {"application/json": {"schema": schema}}
    document["paths"] = {
        "/berths": {"get": {"responses": {"200": {"description": "ok", "content": content}}}}
    }
    return compile_document(parse_document(json.dumps(document).encode(), "x")).bundle


def is_proved(bundle: Bundle) -> bool:
    return asyncio.run(prove_bundle(bundle, ProcessRunner())).passed


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_server_whose_answers_have_such_a_pattern_is_proved(pattern: str) -> None:
    schema = {
        "type": "object",
        "required": ["arn"],
        "properties": {"arn": {"type": "string", "pattern": pattern}},
    }
    assert is_proved(compile_answer(schema))


def test_a_difference_that_is_told_of_another_answer_is_none_of_these() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^v[0-9]+"}}}
    made = compile_answer(schema)
    (tool,) = made.tools
    text = json.dumps(tool.output_schema).replace("^v[0-9]+", "^never$")
    broken = replace(made, tools=(replace(tool, output_schema=json.loads(text)),))
    assert not is_proved(broken)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_who_wants_to_be_certain_takes_no_text_for_such_a_pattern(pattern: str) -> None:
    schema = {"type": "string", "pattern": pattern}
    assert DirectionalValidator({}, "response").accepts(schema, "v1")
    assert not DirectionalValidator({}, "response", certain=True).accepts(schema, "v1")
    plain = {"type": "string", "pattern": "^v[0-9]$"}
    assert DirectionalValidator({}, "response", certain=True).accepts(plain, "v1")
