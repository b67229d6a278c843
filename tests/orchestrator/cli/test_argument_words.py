"""Arguments as words of a command line, read by a tool's input schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from orchestrator.cli.tools.argument_hint import render_example_call
from orchestrator.cli.tools.argument_words import list_keys, read_words, write_words

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "limit": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "id": {"type": ["string", "integer"]},
        "note": {"type": ["string", "null"]},
        "level": {"enum": [1, 2]},
        "filter": {"$ref": "#/$defs/Filter"},
        "page.size": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
        "body": {"type": "string", "contentEncoding": "base64"},
        "upload": {
            "anyOf": [
                {"type": "string", "contentEncoding": "base64"},
                {
                    "type": "object",
                    "properties": {
                        "base64": {"type": "string", "contentEncoding": "base64"},
                        "filename": {"type": "string"},
                    },
                },
            ]
        },
    },
    "$defs": {
        "Filter": {
            "type": "object",
            "properties": {
                "since": {"type": "string"},
                "max": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "inner": {"$ref": "#/$defs/Filter"},
            },
            "additionalProperties": False,
        }
    },
    "required": ["name", "limit"],
    "additionalProperties": False,
}


def read(*words: str, schema: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    return read_words(words, schema, "EXAMPLE")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["name=3"], {"name": "3"}),
        (["name="], {"name": ""}),
        (["name=a=b"], {"name": "a=b"}),
        (["name=@@ann"], {"name": "@ann"}),
        (["name=null"], {"name": "null"}),
        (["limit=-3"], {"limit": -3}),
        (["limit=36893488147419103232"], {"limit": 2**65}),
        (["ratio=1.5"], {"ratio": 1.5}),
        (["deep=true"], {"deep": True}),
        (["level=2"], {"level": 2}),
        (["tags=a"], {"tags": ["a"]}),
        (["tags=1", "tags=2"], {"tags": ["1", "2"]}),
        (['tags=["a", "b"]'], {"tags": ["a", "b"]}),
        (["ids=1", "ids=2"], {"ids": [1, 2]}),
        (["id=x7"], {"id": "x7"}),
        (['id:="7"'], {"id": "7"}),
        (["id:=7"], {"id": 7}),
        (["note=text"], {"note": "text"}),
        (["note:=null"], {"note": None}),
        (["filter.since=1", "filter.max=3"], {"filter": {"since": "1", "max": 3}}),
        (["filter.max=null"], {"filter": {"max": None}}),
        (["filter.inner.inner.max=1"], {"filter": {"inner": {"inner": {"max": 1}}}}),
        (['filter={"max": 3}'], {"filter": {"max": 3}}),
        (['filter={"max": 3}', "filter.since=x"], {"filter": {"max": 3, "since": "x"}}),
        (["page.size=10"], {"page.size": 10}),
        (["labels.a=1"], {"labels": {"a": 1}}),
        (["name:=3"], {"name": 3}),
    ],
)
def test_a_value_is_read_by_the_schema_of_its_key(words: list[str], value: dict[str, Any]) -> None:
    assert read(*words) == value


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["id=7"], ["""'id:="7"'""", "id:=7"]),
        (["note=null"], ["""'note:="null"'""", "note:=null"]),
        (["limit=many"], ["limit takes integer", "'many'"]),
        (["limit=1.5"], ["limit takes integer"]),
        (["limit=NaN"], ["limit takes integer"]),
        (["deep=yes"], ["deep takes true or false, not 'yes'"]),
        (["ids=1,2"], ["ids takes integer, not '1,2'", "repeat ids=VALUE"]),
        (["limit=1", "limit=2"], ["takes one value", "given 2"]),
        (["lmit=1"], ["'lmit'", "Did you mean limit"]),
        (["filter.sinc=1"], ["'filter.sinc'", "Did you mean filter.since"]),
        (["name.first=1"], ["'name.first'"]),
        (["filter.max=1", "filter={}"], ["as a whole and in parts"]),
        (["limit:=x"], ["limit:=", "not JSON"]),
        (["name=@./nothere"], ["./nothere cannot be read", "name=@@./nothere"]),
        (["tags.a=1"], ["tags is a list", """'tags:=[{"a":…}]'"""]),
        (["level.a=1"], ["no argument 'level.a'"]),
        (["upload.more=1"], ["does not declare", """'upload:={"more":…}'"""]),
    ],
)
def test_what_is_not_read_says_why_and_comes_with_an_example(
    words: list[str], told: list[str]
) -> None:
    with pytest.raises(click.UsageError) as problem:
        read(*words)
    assert [part for part in told if part not in problem.value.message] == []
    assert problem.value.message.endswith("For example: EXAMPLE")


def test_a_file_is_text_json_or_base64_as_its_argument_wants(tmp_path: Path) -> None:
    text, picture = tmp_path / "x.json", tmp_path / "x.png"
    text.write_text('{"max": 3}')
    picture.write_bytes(b"\x89PNG")
    assert read(f"name=@{text}") == {"name": '{"max": 3}'}
    assert read(f"filter=@{text}") == {"filter": {"max": 3}}
    assert read(f"id:=@{text}") == {"id": {"max": 3}}
    assert read(f"body=@{picture}") == {"body": "iVBORw=="}
    named = {"base64": "iVBORw==", "filename": "x.png"}
    assert read(f"upload=@{picture}") == {"upload": named}
    files = {"type": "array", "items": SCHEMA["properties"]["upload"]}
    listed = {"type": "object", "properties": {"files": files}}
    assert read(f"files=@{picture}", schema=listed) == {"files": [named]}
    assert read(f"files=@{picture}", f"files=@{picture}", schema=listed) == {"files": [named] * 2}
    with pytest.raises(click.UsageError, match="UTF-8"):
        read(f"name=@{picture}")


def test_words_written_for_arguments_are_read_as_these_arguments() -> None:
    for value in (
        {"name": "@ann", "limit": 3, "deep": False, "tags": ["a"], "id": "7", "note": None},
        {"name": "", "filter": {"since": "x", "inner": {"max": None}}, "id": 7, "ids": []},
    ):
        assert read(*write_words(value, SCHEMA)) == value
    assert render_example_call("a.b", SCHEMA) == "toolwright call a.b name=text limit=1"


def test_the_keys_of_a_schema_that_holds_itself_end_and_hostile_schemas_have_none() -> None:
    keys = list_keys(SCHEMA)
    assert {"name", "page.size", "filter.since", "filter.inner.max"} <= set(keys)
    assert len(keys) <= 500
    for hostile in ({"properties": 7}, {"properties": {"a": 7}}, {"$ref": "#/$defs/x", "$defs": 7}):
        assert set(list_keys(hostile)) <= {"a"}
    looping = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert list_keys(looping) == []


def test_a_tool_whose_schema_is_not_known_gets_texts_and_what_is_said_to_be_json() -> None:
    open_schema = {"additionalProperties": True}
    assert read("a=x", "b:=3", "c.d=y", schema=open_schema) == {"a": "x", "b": 3, "c": {"d": "y"}}
    assert json.dumps(read("a=1x", schema=open_schema)) == '{"a": "1x"}'


@pytest.mark.parametrize("place", ["path:id", "query:id", "header:id"])
def test_a_number_that_may_be_a_text_has_one_reading_where_both_are_written_alike(
    place: str,
) -> None:
    either = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-in": place}
    schema = {"type": "object", "properties": {"id": either, "n": {**either, "x-in": "body"}}}
    assert read("id=7", schema=schema) == {"id": "7"}
    assert read("id=true", schema=schema) == {"id": "true"}
    assert read("id=00a", schema=schema) == {"id": "00a"}
    several = {"anyOf": [{"type": "array", "items": {}}, {"type": "null"}], "x-in": place}
    listed = {"type": "object", "properties": {"id": several, "n": {**several, "x-in": "body"}}}
    assert read("id=7", schema=listed) == {"id": ["7"]}
    assert read("id=7", "id=x", schema=listed) == {"id": ["7", "x"]}
    for held in (schema, listed):
        with pytest.raises(click.UsageError):
            read("n=7", schema=held)
    nothing = {"type": ["string", "null"], "x-in": place}
    with pytest.raises(click.UsageError):
        read("id=null", schema={"type": "object", "properties": {"id": nothing}})


PATTERN = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"


@pytest.mark.parametrize("text", [{}, {"pattern": PATTERN}])
@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("19.99", 19.99),
        ("3", 3),
        ("19.90", "19.90"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("1,5", "1,5"),
    ],
)
def test_a_decimal_is_the_number_that_is_written_and_a_text_where_a_digit_would_be_lost(
    text: dict[str, Any], word: str, value: Any
) -> None:
    kinds = [{"type": "number"}, {"type": "string", **text}, {"type": "null"}]
    schema = {"type": "object", "properties": {"price": {"anyOf": kinds}}}
    assert read(f"price={word}", schema=schema) == {"price": value}


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": ["integer", "string"]},
        {"type": ["number", "string", "boolean"]},
        {"anyOf": [{"type": "number"}, {"enum": ["1", "all"]}]},
    ],
)
def test_a_number_that_may_be_a_text_and_is_no_decimal_has_two_readings(
    wanted: dict[str, Any],
) -> None:
    with pytest.raises(click.UsageError, match="both"):
        read("price=1", schema={"type": "object", "properties": {"price": wanted}})


def test_an_example_has_what_every_part_of_an_object_requires() -> None:
    alert = {"allOf": [{"properties": {"at": {"type": "string"}}}, {"$ref": "#/$defs/Named"}]}
    named = {"properties": {"labels": {"type": "object"}}, "required": ["labels"]}
    body = {"type": "array", "items": alert}
    schema = {
        "type": "object",
        "properties": {"body": body, "one": {"$ref": "#/$defs/Either"}},
        "required": ["body", "one"],
        "$defs": {"Named": named, "Either": {"oneOf": [named, {"properties": {"b": {}}}]}},
    }
    call = render_example_call("a.b", schema)
    assert """'body=[{"labels":{}}]'""" in call
    assert "'one.labels={}'" in call


def test_an_example_names_files_by_their_path_and_shows_a_body_that_requires_fields() -> None:
    upload = SCHEMA["properties"]["upload"]
    body = {
        "type": "object",
        "properties": {
            "file": upload,
            "more": {"type": "array", "items": upload},
            "note": {"type": "string"},
        },
        "required": ["file", "more"],
        "x-in": "body",
    }
    schema = {"type": "object", "properties": {"body": body}, "additionalProperties": False}
    sample = "toolwright call a.b body.file=@FILE body.more=@FILE"
    assert render_example_call("a.b", schema) == sample
    sent = {"body": {"file": {"base64": "iVBORw==", "filename": "x.png"}, "note": "n"}}
    called = "toolwright call a.b body.file=@FILE body.note=n"
    assert render_example_call("a.b", schema, sent) == called
    free = {**schema, "properties": {"body": {**body, "required": []}}}
    assert render_example_call("a.b", free) == "toolwright call a.b"


def test_an_example_has_a_whole_number_for_an_id_in_a_path() -> None:
    number = {"type": "number"}
    places = {"id": {**number, "x-in": "path:id"}, "price": {**number, "x-in": "query:price"}}
    schema = {"type": "object", "properties": places, "required": ["id", "price"]}
    assert render_example_call("a.b", schema) == "toolwright call a.b id=1 price=1.5"
