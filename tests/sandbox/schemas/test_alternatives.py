"""What is told of a value that no alternative of a schema takes."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.schemas.validator import get_checker

TEXT = {"type": "string"}


def kind(name: str, *required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"kind": {"const": name}, **properties},
        "required": ["kind", *required],
    }


MAIL = kind("mail", "to", to={"type": "array", "items": TEXT})
SMS = kind("sms", "phone", phone=TEXT)
LISTED = {**SMS, "properties": {"kind": {"enum": ["push", "pager"]}, "phone": TEXT}}


def told(schema: dict[str, Any], value: object) -> str:
    found = get_checker(schema).find_problem(value)
    assert found is not None
    return f"{found.where}: {found.reason}"


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"kind": "sms"}, ": 'phone' is a required property"),
        ({"kind": "mail"}, ": 'to' is a required property"),
        ({"kind": "mail", "to": [1]}, "/to/0: 1 is not of type 'string'"),
        ({"kind": "pager"}, ": 'phone' is a required property"),
        ({"to": ["a"]}, ": 'kind' is a required property"),
        ({"kind": "fax"}, "/kind: 'fax' is not one of ['mail', 'sms', 'push', 'pager']"),
        ({}, ": 'kind' is a required property"),
    ],
)
def test_of_several_alternatives_that_one_is_told_of_which_a_field_names(
    word: str, value: object, expected: str
) -> None:
    assert told({word: [MAIL, SMS, LISTED, {"type": "null"}]}, value) == expected


def test_alternatives_within_the_alternative_that_is_meant_are_told_too() -> None:
    outer = kind("note", "channel", channel={"oneOf": [MAIL, SMS]})
    schema = {"anyOf": [outer, kind("other")]}
    where = told(schema, {"kind": "note", "channel": {"kind": "fax"}})
    assert where == "/channel/kind: 'fax' is not one of ['mail', 'sms']"


def test_where_nothing_tells_which_alternative_is_meant_the_value_is_told() -> None:
    either = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert told(either, {"c": 1}) == ": {'c': 1} is not valid under any of the given schemas"
    texts = {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}
    assert "is not valid under any" in told(texts, "x")


def test_what_is_told_of_large_values_is_bounded() -> None:
    schema = {"anyOf": [kind("a" * 100_000), kind("b" * 100_000)]}
    assert len(told(schema, {"kind": "c" * 1_000_000})) < 2_000
