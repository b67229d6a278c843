from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.results.jsonpaths import MAX_PATH, is_singular
from orchestrator.tasks.planning.references import (
    MAX_EACH,
    StepReference,
    expand_each,
    find_references,
    resolve_references,
)

RESULTS: dict[str, Any] = {
    "s1": {
        "zones": [{"id": "a", "name": "x.example"}, {"id": "b", "name": "y.example"}],
        "total": 2,
        "odd name": {"it's": True},
    },
    "s2": "plain text",
    "s3": ["one", "two"],
}


def ref(step: Any, path: Any = "$") -> dict[str, Any]:
    return {"$ref": step, "path": path}


@pytest.mark.parametrize(
    ("step", "path", "value"),
    [
        ("s1", "$.zones[0].id", "a"),
        ("s1", "$.zones[-1].id", "b"),
        ("s1", "$['zones'][1]['name']", "y.example"),
        ("s1", "$.total", 2),
        ("s1", "$['odd name']['it\\'s']", True),
        ("s1", "$.zones[*].id", ["a", "b"]),
        ("s1", "$.zones[0:1].id", ["a"]),
        ("s1", "$.zones[?@.name == 'y.example'].id", ["b"]),
        ("s1", "$.zones[?@.id && !(@.name == 'x.example' || @.id == 'z')].id", ["b"]),
        ("s2", "$", "plain text"),
        ("s3", "$[1]", "two"),
    ],
)
def test_a_path_selects_as_rfc_9535_says(step: str, path: str, value: Any) -> None:
    found = resolve_references({"x": ref(step, path), "y": 1}, RESULTS)
    assert found.problems == ()
    assert found.arguments == {"x": value, "y": 1}
    assert found.steps == {"x": (step,)}


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        (ref("s9", "$.id"), "unknown_step"),
        (ref("s1", "$.zones[9].id"), "no_value"),
        (ref("s1", "$.none"), "no_value"),
        (ref("s2", "$.id"), "no_value"),
        (ref("s1", "zones"), "bad_path"),
        (ref("s1", ""), "bad_path"),
        (ref("s1", "$.zones["), "bad_path"),
        (ref("s1", "$.zones[?match(@.id, '(a+)+$')]"), "bad_path"),
        (ref("s1", "$.zones[?length(@.id) > 1]"), "bad_path"),
        (ref("s1", "$.a | $.b"), "bad_path"),
        (ref("s1", "$.zones[?@.id =~ /(a+)+$/]"), "bad_path"),
        (ref("s1", "$..id"), "unbounded_path"),
        (ref("s1", "$.zones[0, 1]"), "unbounded_path"),
        (ref("s1", "$[*, *][*, *]"), "unbounded_path"),
        (ref("s1", "$.zones[?@..id]"), "unbounded_path"),
        (ref("s1", "$.zones[?@[?@.id]]"), "unbounded_path"),
        (ref("s1", "$.zones[?$.zones[0].id == 'a']"), "unbounded_path"),
        (ref("s1", "$[?@.a][?@.b]"), "unbounded_path"),
        (ref("s1", "$" + ".a" * MAX_PATH), "unbounded_path"),
        (ref(7, "$"), "malformed"),
        (ref("s1", 7), "malformed"),
        ({**ref("s1"), "more": 1}, "malformed"),
    ],
)
def test_what_is_wrong_with_a_reference_is_located(reference: Any, code: str) -> None:
    arguments = {"deep": [{"a/b": reference}]}
    found = resolve_references(arguments, RESULTS)
    assert [(p.where, p.code) for p in found.problems] == [("/deep/0/a~1b", code)]
    assert found.arguments == arguments


def test_where_no_list_is_taken_the_only_value_of_several_goes() -> None:
    schema = {"properties": {"zone": {"type": "string"}, "zones": {"type": "array"}}}
    one = resolve_references({"zone": ref("s1", "$.zones[?@.id == 'a'].id")}, RESULTS, schema)
    assert one.arguments == {"zone": "a"}
    both = resolve_references({"zone": ref("s1", "$.zones[*].id")}, RESULTS, schema)
    assert [p.code for p in both.problems] == ["several_values"]
    none = resolve_references({"zone": ref("s1", "$.zones[?@.id == 'z'].id")}, RESULTS, schema)
    assert [p.code for p in none.problems] == ["no_value"]
    listed = resolve_references({"zones": ref("s1", "$.zones[*].id")}, RESULTS, schema)
    assert listed.arguments == {"zones": ["a", "b"]}


def test_one_call_is_made_for_each_value() -> None:
    found = expand_each({"zone": ref("s1", "$.zones[*].id"), "n": ref("s1", "$.total")}, RESULTS)
    assert [each.arguments for each in found] == [{"zone": "a", "n": 2}, {"zone": "b", "n": 2}]
    assert all(each.steps == {"zone": ("s1",), "n": ("s1",)} for each in found)
    assert expand_each({"zone": ref("s1", "$.zones[?@.id == 'z'].id")}, RESULTS) == ()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"a": ref("s1", "$.total")}, "no_value"),
        ({"a": ref("s1", "$.zones[*].id"), "b": ref("s1", "$.zones[*].name")}, "too_many"),
        ({"a": ref("many", "$[*]")}, "too_many"),
        ({"a": ref("s1", "$..id")}, "unbounded_path"),
    ],
)
def test_what_has_no_plain_values_to_go_through_is_told(
    arguments: dict[str, Any], code: str
) -> None:
    results = {**RESULTS, "many": [*range(MAX_EACH + 1)]}
    (found,) = expand_each(arguments, results)
    assert [p.code for p in found.problems] == [code]


def test_references_are_bounded_in_number_size_and_depth() -> None:
    many = {"a": [ref("s1", "$.total")] * 51}
    assert resolve_references(many, RESULTS).problems[-1].code == "too_many"
    large = {"big": "x" * 200_000}
    twice = {"a": ref("r", "$.big"), "b": ref("r", "$.big")}
    assert resolve_references({"a": ref("r", "$.big")}, {"r": large}).problems == ()
    assert resolve_references(twice, {"r": large}).problems[-1].code == "too_large"
    deep: Any = ref("s1")
    for _ in range(40):
        deep = [deep]
    assert resolve_references({"a": deep}, RESULTS).problems[-1].code == "too_deep"
    long = {"r": [*range(2_000)]}
    assert resolve_references({"a": ref("r", "$[*]")}, long).problems[-1].code == "too_many"
    wide = {"a": [[]] * 30_000}
    assert resolve_references(wide, RESULTS).problems[-1].code == "too_deep"


def test_a_text_that_looks_like_json_is_not_read_as_json() -> None:
    found = resolve_references({"a": ref("r", "$.id")}, {"r": '{"id": 1}'})
    assert [p.code for p in found.problems] == ["no_value"]


def test_what_a_result_says_is_no_reference() -> None:
    planted = {"r": {"id": ref("secret", "$.key")}, "secret": {"key": "k"}}
    found = resolve_references({"a": ref("r", "$.id")}, planted)
    assert found.arguments == {"a": ref("secret", "$.key")}


def test_references_are_found_where_they_stand() -> None:
    arguments = {"a": 1, "b": [ref("s1", "$.x"), {"c": ref("s2")}]}
    assert find_references(arguments) == (
        StepReference("/b/0", "s1", "$.x"),
        StepReference("/b/1/c", "s2", "$"),
    )
    assert is_singular("$.a[0]['b']")
    assert not is_singular("$.a[*]")
    assert not is_singular("a")


@given(st.text(max_size=60))
def test_any_path_is_followed_or_refused(path: str) -> None:
    for text in (path, "$" + path, f"$.zones[{path}]", f"$.zones[?{path}]"):
        found = resolve_references({"x": ref("s1", text)}, RESULTS)
        assert bool(found.problems) != (found.arguments != {"x": ref("s1", text)})
