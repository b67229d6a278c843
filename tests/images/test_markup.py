from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toolwright.errors import ArgumentInvalid
from toolwright.styles import json_lines, json_sequence, xml_text
from toolwright.values import UNSET

PET = {
    "name": "p:pet",
    "namespace": "urn:pets",
    "fields": {
        "id": {"attribute": True},
        "tags": {"name": "tag", "wrapper": "tagList"},
        "photos": {"wrapper": ""},
    },
}


def test_an_object_is_written_as_its_hints_say() -> None:
    value = {"id": 7, "tags": ["a", "b"], "photos": ["x"], "nick": ["u", "v"], "good": True}
    assert xml_text(value, "pet", PET) == (
        '<p:pet xmlns:p="urn:pets" id="7"><tagList><tag>a</tag><tag>b</tag></tagList>'
        "<photos><photos>x</photos></photos><nick>u</nick><nick>v</nick><good>true</good></p:pet>"
    )


def test_nothing_is_written_for_null_and_an_empty_element_for_an_empty_text() -> None:
    assert xml_text({"a": None, "b": ""}, "r") == "<r><b/></r>"


def test_a_list_has_the_wrapper_as_its_root() -> None:
    assert xml_text([1, 2], "n", {"wrapper": "ns"}) == "<ns><n>1</n><n>2</n></ns>"


@pytest.mark.parametrize("name", ["a b", "<x", "1a", "", "a:b:c", 'a" b="'])
def test_a_key_that_is_no_element_name_is_refused(name: str) -> None:
    with pytest.raises(ArgumentInvalid):
        xml_text({name: 1}, "r")


@pytest.mark.parametrize("text", ["\x00", "\x1b", "\ud800", "\uffff"])
def test_a_character_that_xml_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(ArgumentInvalid):
        xml_text({"a": text}, "r")


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF)))
def test_any_text_arrives_as_it_was(text: str) -> None:
    root = ElementTree.fromstring(
        xml_text({"a": text, "b": text}, "r", {"fields": {"b": {"attribute": True}}})
    )
    assert (root.findtext("a") or "", root.get("b")) == (text, text)


def test_an_absent_body_stays_absent() -> None:
    assert [xml_text(UNSET, "r"), json_lines(UNSET), json_sequence(UNSET)] == [UNSET] * 3


def test_a_list_is_a_line_each() -> None:
    assert json_lines([{"a": 1}, "é"]) == '{"a":1}\n"é"\n'
    assert json_sequence([1, 2]) == "\x1e1\n\x1e2\n"
