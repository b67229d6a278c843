"""Texts that a regular expression could read again from each of their characters.

Each is as long as its place allows: read so, it takes hours, in which Python's regular expressions
let nothing else of the process run. Read once, it takes no time that anybody sees.
"""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from forge.authors.interface import ModelRequest
from forge.authors.json_answers import MAX_TEXT, Completion, request_answer
from forge.errors import AuthorFailed, DocumentUnreadable
from forge.readers.document import is_graphql_text, parse_document
from forge.readers.graphql.reader import is_graphql
from forge.readers.html import read_markup
from forge.text import sanitize_prose
from orchestrator.tasks.reading.read import MAX_TASK, read_arguments
from sandbox.broker.broker import Broker
from sandbox.bundle.model import RequestPattern
from sandbox.injection import MAX_READ, find_instruction
from sandbox.stages.contract.request import parse_url_template
from sandbox.stages.static.definitions import MAX_TEXT as MAX_DEFINITION
from sandbox.stages.static.definitions import find_orders
from sandbox.wire.content import extract_page_text
from sandbox.wire.exchange import Caps, WireRequest
from sandbox.wire.policy import MAX_VALUES, Policy, is_request_of
from tests.forge.readers.recorded.notations import compiled, postman, request, routes
from tests.sandbox.scripted import Told

JSON = "application/json"
CAPS = Caps()


def refused(kind: str, body: bytes) -> str:
    """Why the broker of a session refuses a request with that body."""
    asked = WireRequest("POST", "https://api.test/a", (("content-type", kind),), body)
    return asyncio.run(Broker(Policy(()), Told([])).perform(asked)).reason


@pytest.mark.parametrize(
    "body",
    [
        b'{"method' + b"a" * (CAPS.request_bytes - 8),
        b"ethod\\u0061" + b" " * (CAPS.request_bytes - 11),
        b"ethod" + b"a:" * (CAPS.request_bytes // 2 - 4),
    ],
    ids=["one name", "blanks", "very many names"],
)
def test_a_body_that_is_no_json_is_read_once(body: bytes) -> None:
    assert refused(JSON, body)


@pytest.mark.parametrize(
    "kind", ["a/b" + " " * 16_000 + "x", "a/b" + ";a=b" * 4_000 + "x=", "a/b; a=" + "b" * 16_000]
)
def test_a_content_type_is_read_once(kind: str) -> None:
    assert refused(kind, b"x")


def test_a_name_in_a_body_that_is_no_json_is_found_behind_whatever_it_stands() -> None:
    for before in (b"", b"a" * 1000, b'{"b": 1, ', b"{'a' : 1; ", b"a:" * 1000):
        assert "another method" in refused(JSON, before + b' "_method" : "DELETE')
    assert "another method" not in refused(JSON, b'{"method": "DELETE"')


@pytest.mark.parametrize("template", ["/{a}{b}{c}{d}x", "/{a}-{b}-{c}-{d}-{e}x", "/{a}{b}" * 20])
@pytest.mark.parametrize("sent", ["a", "-", "a-"])
def test_a_path_is_divided_among_the_values_of_a_segment_in_one_reading(
    template: str, sent: str
) -> None:
    url = "https://api.test/" + sent * ((CAPS.url_bytes - 20) // len(sent))
    pattern = RequestPattern("GET", f"https://api.test{template}")
    assert not is_request_of(pattern, "GET", url)
    assert not parse_url_template(pattern.url).path.match(url)


def test_a_segment_of_several_values_takes_what_each_of_them_takes() -> None:
    pattern = RequestPattern("GET", "https://api.test/compare/{base}...{head}")
    for path in ("a...b", "v1.0...v2.0", "a;b...c", "......."):
        url = f"https://api.test/compare/{path}"
        assert is_request_of(pattern, "GET", url) == (";" not in path)
    for path in ("a..b", "a...", "...b", "a/b...c", "a...b/c", "a...b/"):
        assert not is_request_of(pattern, "GET", f"https://api.test/compare/{path}")
    values = parse_url_template(pattern.url).path.match("https://api.test/compare/v1.0...v2.0")
    assert values is not None
    assert values.groups() == ("v1.0", "v2.0")
    most = RequestPattern("GET", "https://api.test/" + "{a}" * MAX_VALUES)
    assert is_request_of(most, "GET", "https://api.test/" + "a" * MAX_VALUES)
    more = RequestPattern("GET", f"{most.url}{{a}}")
    assert not is_request_of(more, "GET", "https://api.test/" + "a" * (MAX_VALUES + 1))


def test_orders_to_a_model_are_looked_for_once() -> None:
    assert find_instruction("<" + " " * (MAX_READ - 1)) == ""
    assert find_instruction("<" + " " * 1000 + "/" + " " * 1000 + "system >") != ""
    assert find_orders("<" + " " * (MAX_DEFINITION - 1)) == ""
    assert find_orders("![" * (MAX_DEFINITION // 2)) == ""
    assert "markup" in find_orders("<" + " " * 1000 + "/" + " " * 1000 + "system >")
    assert "image" in find_orders("![a![b](https://api.test/x)")


def test_a_place_in_a_task_is_looked_for_once() -> None:
    schema = {"type": "object", "properties": {"latitude": {"type": "number"}}}
    assert read_arguments("at 1.1" + " " * (MAX_TASK - 7) + "x", schema).problem == ""


def test_coordinates_are_read_whatever_stands_between_them() -> None:
    properties = {name: {"type": "number"} for name in ("latitude", "longitude")}
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    for between in (", ", " , ", " ", "/", "° N, ", "\t ,\n", " N "):
        read = read_arguments(f"weather at 47.37{between}8.54", schema)
        assert read.arguments == {"latitude": 47.37, "longitude": 8.54}


def test_a_variable_of_a_collection_is_looked_for_once() -> None:
    collection = postman(
        request("List", "https://api.test/a"),
        request("Long", "https://api.test/b/{{" + " " * 1_000_000 + "x"),
        request("Get", "https://api.test/c/{{  id  }}"),
    )
    assert routes(compiled(collection)) >= {
        "GET https://api.test/a",
        "GET https://api.test/c/{id}",
    }


def test_a_document_that_is_none_is_looked_through_once_for_another_language() -> None:
    with pytest.raises(DocumentUnreadable, match="not YAML"):
        parse_document(b"type a" + b"a" * 1_000_000 + b": [", "api.yaml")
    schema = parse_document(b"type Query implements Node {\n  pets: [Pet]\n}\n", "api.graphqls")
    assert is_graphql(schema.root)


def test_fences_in_a_model_s_answer_are_looked_for_once() -> None:
    schema = {"type": "object", "required": ["code"]}

    async def ask(text: str) -> object:
        async def complete(prompt: str) -> Completion:
            return Completion(text, "m", 1, 1)

        return (await request_answer(ModelRequest("code", "Write.", schema), complete)).content

    with pytest.raises(AuthorFailed):
        asyncio.run(ask("```\n a" * (MAX_TEXT // 6)))
    said = '```\nno\n```\n```json\n{"code": "```"}\n```'
    assert asyncio.run(ask(said)) == {"code": "```"}


def test_a_document_that_begins_like_a_schema_takes_no_memory_for_its_lines() -> None:
    text = "#\n" * 1_000_000
    tracemalloc.start()
    try:
        assert not is_graphql_text(text)
        assert tracemalloc.get_traced_memory()[1] < len(text)
    finally:
        tracemalloc.stop()


MANY_DIGITS = f"&#{'9' * 5_000};"


def test_a_number_that_no_character_has_breaks_off_no_reading() -> None:
    """Python raises for so many digits."""
    assert sanitize_prose(f"Cars {MANY_DIGITS} &amp; more", 1_000) == "Cars \ufffd & more"
    assert extract_page_text(f"<html>{MANY_DIGITS}, no car") == "\ufffd, no car"
    assert read_markup(f"<title>&#{'9' * 290};</title>").title == "\ufffd"
    page = f"<p title='{MANY_DIGITS}'>a {MANY_DIGITS} b</p><a href='{MANY_DIGITS}'>c</a>"
    assert read_markup(page).text == "a \ufffd b\n\nc"


def test_a_character_is_read_by_its_number() -> None:
    assert sanitize_prose("Cars &#65; &amp; &#x42;", 1_000) == "Cars A & B"
    assert extract_page_text("<html>&#0065;, no car") == "A, no car"
    assert read_markup("<p>&#66;</p>").text == "B"
