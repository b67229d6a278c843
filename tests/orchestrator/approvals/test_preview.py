"""What a write would change is told from what is there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.approvals.preview import (
    MAX_CHANGES,
    MAX_PRESENT,
    build_read_request,
    extract_present,
    find_changes,
)
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse

URL = "https://a.test/zones/1"
PRESENT = json.dumps({"name": "example.org", "ttl": 60, "soa": {"serial": 1, "mail": "a"}})


def told(method: str, body: object, present: str = PRESENT) -> list[str]:
    wire = WireRequest(method, URL, (), json.dumps(body).encode())
    return [str(change) for change in find_changes(wire, present)]


def test_a_put_tells_what_is_set_and_what_is_lost() -> None:
    body = {"name": "example.org", "ttl": 300, "soa": {"serial": 1}, "kind": "native"}
    assert told("PUT", body) == [
        "/ttl: 60 -> 300",
        '/soa/mail: "a" -> nothing',
        '/kind: nothing -> "native"',
    ]


def test_a_patch_tells_only_what_it_names() -> None:
    assert told("PATCH", {"soa": {"serial": 2}, "ttl": 60}) == ["/soa/serial: 1 -> 2"]


@pytest.mark.parametrize(
    "wrapped",
    [
        {"data": {"name": "a", "ttl": 60}, "meta": {"took": 1}},
        {"data": {"id": 1, "attributes": {"name": "a", "ttl": 60}}, "links": None},
    ],
)
def test_a_resource_within_an_envelope_is_compared_with_what_is_in_it(wrapped: object) -> None:
    present = json.dumps(wrapped)
    assert told("PATCH", {"ttl": 300, "note": "n"}, present) == [
        "/ttl: 60 -> 300",
        '/note: nothing -> "n"',
    ]
    assert told("PUT", {"ttl": 300}, present)[-2:] == ['/name: "a" -> nothing', "/ttl: 60 -> 300"]


def test_of_an_envelope_that_holds_none_of_the_fields_or_holds_them_twice_nothing_is_told() -> None:
    assert told("PATCH", {"ttl": 300}, '{"data": {"id": 1}}') == []
    assert told("PUT", {"ttl": 300}, '{"old": {"ttl": 1}, "new": {"ttl": 2}}') == []
    assert told("PATCH", {"ttl": 300}, '{"id": 1}') == ["/ttl: nothing -> 300"]


def test_a_deletion_tells_what_is_lost() -> None:
    (line,) = told("DELETE", None)
    assert line.startswith('/: {"name": "example.org"')
    assert line.endswith("-> nothing")


@pytest.mark.parametrize(
    ("query", "body", "present", "after"),
    [
        ("", b'{"ids": [2]}', "[1, 2]", "what the request leaves of it"),
        ("?state=done", b"", '{"total": 2, "rows": [1, 2]}', "what the request leaves of it"),
        ("", b"", '{"total": 2, "rows": [1, 2]}', "nothing"),
        ("?force=true", b'{"reason": "old"}', PRESENT, "nothing"),
    ],
)
def test_a_deletion_from_a_list_is_not_told_to_remove_all_where_the_request_may_select(
    query: str, body: bytes, present: str, after: str
) -> None:
    (change,) = find_changes(WireRequest("DELETE", f"{URL}{query}", (), body), present)
    assert change.after == after


@pytest.mark.parametrize("present", ["", "[1, 2]", "7"])
def test_where_it_is_not_known_nothing_is_made_up(present: str) -> None:
    lines = told("PUT", {"a": 1}, present)
    assert lines == ([] if not present else [f'/: {present} -> {{"a": 1}}'])


def test_a_body_that_is_not_json_tells_nothing() -> None:
    assert find_changes(WireRequest("PUT", URL, (), b"a=1"), PRESENT) == ()
    assert find_changes(WireRequest("PUT", URL, (), b"[" * 100_000), PRESENT) == ()


@pytest.mark.parametrize("method", ["POST", "GET", "QUERY"])
def test_only_what_changes_its_own_address_is_read_before(method: str) -> None:
    assert build_read_request(WireRequest(method, URL)) is None


def test_the_reading_asks_for_the_same_address_without_the_writes_query_and_headers() -> None:
    wire = WireRequest("DELETE", f"{URL}?force=true", (("x-mode", "purge"),), b"{}")
    assert build_read_request(wire) == WireRequest("GET", URL, (("accept", "application/json"),))


@pytest.mark.parametrize(
    "response",
    [
        None,
        WireResponse(404, (), b"{}"),
        WireResponse(200, (), b"<html>"),
        WireResponse(200, (), b"\xff"),
        WireResponse(200, (), b'"' + b"x" * MAX_PRESENT + b'"'),
    ],
)
def test_what_is_no_small_json_answer_is_not_kept(response: WireResponse | None) -> None:
    assert extract_present(Exchange(WireRequest("GET", URL), response)) == ""


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


@given(_json)
def test_putting_what_is_there_changes_nothing(value: object) -> None:
    assert told("PUT", value, json.dumps(value)) == []


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=80))
def test_what_is_told_is_bounded(value: dict[str, int]) -> None:
    assert len(told("PUT", value, "{}")) == min(len(value), MAX_CHANGES)
