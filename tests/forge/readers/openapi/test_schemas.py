from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from forge.readers.document import DocumentProblem, parse_document
from forge.readers.openapi.references import References
from forge.readers.openapi.schemas import SchemaConverter


def convert(text: str, version: str = "3.0") -> tuple[Any, list[DocumentProblem]]:
    return _convert({"s": yaml.safe_load(text)}, version)


def _convert(root: Any, version: str) -> tuple[Any, list[DocumentProblem]]:
    schema, _, problems = _convert_all(root, version)
    return schema, problems


def _convert_all(root: Any, version: str) -> tuple[Any, Any, list[DocumentProblem]]:
    problems: list[DocumentProblem] = []
    document = parse_document(b"{}", "x")
    references = References(type(document)("x", b"", root))
    schemas = SchemaConverter(references, version == "3.1", problems.append)
    made = schemas.convert(references.root.get_child("s"))
    return made, schemas.collect_named_schemas(), problems


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{type: integer, enum: [new, old]}", {"enum": ["new", "old"]}),
        ("{type: integer, enum: [new], nullable: true}", {"enum": ["new", None]}),
        ("{type: object, enum: [a]}", {"enum": ["a"]}),
        ("{type: array, enum: [a]}", {"type": "array", "items": {"enum": ["a"]}}),
        (
            "{type: array, enum: [a], items: {type: string}}",
            {"type": "array", "items": {"enum": ["a"], "type": "string"}},
        ),
        (
            "{type: array, enum: [a], items: {enum: [a, b]}}",
            {"type": "array", "items": {"enum": ["a", "b"]}},
        ),
    ],
)
def test_an_enumeration_that_none_of_its_type_fits_is_believed(written: str, meant: Any) -> None:
    schema, problems = convert(written)
    assert schema == meant
    assert "no enumerated value" in problems[0].reason


@pytest.mark.parametrize(
    "written",
    ["{type: number, enum: [1.5]}", "{type: array, enum: [[]]}", "{type: boolean, enum: [null]}"],
)
def test_an_enumeration_of_its_type_is_kept(written: str) -> None:
    schema, problems = convert(written)
    assert (schema["type"], problems) == (yaml.safe_load(written)["type"], [])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{type: string, nullable: true}", {"type": ["string", "null"]}),
        ("{type: string, x-nullable: true}", {"type": ["string", "null"]}),
        (
            "{type: string, nullable: true, enum: [a]}",
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            "{nullable: true, allOf: [{type: string}], description: d}",
            {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}], "description": "d"},
        ),
        ("{minimum: 1, exclusiveMinimum: true}", {"exclusiveMinimum": 1}),
        ("{maximum: 9, exclusiveMaximum: false}", {"maximum": 9}),
        ("{exclusiveMaximum: 5}", {"exclusiveMaximum": 5}),
        ("{type: file}", {"type": "string", "format": "binary"}),
        ("{type: [string, null]}", {"type": ["string", "null"]}),
        ("{type: String}", {"type": "string"}),
        ("{type: any, title: t}", {"title": "t"}),
        ("{example: 3, type: integer}", {"type": "integer", "examples": [3]}),
        ("{minLength: '3', maxLength: 4.0}", {"minLength": 3, "maxLength": 4}),
        ("{readOnly: true, writeOnly: 'true'}", {"readOnly": True, "writeOnly": True}),
        ("{type: string, enum: [true, 1, a]}", {"type": "string", "enum": ["true", "1", "a"]}),
        ("{type: integer, enum: ['1', 2]}", {"type": "integer", "enum": [1, 2]}),
        (
            "{type: number, enum: ['1', '-0.5', 2, a]}",
            {"type": "number", "enum": [1, -0.5, 2, "a"]},
        ),
        ("{type: boolean, enum: ['true', 'False']}", {"type": "boolean", "enum": [True, False]}),
        (r"{pattern: '/^[a-z]\/\d$/'}", {"pattern": r"^[a-z]/\d$"}),
        ("{pattern: '/[a-z]+/gu'}", {"pattern": "[a-z]+"}),
        ("{pattern: '/^[a-z]+$/i'}", {}),
        ("{pattern: '^/[a-z]+/$'}", {"pattern": "^/[a-z]+/$"}),
        (
            "{items: [{type: string}], additionalItems: false}",
            {"prefixItems": [{"type": "string"}], "items": False},
        ),
        (
            "{discriminator: {propertyName: k}, oneOf: [{type: object}, {}]}",
            {"anyOf": [{"type": "object"}, {}]},
        ),
        ("{x-y: 1, externalDocs: {}, $id: z, unknown: 1}", {}),
        (
            "{xml: {name: x, prefix: 'a b', attribute: true, wrapped: 1, x-y: 1}}",
            {"xml": {"name": "x", "attribute": True}},
        ),
        ("{description: null, minimum: null, properties: null}", {}),
        ("{type: integer, format: int64, maximum: 9223372036854775807}", None),
    ],
)
def test_a_dialect_becomes_2020_12(written: str, meant: Any) -> None:
    schema, problems = convert(written)
    assert schema == (yaml.safe_load(written) if meant is None else meant)
    assert problems == []


@pytest.mark.parametrize(
    "keyword",
    [
        "required: true",
        "required: [1]",
        "type: strange",
        "type: {a: b}",
        "enum: []",
        "enum: x",
        "pattern: '(['",
        "pattern: 7",
        "minLength: -1",
        "maxItems: x",
        "minimum: abc",
        "multipleOf: 0",
        "items: 3",
        "allOf: []",
        "allOf: {type: string}",
        "properties: [a]",
        "uniqueItems: maybe",
        "additionalProperties: [x]",
    ],
)
def test_an_invalid_keyword_is_dropped_and_reported(keyword: str) -> None:
    schema, problems = convert(f"{{title: t, {keyword}}}")
    assert schema == {"title": "t"}
    assert [(p.file, p.pointer) for p in problems] == [("x", "/s")]
    assert problems[0].reason.startswith(keyword.partition(":")[0])


def test_a_property_that_says_itself_that_it_is_required_is_required_of_its_object() -> None:
    schema, problems = convert(
        "{required: [a], properties: {a: {}, b: {type: string, required: true}, "
        "c: {type: string, required: false}}}"
    )
    assert schema == {
        "required": ["a", "b"],
        "properties": {"a": {}, "b": {"type": "string"}, "c": {"type": "string"}},
    }
    assert problems == []


@pytest.mark.parametrize("written", ["[a]", "just text", "3"])
def test_what_is_no_schema_takes_any_value(written: str) -> None:
    schema, problems = convert(written)
    assert schema is True
    assert len(problems) == 1


def test_keywords_beside_a_reference_count_from_3_1_on() -> None:
    root = {"s": {"$ref": "#/t", "minLength": 2, "description": "d"}, "t": {"type": "string"}}
    assert _convert(root, "3.0")[0] == {"$ref": "#/$defs/t", "description": "d"}
    assert _convert(root, "3.1")[0] == {"$ref": "#/$defs/t", "minLength": 2, "description": "d"}


def test_a_dangling_reference_takes_any_value_without_making_one_of_impossible() -> None:
    schema, problems = convert("{oneOf: [{$ref: '#/no'}, {$ref: '#/nor'}], not: {$ref: '#/none'}}")
    assert schema == {"anyOf": [True, True]}
    assert Draft202012Validator(schema).is_valid(1)
    assert len(problems) == 3


@pytest.mark.parametrize("written", ["{}", "[a]", "5", "null"])
def test_a_reference_that_is_no_text_is_none(written: str) -> None:
    schema, problems = convert(f"{{properties: {{a: {{$ref: {written}}}}}, type: object}}")
    assert (schema, problems) == ({"properties": {"a": {}}, "type": "object"}, [])


def test_recursion_stays_recursion() -> None:
    root = {"s": {"$ref": "#/node"}, "node": {"items": {"$ref": "#/node"}, "type": "array"}}
    schema, named, problems = _convert_all(root, "3.0")
    assert named == {"node": {"items": {"$ref": "#/$defs/node"}, "type": "array"}}
    whole = Draft202012Validator({**schema, "$defs": named})
    assert whole.is_valid([[], [[]]])
    assert not whole.is_valid([1])
    assert problems == []


def test_a_schema_made_of_itself_ends_and_is_reported() -> None:
    pet = {"oneOf": [{"$ref": "#/cat"}], "discriminator": {"propertyName": "k"}}
    cat = {"allOf": [{"$ref": "#/pet"}, {"required": ["k"]}]}
    schema, named, problems = _convert_all({"s": {"$ref": "#/pet"}, "pet": pet, "cat": cat}, "3.0")
    validator = Draft202012Validator({**schema, "$defs": named})
    assert validator.is_valid({"k": 1})
    assert not validator.is_valid({})
    assert [p.pointer for p in problems] == ["/cat"]


def test_a_reference_to_itself_takes_any_value() -> None:
    schema, named, problems = _convert_all({"s": {"$ref": "#/a"}, "a": {"$ref": "#/a"}}, "3.1")
    assert Draft202012Validator({**schema, "$defs": named}).is_valid(3)
    assert problems


def test_names_of_definitions_are_unique_and_need_no_escape() -> None:
    root = {"s": {"allOf": [{"$ref": "#/a~1b"}, {"$ref": "#/a b"}]}, "a/b": {}, "a b": {}}
    schema, named, _ = _convert_all(root, "3.0")
    assert schema == {"allOf": [{"$ref": "#/$defs/a_b"}, {"$ref": "#/$defs/a_b_2"}]}
    assert set(named) == {"a_b", "a_b_2"}


def test_nesting_past_the_bound_takes_any_value() -> None:
    schema: dict[str, Any] = {}
    for _ in range(60):
        schema = {"items": schema}
    made, problems = _convert({"s": schema}, "3.0")
    assert len(problems) == 1
    assert str(made).count("items") < 40


_KEYWORDS = st.sampled_from(
    "type enum const minimum exclusiveMinimum required properties items allOf oneOf not nullable "
    "pattern format additionalProperties minLength uniqueItems default example examples "
    "patternProperties dependentRequired if then description deprecated $ref multipleOf".split()
)
_JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["string", "object", "null", "#/s", "#/t", "[", "a+"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYWORDS, inner, max_size=4),
    max_leaves=25,
)


@given(_JUNK, _JUNK, st.sampled_from(["3.0", "3.1"]))
def test_whatever_goes_in_a_valid_schema_comes_out(one: Any, other: Any, version: str) -> None:
    schema, named, _ = _convert_all({"s": one, "t": other}, version)
    for made in (schema, *named.values()):
        Draft202012Validator.check_schema(made)
    wholes = {"allOf": [schema], "$defs": named}
    for value in (None, 1, "a", [1], {"type": 1}):
        Draft202012Validator(wholes).is_valid(value)


def test_equal_simple_schemas_are_one_object_and_each_problem_is_told_at_its_place() -> None:
    good, bad = {"type": "string", "description": "a"}, {"type": "string", "minLength": "many"}
    root = {"s": {"properties": {"a": dict(good), "b": dict(good), "c": bad, "d": dict(bad)}}}
    made, problems = _convert(root, "3.0")
    assert made["properties"]["a"] is made["properties"]["b"]
    assert made["properties"]["c"] == made["properties"]["d"] == {"type": "string"}
    assert [problem.pointer for problem in problems] == ["/s/properties/c", "/s/properties/d"]


def test_values_of_other_types_are_no_equal_words() -> None:
    root = {"s": {"properties": {"a": {"enum": [1]}, "b": {"enum": [True]}, "c": {"enum": [1.0]}}}}
    made, _ = _convert(root, "3.0")
    assert [type(part["enum"][0]) for part in made["properties"].values()] == [int, bool, float]
