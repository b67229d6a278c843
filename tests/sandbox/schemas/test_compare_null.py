"""Whether a value may be null is no difference between an answer's schema and its document."""

from __future__ import annotations

from typing import Any

import pytest

from forge.schemas.tolerance import admit_null
from sandbox.schemas.compare import SchemaComparer


@pytest.mark.parametrize(
    "documented",
    [
        {"type": "string"},
        {"type": ["string", "null"]},
        {"type": "null"},
        {"anyOf": [{"type": "object"}, {"type": "null"}]},
        {"type": "string", "enum": ["on", "off"]},
        {"const": "thing"},
    ],
)
def test_a_schema_that_admits_null_says_the_same(documented: dict[str, Any]) -> None:
    comparer = SchemaComparer(lambda _: None, lambda _: None, ignores_null=True)
    assert [*comparer.find_differences(documented, admit_null(documented))] == []


def test_another_type_stays_a_difference() -> None:
    comparer = SchemaComparer(lambda _: None, lambda _: None, ignores_null=True)
    found = [*comparer.find_differences({"type": "string"}, {"type": ["integer", "null"]})]
    assert [unlike.key for unlike in found] == ["type"]


def test_a_type_that_is_missing_is_named_in_words() -> None:
    comparer = SchemaComparer(lambda _: None, lambda _: None)
    (unlike,) = comparer.find_differences({"type": ["object", "array"]}, {})
    assert unlike.reason == "has no type; the document has array or object"
