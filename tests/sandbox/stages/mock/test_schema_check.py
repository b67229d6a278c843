"""A tool's schemas beside those of its operation's document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sandbox.bundle.apispec import MediaType, Operation, Parameter, RequestBody
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.compare import SchemaComparer
from sandbox.schemas.directional import DirectionalValidator
from sandbox.stages.contract.places import ArgumentPlace
from sandbox.stages.mock.schema_check import find_input_problems, find_output_problems

BOOK = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 80},
        "state": {"type": "string", "enum": ["new", "used"]},
        "authors": {"type": "array", "items": {"$ref": "#/$defs/Author"}},
    },
}
AUTHOR = {"type": "object", "properties": {"name": {"type": "string"}}}


def unlike(documented: Any, given: Any) -> list[str]:
    documents = DirectionalValidator({"Author": AUTHOR}, "request")
    return [
        f"{found.where} {found.key}"
        for found in SchemaComparer(
            documents.resolve_reference, documents.resolve_reference
        ).find_differences(documented, given)
    ]


def changed(**parts: Any) -> dict[str, Any]:
    return {**BOOK, "properties": {**BOOK["properties"], **parts}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "given",
    [
        BOOK,
        changed(authors={"type": "array", "items": AUTHOR}),
        changed(title={"maxLength": 80, "type": "string", "description": "Told."}),
        changed(state={"type": "string", "enum": ["used", "new"]}),
        changed(title={"type": "string", "maxLength": 80, "minLength": 0}),
        changed(authors={"type": "array", "items": AUTHOR, "minItems": 0, "uniqueItems": False}),
    ],
)
def test_what_was_only_written_otherwise_is_alike(given: Mapping[str, Any]) -> None:
    assert unlike(BOOK, given) == []


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"type": "array"}, " type"),
        ({}, " type"),
        (changed(title={"type": "integer", "maxLength": 80}), "/title type"),
        (changed(title={"type": "string", "maxLength": 8}), "/title maxLength"),
        (changed(title={"type": "string"}), "/title maxLength"),
        (changed(state={"type": "string", "enum": ["new"]}), "/state enum"),
        (changed(state={"type": "string"}), "/state enum"),
        (changed(authors={"type": "array", "items": {"type": "string"}}), "/authors/0 type"),
    ],
)
def test_another_type_enumeration_or_limit_is_found_where_it_is(
    given: Mapping[str, Any], where: str
) -> None:
    assert where in unlike(BOOK, given)


def test_alternatives_are_compared_one_by_one() -> None:
    both = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    assert unlike(both, {"anyOf": [{"type": "string"}, {"type": "integer"}]}) == []
    assert unlike(both, {"anyOf": [{"type": "string"}, {"type": "boolean"}]}) == [" type"]


def test_a_schema_without_end_is_compared_to_a_depth() -> None:
    loop = DirectionalValidator(
        {"Loop": {"type": "object", "properties": {"l": {"$ref": "#/$defs/Loop"}}}}, "request"
    )
    root = {"$ref": "#/$defs/Loop"}
    assert (
        list(
            SchemaComparer(loop.resolve_reference, loop.resolve_reference).find_differences(
                root, root
            )
        )
        == []
    )


def tool(properties: Mapping[str, Any], body: Any) -> ToolDefinition:
    result = {"type": "object", "properties": {"status": {"type": "integer"}, "body": body}}
    takes = {"type": "object", "properties": properties}
    return ToolDefinition("t", "t", takes, result, "read", "o")


def inputs(schema: Mapping[str, Any], kind: str = "string") -> list[str]:
    parameter = Parameter("id", "path", {"type": kind}, True)
    operation = Operation(
        "o", "GET", "/x/{id}", "https://x.example", "read", parameters=(parameter,)
    )
    placed = tool({"id": schema}, {})
    return list(
        find_input_problems(
            placed,
            operation,
            {"id": ArgumentPlace("path", "id")},
            DirectionalValidator({}, "request"),
        )
    )


def test_a_path_argument_may_refuse_the_empty_value_and_nothing_else() -> None:
    assert inputs({"type": "string", "minLength": 1}) == []
    assert inputs({"type": "array", "minItems": 1}, "array") == []
    assert inputs({"type": "object", "minProperties": 1}, "object") == []
    assert inputs({"type": "string", "maxLength": 1})
    assert inputs({"type": "integer"})


def test_deep_in_a_large_schema_a_long_enumeration_may_be_left_out() -> None:
    codes = [f"code {number}" for number in range(40)]
    own = {"type": "object", "properties": {"code": {"type": "string"}}}
    assert nested({"type": "string", "enum": codes}, own) == []
    assert nested({"type": "string", "enum": codes[:5]}, own)
    assert nested({"type": "string", "enum": codes, "minLength": 1}, own)


def nested(documented: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """The differences where a body's field `code` is documented so."""
    whole = {"type": "object", "properties": {"code": documented}}
    body = RequestBody((MediaType("application/json", whole),))
    operation = Operation("o", "POST", "/x", "https://x.example", "write", body=body)
    judge = DirectionalValidator({}, "request")
    place = {"body": ArgumentPlace("body", "")}
    return list(find_input_problems(tool({"body": given}, {}), operation, place, judge))


def outputs(body: Any, *documented: Any) -> list[str]:
    documents = DirectionalValidator({"Author": AUTHOR}, "response")
    return list(find_output_problems(tool({}, body), documented, documents))


def test_an_output_schema_may_leave_out_limits_and_not_types() -> None:
    assert outputs(changed(title={"type": "string"}), BOOK) == []
    assert outputs(changed(title={}), BOOK)
    assert outputs(changed(title={"type": "string", "maxLength": 3}), BOOK)
    assert outputs({}, BOOK)


def test_of_several_documented_answers_one_has_to_be_alike() -> None:
    assert outputs(AUTHOR, BOOK, AUTHOR) == []


@pytest.mark.parametrize(
    "root",
    [
        {"additionalProperties": False},
        {"required": ["body"]},
        {"properties": {"status": {"const": 200}}},
    ],
)
def test_an_output_schema_has_room_for_every_kind_of_answer(root: Mapping[str, Any]) -> None:
    plain = tool({}, {})
    given = ToolDefinition("t", "t", {}, {**plain.output_schema, **root}, "read", "o")
    assert list(find_output_problems(given, (), DirectionalValidator({}, "response")))
