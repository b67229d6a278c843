"""One call over the pages of a list: what is asked, what comes of it, and what ends it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from toolwright.pages import next_link

from tests.images.conftest import Start
from tests.images.host import Host, answer, definition, refusal

SOURCE = """
from toolwright import UNSET, graphql, http, tool
from toolwright.pages import by_cursor, by_id, by_link, by_offset, by_page, by_url

@tool
def cursors(cursor=UNSET, max_items=UNSET):
    return http.request("GET", "/things", query={"cursor": cursor, "q": "a b"},
        pages=by_cursor("cursor", next="/meta/next", items="/data"), max_items=max_items)

@tool
def ids(starting_after=UNSET, max_items=UNSET):
    return http.request("GET", "/things", query={"starting_after": starting_after},
        pages=by_id("starting_after", item="/id", items="/data", more="/has_more"),
        max_items=max_items)

@tool
def bare_ids(after=UNSET, max_items=UNSET):
    return http.request("GET", "/things", query={"after": after},
        pages=by_id("after", item="/id", items="/data"), max_items=max_items)

@tool
def until_told(cursor=UNSET, max_items=UNSET):
    return http.request("GET", "/things", query={"cursor": cursor},
        pages=by_cursor("cursor", next="/meta/next", items="/data", more="/meta/more"),
        max_items=max_items)

@tool
def connections(after=UNSET, colour=UNSET, max_items=UNSET):
    return graphql.request("/graphql", "query things { things { nodes } }",
        {"after": after, "colour": colour},
        pages=by_cursor("after", next="/data/things/page/end", items="/data/things/nodes",
            more="/data/things/page/more"), max_items=max_items)

@tool
def offsets(skip=UNSET, max_items=UNSET):
    return http.request("GET", "/things", query={"skip": skip},
        pages=by_offset("skip", items="/data"), max_items=max_items)

@tool
def numbers(page=UNSET, max_items=UNSET):
    return http.request("GET", "/things", query={"page": page},
        pages=by_page("page", items=""), max_items=max_items)

@tool
def urls(max_items=UNSET):
    return http.request("GET", "/things", query={"q": 1},
        pages=by_url(next="/next", items="/data"), max_items=max_items)

@tool
def links(max_items=UNSET):
    return http.request("GET", "/things", pages=by_link(items=""), max_items=max_items)
"""
NAMES = (
    "cursors",
    "until_told",
    "connections",
    "ids",
    "bare_ids",
    "offsets",
    "numbers",
    "urls",
    "links",
)


@pytest.fixture
def host(start: Start) -> Host:
    host = start()
    host.serve_bundle(SOURCE, *map(definition, NAMES))
    return host


def queries(host: Host) -> list[dict[str, str]]:
    asked = [parse_qs(urlsplit(params["url"]).query) for params in host.asked]
    return [{name: values[0] for name, values in query.items()} for query in asked]


def scripted(host: Host, *answers: dict[str, Any]) -> None:
    """The broker gives these in order, and the last one from then on."""
    waiting = list(answers)
    host.broker = lambda params: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def page(*items: int, following: Any = None) -> dict[str, Any]:
    return answer(200, {"data": list(items), "meta": {"next": following}, "total": 9})


def told(*items: int, following: Any = None, more: Any = None) -> dict[str, Any]:
    return answer(200, {"data": list(items), "meta": {"next": following, "more": more}})


def connection(*nodes: int, end: Any = None, more: Any = None) -> dict[str, Any]:
    things = {"nodes": list(nodes), "page": {"end": end, "more": more}}
    return answer(200, {"data": {"things": things}})


def variables(host: Host) -> list[Any]:
    return [json.loads(params["body"]).get("variables") for params in host.asked]


def known(*items: Any, more: Any = None) -> dict[str, Any]:
    return answer(200, {"data": [{"id": item} for item in items], "has_more": more})


def test_a_cursor_of_the_last_page_is_not_followed_where_the_answer_says_it_is_the_last(
    host: Host,
) -> None:
    scripted(host, told(1, following="a", more=True), told(2, following="b", more=False))
    result = host.call("until_told", max_items=100)
    assert queries(host) == [{}, {"cursor": "a"}]
    assert result["structuredContent"]["pages"] == {"read": 2, "items": 2, "more": False}


def test_a_cursor_is_followed_where_the_answer_leaves_out_whether_there_is_more(host: Host) -> None:
    scripted(host, told(1, following="a"), told(2, following=""))
    result = host.call("until_told", max_items=100)
    assert queries(host) == [{}, {"cursor": "a"}]
    assert result["structuredContent"]["body"]["data"] == [1, 2]


def test_the_pages_of_a_connection_are_asked_for_by_a_variable(host: Host) -> None:
    scripted(host, connection(1, 2, end="/c?==", more=True), connection(3, end="/c?==", more=False))
    result = host.call("connections", colour="red", max_items=100)
    assert variables(host) == [{"colour": "red"}, {"colour": "red", "after": "/c?=="}]
    assert result["structuredContent"]["body"]["data"]["things"]["nodes"] == [1, 2, 3]
    assert result["structuredContent"]["pages"] == {"read": 2, "items": 3, "more": False}
    assert ["user-agent", "toolwright (max_items=100)"] in host.asked[0]["headers"]
    assert {params["url"] for params in host.asked} == {host.asked[0]["url"]}


def test_errors_on_a_further_page_of_a_connection_keep_what_was_had(host: Host) -> None:
    refused = answer(200, {"errors": [{"message": "the cursor is stale"}]})
    scripted(host, connection(1, end="c", more=True), refused)
    result = host.call("connections", max_items=100)["structuredContent"]
    assert result["body"]["data"]["things"]["nodes"] == [1]
    assert result["pages"]["more"] is True
    assert "the cursor is stale" in result["pages"]["stopped"]


def test_a_connection_without_max_items_is_one_plain_request(host: Host) -> None:
    scripted(host, connection(1, end="c", more=True))
    host.call("connections", after="b")
    assert variables(host) == [{"after": "b"}]
    assert not any(name == "user-agent" for name, _ in host.asked[0]["headers"])


def test_the_last_item_asks_for_the_next_page_while_there_is_more(host: Host) -> None:
    scripted(host, known("a", "b&c", more=True), known("d", more=True), known("e", more=False))
    result = host.call("ids", max_items=100)
    assert queries(host) == [{}, {"starting_after": "b&c"}, {"starting_after": "d"}]
    assert [item["id"] for item in result["structuredContent"]["body"]["data"]] == [
        "a",
        "b&c",
        "d",
        "e",
    ]
    assert result["structuredContent"]["pages"] == {"read": 3, "items": 4, "more": False}


@pytest.mark.parametrize("last", [None, True, "", 1.5, {"a": 1}])
def test_an_item_without_an_id_ends_the_walk(host: Host, last: Any) -> None:
    scripted(host, known("a", last, more=True))
    result = host.call("ids", max_items=100)
    assert result["structuredContent"]["pages"]["read"] == 1


def test_an_id_that_was_withheld_is_not_asked_for(host: Host) -> None:
    scripted(host, known("a [redacted]", more=True))
    pages = host.call("ids", max_items=100)["structuredContent"]["pages"]
    assert (pages["read"], pages["more"]) == (1, True)
    assert "withheld" in pages["stopped"]


def test_an_api_that_gives_the_same_items_again_is_left(host: Host) -> None:
    scripted(host, known(1, 2, more=True))
    pages = host.call("ids", max_items=100)["structuredContent"]["pages"]
    assert pages["read"] == 1
    assert "same page" in pages["stopped"]


def test_without_a_word_on_more_a_shorter_page_is_the_last(host: Host) -> None:
    scripted(host, known(1, 2), known(3))
    result = host.call("bare_ids", max_items=100)
    assert queries(host) == [{}, {"after": "2"}]
    assert result["structuredContent"]["pages"] == {"read": 2, "items": 3, "more": False}


def test_a_call_without_max_items_is_one_plain_request(host: Host) -> None:
    scripted(host, page(1, 2, following="b"))
    result = host.call("cursors")
    assert result["structuredContent"] == {
        "status": 200,
        "body": {"data": [1, 2], "meta": {"next": "b"}, "total": 9},
    }
    assert len(result["content"]) == len(host.asked) == 1
    assert not any(name == "user-agent" for name, _ in host.asked[0]["headers"])


def test_cursors_are_followed_to_the_last_page(host: Host) -> None:
    scripted(host, page(1, 2, following="b&c"), page(3, following=7), page(4, following=""))
    result = host.call("cursors", max_items=100)
    assert queries(host) == [
        {"q": "a b"},
        {"cursor": "b&c", "q": "a b"},
        {"cursor": "7", "q": "a b"},
    ]
    given = result["structuredContent"]
    assert given["body"] == {"data": [1, 2, 3, 4], "meta": {"next": ""}, "total": 9}
    assert given["pages"] == {"read": 3, "items": 4, "more": False}
    assert result["content"][1]["text"] == "(3 pages read, 4 items, none is left)"
    assert ["user-agent", "toolwright (max_items=100)"] in host.asked[0]["headers"]


def test_so_many_items_are_enough_and_what_is_left_is_told(host: Host) -> None:
    scripted(host, page(1, 2, following="b"), page(3, 4, following="c"))
    given = host.call("cursors", max_items=3)["structuredContent"]
    assert given["body"]["data"] == [1, 2, 3]
    assert given["pages"] == {"read": 2, "items": 3, "more": True, "left_out": 1}
    assert len(host.asked) == 2


def test_a_cursor_that_comes_again_ends_the_walk(host: Host) -> None:
    scripted(host, page(1, following="b"), page(2, following="b"))
    given = host.call("cursors", max_items=100)["structuredContent"]
    assert given["body"]["data"] == [1, 2]
    assert given["pages"]["stopped"] == "the API names the same page again"
    assert len(host.asked) == 2


def test_pages_without_end_are_bounded(host: Host) -> None:
    host.broker = lambda params: page(1, following=len(host.asked))
    given = host.call("cursors", max_items=10_000)["structuredContent"]
    assert given["pages"] == {"read": 100, "items": 100, "more": True}


def test_offsets_go_on_by_what_was_had_until_a_page_is_shorter(host: Host) -> None:
    scripted(host, page(1, 2), page(3, 4), page(5))
    given = host.call("offsets", skip=10, max_items=100)["structuredContent"]
    assert queries(host) == [{"skip": "10"}, {"skip": "12"}, {"skip": "14"}]
    assert given["body"]["data"] == [1, 2, 3, 4, 5]
    assert given["pages"] == {"read": 3, "items": 5, "more": False}


def test_page_numbers_go_up_until_a_page_is_empty(host: Host) -> None:
    scripted(host, answer(200, [1, 2]), answer(200, [3, 4]), answer(200, []))
    given = host.call("numbers", max_items=100)["structuredContent"]
    assert queries(host) == [{}, {"page": "2"}, {"page": "3"}]
    assert given["body"] == [1, 2, 3, 4]
    assert given["pages"]["more"] is False


def test_an_api_that_ignores_the_page_gives_its_items_once(host: Host) -> None:
    scripted(host, answer(200, [1, 2]))
    given = host.call("numbers", max_items=100)["structuredContent"]
    assert given["body"] == [1, 2]
    assert given["pages"]["stopped"] == "the next page is the same page again"
    assert len(host.asked) == 2


@pytest.mark.parametrize(
    "target",
    [
        "https://api.test/v1/things?page=2&q=1",
        "/v1/things?page=2&q=1",
        "?page=2&q=1",
        "http://inside.test:8080/other?page=2&key=[redacted]&q=1#x",
    ],
)
def test_a_next_url_gives_only_its_query(host: Host, target: str) -> None:
    scripted(host, answer(200, {"data": [1], "next": target}), answer(200, {"data": [2]}))
    given = host.call("urls", max_items=100)["structuredContent"]
    assert [p["url"] for p in host.asked] == [
        "https://api.test/v1/things?q=1",
        "https://api.test/v1/things?page=2&q=1",
    ]
    assert given["body"]["data"] == [1, 2]


@pytest.mark.parametrize("target", ["/v1/other", "https://evil.test", "?a b\r\nx: y", "?a=\u2603"])
def test_a_next_url_that_cannot_be_asked_for_ends_the_walk(host: Host, target: str) -> None:
    scripted(host, answer(200, {"data": [1], "next": target}))
    given = host.call("urls", max_items=100)["structuredContent"]
    assert given["pages"]["more"] is True
    assert "cannot be asked for" in given["pages"]["stopped"]
    assert len(host.asked) == 1


def test_the_link_header_is_followed(host: Host) -> None:
    link = '<https://api.test/x?page=9>; rel="last", <https://api.test/x?page=2>; rel=next'
    scripted(host, answer(200, [1], link=link), answer(200, [2]))
    given = host.call("links", max_items=100)["structuredContent"]
    assert queries(host) == [{}, {"page": "2"}]
    assert given["body"] == [1, 2]


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ('<a>; rel="next"', "a"),
        ("<a,b>; rel=prev, <c;d>; title=\"x, <z>; rel=next\"; rel='next'", ""),
        ('<a>; rel="prev", <b>; title="t"; rel="last next"', "b"),
        ('<a>; REL="NEXT"', "a"),
        ("<a>", ""),
        ("nonsense", ""),
        ("<" * 20_000, ""),
    ],
)
def test_the_next_link_of_a_header(header: str, target: str) -> None:
    assert next_link(header) == target


@pytest.mark.parametrize(
    ("failed", "reason"),
    [
        (answer(500, {"error": "down"}), "HTTP 500"),
        (answer(200, "{cut"), "does not parse"),
        (refusal("rate_limited", "slow down"), "rate_limited"),
        (answer(200, {"data": {}}), "holds no list"),
    ],
)
def test_a_failure_after_the_first_page_keeps_what_was_had(
    host: Host, failed: dict[str, Any], reason: str
) -> None:
    scripted(host, page(1, 2, following="b"), failed)
    given = host.call("cursors", max_items=100)["structuredContent"]
    assert given["body"]["data"] == [1, 2]
    assert given["pages"]["more"] is True
    assert reason in given["pages"]["stopped"]


@pytest.mark.parametrize("kind", ["refused", "frozen", "captured"])
def test_what_the_host_forbids_is_the_calls_failure(host: Host, kind: str) -> None:
    scripted(host, page(1, following="b"), refusal(kind, "no"))
    result = host.call("cursors", max_items=100)
    assert result["_meta"]["toolwright/error"]["kind"] == kind


def test_a_failure_of_the_first_page_is_the_calls(host: Host) -> None:
    scripted(host, answer(404, {}))
    result = host.call("cursors", max_items=5)
    assert result["_meta"]["toolwright/error"] == {"kind": "http", "status": 404}


def test_an_answer_without_the_list_is_returned_as_it_is(host: Host) -> None:
    scripted(host, answer(200, {"other": 1}))
    given = host.call("cursors", max_items=5)["structuredContent"]
    assert given == {"status": 200, "body": {"other": 1}}
