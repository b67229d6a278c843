"""Which values make a call of a reading tool another call than the one that reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.schemas.classes import find_other_class
from tests.forge.samples import compiled

PATHS = """
/api:
  get:
    operationId: getThings
    summary: Get things
    parameters:
    - {name: action, in: query, required: true, schema: {type: string, enum: [list, show]}}
    - {name: sort, in: query, schema: {type: string, enum: [name, age]}}
    - {name: n, in: query, schema: {type: integer, maximum: 9}}
    - name: filter
      in: query
      schema: {$ref: '#/components/schemas/Filter'}
/things/{word}:
  get:
    operationId: getWord
    summary: Get a thing's words
    parameters:
    - {name: word, in: path, required: true, schema: {type: string, enum: [size, colour]}}
/users/{id}:
  get:
    operationId: getUser
    parameters:
    - {name: id, in: path, required: true, schema: {type: string, pattern: '^[0-9]+$'}}
/users/current: {get: {operationId: getCurrent}}
/drafts:
  post:
    operationId: sendDraft
    parameters:
    - {name: dryRun, in: query, required: true, schema: {type: boolean}}
    - {name: n, in: query, schema: {type: integer, maximum: 9}}
/rpc:
  post:
    operationId: callRpc
    requestBody:
      content:
        application/json:
          schema: {type: object, properties: {method: {type: string, enum: [list]}}}
"""


FILTER = """
components:
  schemas:
    Filter: {type: object, additionalProperties: false, properties: {size: {type: integer}}}
"""


@pytest.fixture(scope="module")
def made() -> Bundle:
    return compiled(PATHS, FILTER).bundle


def tool(made: Bundle, operation: str) -> ToolDefinition:
    return next(tool for tool in made.tools if tool.operation == operation)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("getThings", {"action": "delete"}),
        ("getThings", {"action": "other"}),
        ("getThings", {}),
        ("getThings", {"action": "list", "sort": "deleteAll"}),
        ("getThings", {"action": "list", "sort": "\uff44\uff45\uff4c\uff45\uff54\uff45"}),
        ("getThings", {"action": "list", "filter": {"cmd": "x"}}),
        ("getThings", {"action": "list", "filter": {"size": "delete"}}),
        ("getWord", {"word": "erase"}),
        ("getWord", {"word": "height"}),
        ("getUser", {"id": "logout"}),
        ("getUser", {"id": "Current"}),
    ],
)
def test_a_value_that_may_choose_another_act_is_not_the_read(
    operation: str, arguments: dict[str, Any], made: Bundle
) -> None:
    assert find_other_class(made, tool(made, operation), arguments)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("getThings", {"action": "list"}),
        ("getThings", {"action": "show", "sort": "age"}),
        ("getThings", {"action": "list", "sort": "height"}),
        ("getThings", {"action": "list", "n": 10}),
        ("getThings", {"action": "list", "filter": {"colour": 1}}),
        ("getWord", {"word": "size"}),
        ("getUser", {"id": "u-17"}),
    ],
)
def test_any_other_value_is(operation: str, arguments: dict[str, Any], made: Bundle) -> None:
    assert find_other_class(made, tool(made, operation), arguments) == ""


def test_a_post_that_a_person_classified_as_a_read_reads_with_what_is_documented_alone(
    made: Bundle,
) -> None:
    read = replace(tool(made, "callRpc"), access="read")
    assert find_other_class(made, read, {"body": {"method": "list"}}) == ""
    assert find_other_class(made, read, {"body": {"method": "drop"}})


def test_a_write_with_a_value_that_is_not_listed_is_another_than_was_vouched_for(
    made: Bundle,
) -> None:
    call = tool(made, "callRpc")
    assert find_other_class(made, call, {"body": {"method": "drop"}})
    assert find_other_class(made, call, {"body": {"method": "list"}}) == ""
    assert find_other_class(made, call, {}) == ""


def test_a_write_without_what_is_required_is_another_than_was_vouched_for(made: Bundle) -> None:
    send = tool(made, "sendDraft")
    assert find_other_class(made, send, {})
    assert find_other_class(made, send, {"dryRun": True, "n": 99}) == ""


def test_a_schema_that_holds_refuses_by_itself(made: Bundle) -> None:
    written = replace(made, provenance=replace(made.provenance, author="client"))
    assert find_other_class(written, tool(made, "getWord"), {"word": "erase"}) == ""
