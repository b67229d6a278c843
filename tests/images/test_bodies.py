from __future__ import annotations

import base64
import email
import email.policy
import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toolwright.bodies import (
    binary_body,
    form_body,
    json_body,
    multipart_body,
    text_body,
)
from toolwright.errors import ArgumentInvalid
from toolwright.styles import csv, deep, exploded, file, json_text, part, pipes
from toolwright.values import UNSET


def parts(body: tuple[bytes, str]) -> list[tuple[str, str | None, str, bytes]]:
    """(name, filename, content type, content) of each part, by the standard library's parser."""
    head = f"Content-Type: {body[1]}\r\n\r\n".encode()
    message = email.message_from_bytes(head + body[0], policy=email.policy.HTTP)
    assert message.is_multipart()
    assert not message.defects
    found = []
    for inner in message.walk():
        if inner is not message:
            name = str(inner.get_param("name", header="content-disposition"))
            kind = inner.get_content_type() if "content-type" in inner else ""
            content = inner.get_payload(decode=True)
            assert isinstance(content, bytes)
            found.append((name, inner.get_filename(), kind, content))
    return found


def test_json_is_compact_utf8_and_leaves_unset_members_out() -> None:
    value = {"a": "é", "b": UNSET, "c": [1, UNSET, {"d": UNSET}], "e": None, "n": 2**70}
    body, kind = json_body(value, None)
    assert body.decode() == '{"a":"é","c":[1,{}],"e":null,"n":1180591620717411303424}'
    assert kind == "application/json"
    assert json_body(None, "application/vnd.api+json") == (b"null", "application/vnd.api+json")


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}, "\udc00", object()])
def test_what_json_cannot_hold_is_an_argument_failure(value: Any) -> None:
    with pytest.raises(ArgumentInvalid):
        json_body(value, None)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, ""),
        ({"a": "x y&z", "b": True, "c": 1.0}, "a=x%20y%26z&b=true&c=1"),
        ({"a": [1, 2], "b": UNSET, "c": None, "d": []}, "a=1&a=2"),
        ({"a": {"b": 1}}, "a=%7B%22b%22%3A1%7D"),
        ({"a": [{"b": 1}]}, "a=%7B%22b%22%3A1%7D"),
        ({"a": csv([1, 2])}, "a=1,2"),
        ({"a": pipes([1, 2])}, "a=1%7C2"),
        ({"a": deep({"b": 1})}, "a%5Bb%5D=1"),
        ({"a": exploded({"b": 1, "c": 2})}, "b=1&c=2"),
        ({"a": json_text([1])}, "a=%5B1%5D"),
    ],
)
def test_a_form_is_urlencoded_with_objects_as_json(fields: dict[str, Any], text: str) -> None:
    assert form_body(fields, None) == (text.encode(), "application/x-www-form-urlencoded")


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT.filter(bool), TEXT))
def test_a_form_decodes_to_its_fields(fields: dict[str, str]) -> None:
    body, _ = form_body(fields, None)
    assert dict(parse_qsl(body.decode(), keep_blank_values=True)) == fields


def test_multipart_parts_are_typed_by_their_values() -> None:
    fields = {
        "name": "Zoë",
        "count": 3,
        "tags": ["a", "b"],
        "meta": {"k": [1]},
        "absent": UNSET,
        "none": None,
        "list": csv([1, 2]),
        "bars": pipes([1, 2]),
        "deep": deep({"k": [1, 2], "l": {"m": True}, "n": None}),
    }
    assert parts(multipart_body(fields, None)) == [
        ("name", None, "", "Zoë".encode()),
        ("count", None, "", b"3"),
        ("tags", None, "", b"a"),
        ("tags", None, "", b"b"),
        ("meta", None, "application/json", b'{"k":[1]}'),
        ("list", None, "", b"1,2"),
        ("bars", None, "", b"1|2"),
        ("deep[k][]", None, "", b"1"),
        ("deep[k][]", None, "", b"2"),
        ("deep[l][m]", None, "", b"true"),
    ]


def test_a_file_part_has_a_name_and_a_type() -> None:
    fields = {
        "plain": file("aGk="),
        "named": file("aGk=", filename="a.png", content_type="image/png"),
        "given": file({"text": "é", "filename": "b.txt"}, filename="x"),
        "many": file(["aGk=", {"base64": "aGk=", "content_type": "x/y"}]),
        "absent": file(UNSET),
        "link": file("https://a.example/x.png", plain=True),
        "either": file({"base64": "aGk=", "filename": "c.png"}, plain=True),
        "none": file(UNSET, plain=True),
    }
    assert parts(multipart_body(fields, None)) == [
        ("link", None, "", b"https://a.example/x.png"),
        ("plain", "plain", "application/octet-stream", b"hi"),
        ("named", "a.png", "image/png", b"hi"),
        ("given", "b.txt", "text/plain", "é".encode()),
        ("many", "many", "application/octet-stream", b"hi"),
        ("many", "many", "x/y", b"hi"),
        ("either", "c.png", "image/png", b"hi"),
    ]


@pytest.mark.parametrize(
    ("begins", "filename", "told"),
    [
        (b"\x89PNG\r\n\x1a\n.", None, "image/png"),
        (b"\xff\xd8\xff\xe0", None, "image/jpeg"),
        (b"GIF89a", None, "image/gif"),
        (b"%PDF-1.7", None, "application/pdf"),
        (b"%PDF-1.7", "a.png", "image/png"),
        (b"PK..", None, "application/octet-stream"),
    ],
)
def test_a_file_without_a_telling_name_has_the_type_that_it_begins_as(
    begins: bytes, filename: str | None, told: str
) -> None:
    value = file(base64.b64encode(begins).decode(), filename)
    assert [kind for _, _, kind, _ in parts(multipart_body({"f": value}, None))] == [told]


def test_a_part_may_have_a_type_of_its_own() -> None:
    fields = {"a": part([1, 2], "application/json"), "b": part("<x/>", "application/xml")}
    assert parts(multipart_body({"a": fields["a"]}, None)) == [
        ("a", None, "application/json", b"1"),
        ("a", None, "application/json", b"2"),
    ]
    assert parts(multipart_body({"b": fields["b"]}, None)) == [
        ("b", None, "application/xml", b"<x/>")
    ]


@pytest.mark.parametrize(
    "value",
    [
        file({"base64": "aGk=", "filename": 'a"\r\nX-Evil: 1\\'}),
        file("aGk=", filename='a"; name="other'),
    ],
)
def test_a_hostile_file_name_adds_no_header(value: Any) -> None:
    body, _ = multipart_body({"f": value}, None)
    head = body.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert len(head) == 3
    assert head[1].count(b'"') == 4


def test_a_hostile_part_type_is_refused() -> None:
    with pytest.raises(ArgumentInvalid):
        multipart_body({"f": file({"base64": "", "content_type": "a/b\r\nX: y"})}, None)


@given(st.lists(TEXT, max_size=4))
def test_no_content_can_end_its_part_and_the_same_fields_give_the_same_bytes(
    contents: list[str],
) -> None:
    hostile = [*contents, "--toolwright-part", "--toolwright-part-1\r\n", "toolwright-part-2"]
    fields = {f"f{index}": part(text, "text/plain") for index, text in enumerate(hostile)}
    body = multipart_body(fields, None)
    assert [content for _, _, _, content in parts(body)] == [text.encode() for text in hostile]
    assert multipart_body(fields, None) == body


@pytest.mark.parametrize(
    ("value", "content"),
    [("aGk=", b"hi"), ("aGk", b"hi"), ("", b""), ("-_-_", b"\xfb\xff\xbf"), ("a G\nk=", b"hi")],
)
def test_binary_is_base64_of_either_alphabet(value: str, content: bytes) -> None:
    assert binary_body(value, None) == (content, "application/octet-stream")


@pytest.mark.parametrize("value", ["!", "aGk=x", "a", "é", 5, None, {"base64": "aGk="}])
def test_binary_that_is_no_base64_is_an_argument_failure(value: Any) -> None:
    with pytest.raises(ArgumentInvalid):
        binary_body(value, None)


@pytest.mark.parametrize(
    "value", [{}, {"base64": "", "text": ""}, {"base64": "", "x": 1}, {"filename": "a"}, 5]
)
def test_a_file_that_is_none_is_an_argument_failure(value: Any) -> None:
    with pytest.raises(ArgumentInvalid):
        multipart_body({"f": file(value)}, None)


def test_text_is_utf8_and_a_json_type_is_json() -> None:
    assert text_body("é", None) == ("é".encode(), "text/plain; charset=utf-8")
    assert text_body(5, "text/csv") == (b"5", "text/csv")
    assert json.loads(text_body({"a": 1}, "application/x+json")[0]) == {"a": 1}


def test_files_come_after_all_fields_and_keep_their_order() -> None:
    fields = {"f": file("eA=="), "a": "1", "g": file("eQ=="), "b": "2"}
    assert [part[0] for part in parts(multipart_body(fields, None))] == ["a", "b", "f", "g"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("data:image/png;base64,eA==", "image/png"),
        ("data:;base64,eA==", "application/octet-stream"),
        ({"base64": "eA==", "filename": "A.PDF"}, "application/pdf"),
        ({"base64": "data:a/b;base64,eA==", "filename": "a.pdf"}, "a/b"),
        ({"base64": "eA==", "filename": "a.unknown"}, "application/octet-stream"),
        ({"text": "x", "filename": "a.csv"}, "text/csv"),
        ({"text": "x"}, "text/plain; charset=utf-8"),
    ],
)
def test_a_file_s_type_is_the_one_that_it_says_or_its_name_s(content: Any, kind: str) -> None:
    body, _ = multipart_body({"f": file(content)}, None)
    assert f"Content-Type: {kind}\r\n\r\nx\r\n".encode() in body


@pytest.mark.parametrize("content", ["words & more", "data:text/plain,x", "data:;base64,é"])
def test_what_is_no_base64_is_refused_saying_how_a_text_is_given(content: str) -> None:
    with pytest.raises(ArgumentInvalid, match="base64"):
        multipart_body({"f": file(content)}, None)
