"""Answers as a person at the terminal reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.console import Console

from orchestrator.cli.answers import MAX_ROWS, print_answer, render_answer
from orchestrator.results.opening import open_result


def shown(value: Any, width: int = 100) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        for part in render_answer(value, width).parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"in": [value]}
    return value


def parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_a_list_of_objects_is_a_table_with_plain_columns_first() -> None:
    rows = [{"tags": ["a"], "id": 1, "name": "oar"}, {"id": 2, "name": None, "ok": True}]
    assert shown({"status": 200, "body": rows}).splitlines() == [
        "id  name  ok   tags",
        '1   oar        ["a"]',
        "2   -     yes",
    ]


def test_what_is_wrapped_around_a_list_stands_above_its_table() -> None:
    assert shown({"total": 1, "items": [{"id": 7}]}).splitlines() == [
        "total: 1",
        "items",
        "id",
        "7",
    ]


def test_a_list_that_was_followed_over_pages_is_a_table() -> None:
    pages = {"read": 2, "items": 2, "more": False}
    assert shown({"status": 200, "body": [{"id": 1}, {"id": 2}], "pages": pages}) == "id\n1\n2"


SHIP = {"id": "U1", "name": "Ada"}


@pytest.mark.parametrize(
    ("connection", "lines"),
    [
        ({"nodes": [SHIP], "pageInfo": {"hasNextPage": False, "endCursor": "b"}}, []),
        (
            {"edges": [{"cursor": "b", "node": SHIP}], "pageInfo": {"hasNextPage": True}},
            ["hasNextPage: yes"],
        ),
        ({"totalCount": 1, "nodes": [SHIP], "pageInfo": {}}, ["totalCount: 1"]),
    ],
)
def test_a_graphql_connection_is_the_table_of_its_nodes(
    connection: dict[str, Any], lines: list[str]
) -> None:
    told = shown({"status": 200, "body": {"data": {"ships": connection}}}).splitlines()
    assert told == [*lines, "nodes", "id  name", "U1  Ada"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"data": {"ship": SHIP}}, "id: U1"),
        ({"data": {"ships": [SHIP]}}, "id  name"),
        ({"data": {"count": 3}}, "count: 3"),
        ({"data": {"ship": SHIP, "crew": []}}, "data"),
        ({"data": {"ship": SHIP}, "errors": [{"message": "late"}]}, "errors"),
        ({"data": {"crew": {"edges": [{"node": SHIP, "role": "mate"}], "pageInfo": {}}}}, "mate"),
    ],
)
def test_what_stands_around_a_graphql_answer_goes_where_nothing_else_is_told(
    body: dict[str, Any], told: str
) -> None:
    assert told in shown({"status": 200, "body": body})


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({"ships": [SHIP]}, [SHIP]),
        ({"ships": None}, None),
        (None, None),
    ],
)
def test_data_beside_errors_is_opened_and_the_errors_are_told_beside_it(
    data: Any, value: Any
) -> None:
    body = json.dumps({"data": data, "errors": [{"message": "not allowed"}]})
    texts = ("the API answered with errors: not allowed", body)
    content = [{"type": "text", "text": text} for text in texts]
    opened, notes = open_result({"isError": True, "content": content}, parse)
    if value is None:
        assert (opened, notes) == ("\n".join(texts), ())
    else:
        assert (opened, notes) == (value, texts[:1])


def test_a_list_beside_objects_is_a_table_below_them_and_two_lists_are_a_tree() -> None:
    paged = {"data": [{"id": 7, "name": "Ann"}], "meta": {"page": 1}}
    assert [line.strip() for line in shown(paged).splitlines()] == [
        "meta",
        "└── page: 1",
        "data",
        "id  name",
        "7   Ann",
    ]
    assert "id  name" not in shown({**paged, "errors": ["one"]})


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"result": 42}, "42"),
        ({"number": 14}, "number: 14"),
        ({"status": 204}, "HTTP 204"),
        ({"status": 200, "text": "two\nlines"}, "two\nlines"),
        ({"result": []}, "Nothing."),
        ({"result": False}, "no"),
        ([1, 2], "1\n2"),
    ],
)
def test_one_value_is_a_line(value: Any, line: str) -> None:
    assert shown(value) == line


def test_nested_data_is_an_indented_tree() -> None:
    told = shown({"zone": {"name": "x", "hosts": [{"ip": "::1"}]}, "n": 1})
    assert [line.strip("│├└─ ") for line in told.splitlines()] == [
        *("zone", "name: x", "hosts", "1", "ip: ::1", "n: 1"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        [{"id": number} for number in range(MAX_ROWS + 1)],
        [{f"key{number}": 1 for number in range(30)}],
        {"text": "x" * 5_000},
        {"a": deep(60)},
        {f"key{number}": {"in": list(range(50))} for number in range(100)},
        list(range(1_000)),
    ],
)
def test_what_is_too_much_is_cut_and_said_to_be(value: Any) -> None:
    assert render_answer(value).cut
    assert len(shown(value).splitlines()) <= 260
    assert not render_answer({"a": 1, "b": [{"c": 2}]}).cut


def test_the_rest_of_a_table_is_counted() -> None:
    assert "… and 450 more rows" in shown([{"id": number} for number in range(500)])


@pytest.mark.parametrize("place", ["key", "value", "cell", "head"])
def test_a_strangers_text_is_text_and_nothing_else(place: str) -> None:
    hostile = "[red]x[/red]\x1b[31m\u202e\u200b\x07"
    value = {
        "key": {hostile: {"a": 1}},
        "value": {"a": hostile},
        "cell": [{"a": hostile}],
        "head": [{hostile: 1}],
    }[place]
    told = shown(value)
    assert "[red]x[/red]" in told
    assert not set(told) & set("\x1b\u202e\u200b\x07")


def test_notes_stand_beside_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.dumps({"result": 3})
    content = [{"type": "text", "text": text} for text in (answer, "a note")]
    print_answer({"content": content, "structuredContent": {"result": 3}})
    told = capsys.readouterr()
    assert (told.out, told.err) == ("3\n", "a note\n")


@pytest.mark.parametrize(
    ("headers", "target"),
    [
        ({"link": '</a?page=1>; rel="prev", </a?page=3>; title="on"; rel="next"'}, "/a?page=3"),
        ({"link": "<https://x.example/a?p=2>; rel=next"}, "https://x.example/a?p=2"),
        ({"next-page": "http://x.example/a?_token=b"}, "http://x.example/a?_token=b"),
        ({"x-next-page": "2"}, "2"),
        ({"x-next-page": "", "etag": "7"}, ""),
        ({"link": '</style.css>; rel="stylesheet", </next>; rel="prev"'}, ""),
        ({"link": '</a>; rel="prerender-nextdoor"' + ";<" * 100_000}, ""),
        (None, ""),
    ],
)
def test_a_next_page_that_only_a_header_names_is_told(
    headers: Any, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {"status": 200, "body": [1]} | ({"headers": headers} if headers else {})
    print_answer({"content": [{"type": "text", "text": "[1]"}], "structuredContent": answer})
    told = f"This is one page; the API names the next one: {target}\n" if target else ""
    assert capsys.readouterr().err == told


def test_words_to_a_reader_are_shown_instead_of_the_structure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = [{"type": "text", "text": "Nothing was sent."}]
    print_answer({"content": content, "structuredContent": {"approval": "x"}})
    assert capsys.readouterr().out == "Nothing was sent.\n"


def test_a_table_has_the_columns_that_there_is_room_for_and_names_stay_whole() -> None:
    row = {"tool": "roman.from_roman", "call_with": "call_read", "description": "converts " * 9}
    rows = [{**row, "server": "a server of that name", "inputSchema": {"type": "object"}}] * 2
    rendered = render_answer({"candidates": rows, "none": "forge"})
    told = shown({"candidates": rows}, width=80)
    assert rendered.cut
    assert told.count("roman.from_roman  call_read  converts") == 2
    assert "inputSchema" not in told
    assert max(map(len, told.splitlines())) <= 80
