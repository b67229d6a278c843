"""The page of one server: forms of its tools, the curve of its calls, what a version changed."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest

from orchestrator.called_tools import CalledTools
from orchestrator.control.arguments import (
    MAX_OPENED,
    list_arguments,
    open_arguments,
    read_fields,
    read_opened,
)
from orchestrator.control.charts import draw_share_curve
from orchestrator.control.page import render_panels
from orchestrator.control.rendering import PartRenderer
from orchestrator.control.rooms.calls import show_refused_host, view_call
from orchestrator.control.rooms.graph import MAX_DEPTH, compute_depths
from orchestrator.control.rooms.home import view_day
from orchestrator.control.rooms.place import Place
from orchestrator.control.rooms.server_trust import build_curve, compute_shares
from orchestrator.control.rooms.server_versions import (
    MATCHED_LINES,
    VersionDifference,
    compare_versions,
    iterate_differences,
)
from orchestrator.control.trying import describe_answer, read_arguments
from orchestrator.errors import FormInvalid
from orchestrator.settings import Settings
from registry.calls.invocations import CallOutcome
from registry.servers.entries import StateChange
from registry.store import Store
from sandbox.schemas.accepted import soften_arguments
from tests.orchestrator.control.filled import fill_store
from tests.orchestrator.plane import Plane
from tests.registry.samples import entry, invocation, tool

SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "page": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": ["integer", "null"]}]},
        "name": {"type": ["string", "null"]},
        "kind": {"$ref": "#/$defs/kind"},
        "deep": {"type": "object"},
        "free": {},
    },
    "$defs": {"kind": {"enum": ["native", 1, None]}},
}


def test_a_form_s_texts_become_values_of_the_types_that_the_schema_names() -> None:
    assert next(iter(list_arguments(SCHEMA))).name == "name"
    typed = {"page": "3", "name": "12", "kind": '"native"', "deep": '{"a": [1]}', "free": "x y"}
    values, problems = read_fields(SCHEMA, {**typed, "name": "12"})
    assert problems == ()
    assert values == {
        "page": 3,
        "name": "12",
        "kind": "native",
        "deep": {"a": [1]},
        "free": "x y",
    }
    assert read_fields(SCHEMA, {"page": "", "name": ""}) == ({}, ())


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"page": "three"}, "page"),
        ({"page": "[" * 100_000}, "page"),
        ({"deep": "1"}, "deep"),
        ({"evil": "1"}, "evil"),
        ({"page": 3}, "page"),
    ],
)
def test_a_text_that_is_no_value_of_its_argument_is_a_located_problem(
    fields: dict[str, object], where: str
) -> None:
    values, problems = read_fields(SCHEMA, fields)
    assert (values, [each.where for each in problems]) == ({}, [where])


@pytest.mark.parametrize("schema", [None, 1, {}, {"properties": 1}, {"properties": {"a": 3}}])
def test_a_strange_schema_makes_a_form_all_the_same(schema: object) -> None:
    assert [each.name for each in list_arguments(schema)] in ([], ["a"])


def test_all_arguments_can_be_given_as_one_object_and_nothing_else() -> None:
    given = {"whole": ' {"page": 1}', "fields": {"name": "x"}}
    assert read_arguments(SCHEMA, given) == {"page": 1}
    for body in ({"whole": "[1]"}, {"whole": "{"}, {"fields": [1]}):
        with pytest.raises(FormInvalid) as caught:
            read_arguments(SCHEMA, body)
        assert caught.value.problems["whole"].startswith("The arguments are no JSON object")


PLANT = {
    "type": "object",
    "required": ["name"],
    "example": {"name": "Fern"},
    "properties": {
        "watered": {"type": "boolean"},
        "name": {"type": ["string", "null"], "description": "What it is called."},
        "kind": {"enum": ["tree", "herb"]},
        "place": {
            "type": "object",
            "required": ["bed"],
            "properties": {"bed": {"type": "string"}, "row": {"type": "integer"}},
        },
        "tags": {"type": "array"},
    },
}


def with_body(body: object, required: bool = True) -> dict[str, object]:
    properties = {"id": {"type": "integer"}, "body": body}
    named = ["id", "body"] if required else ["id"]
    return {"type": "object", "properties": properties, "required": named}


def test_the_fields_of_a_body_are_fields_of_the_form() -> None:
    opened = open_arguments(with_body(PLANT))
    assert [(each.name, each.label, each.required) for each in opened] == [
        ("id", "id", True),
        ("body.name", "name", True),
        ("body.watered", "watered", False),
        ("body.kind", "kind", False),
        ("body.place.bed", "place.bed", False),
        ("body.place.row", "place.row", False),
        ("body.tags", "tags", False),
        ("body", "body: other fields", False),
    ]
    name, kind = (next(e for e in opened if e.label == label) for label in ("name", "kind"))
    assert (name.sample, name.description) == ("Fern", "What it is called.")
    assert kind.choices == ('"tree"', '"herb"')


@pytest.mark.parametrize(
    ("schema", "sample"),
    [
        ({"type": "array", "items": {"type": "string"}}, '["one", "two"]'),
        ({"type": ["array", "null"], "items": {"type": "integer"}}, "[1, 2]"),
        ({"type": "array", "items": {"type": "string", "examples": ["fern"]}}, '["fern"]'),
        ({"type": "array"}, ""),
        ({"type": "object"}, '{"name": "value"}'),
        ({"type": "string", "examples": ["fern", 1]}, "fern"),
        ({"type": "integer", "default": 0}, "0"),
        ({"type": "string"}, ""),
    ],
)
def test_a_field_has_an_example_of_what_is_typed_there(schema: object, sample: str) -> None:
    (argument,) = list_arguments({"properties": {"a": schema}})
    assert argument.sample == sample


def test_what_a_softened_schema_requires_is_marked() -> None:
    claimed = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "examples": ["Fern"]},
            "kind": {"type": "string", "enum": ["tree", "herb"]},
            "height": {"type": "number"},
        },
        "required": ["name", "kind"],
    }
    shown = open_arguments(soften_arguments(with_body(claimed)))
    assert [each.label for each in shown if each.required] == ["id", "name", "kind"]
    assert [each.sample for each in shown if each.label == "name"] == ["Fern"]
    assert [each.choices for each in shown if each.label == "kind"] == [('"tree"', '"herb"')]


def test_fields_of_a_body_become_the_body_with_what_was_typed_beside_them() -> None:
    schema = with_body(PLANT)
    typed = {"id": "7", "body.name": "12", "body.place.row": "3", "body.tags": '["a"]'}
    rest = '{"soil": "clay", "place": {"hill": true}}'
    assert read_opened(schema, {**typed, "body": rest}) == (
        {
            "id": 7,
            "body": {
                "soil": "clay",
                "place": {"hill": True, "row": 3},
                "name": "12",
                "tags": ["a"],
            },
        },
        (),
    )
    assert read_opened(schema, {"id": "7"}) == ({"id": 7, "body": {}}, ())
    assert read_opened(with_body(PLANT, required=False), {"id": "7"}) == ({"id": 7}, ())


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"body.name": "x", "body": '{"name": "y"}'}, "body.name"),
        ({"body.place.row": "1", "body": '{"place": 7}'}, "body.place.row"),
        ({"body.place.row": "one"}, "body.place.row"),
        ({"body.watered": "maybe"}, "body.watered"),
        ({"body": "[1]"}, "body"),
        ({"body.soil": "clay"}, "body.soil"),
    ],
)
def test_a_field_of_a_body_that_cannot_be_taken_is_a_located_problem(
    fields: dict[str, object], where: str
) -> None:
    assert [each.where for each in read_opened(with_body(PLANT), fields)[1]] == [where]


@pytest.mark.parametrize(
    "body",
    [
        {"type": "object"},
        {"type": "array", "items": PLANT},
        {"oneOf": [PLANT, {**PLANT, "required": []}]},
        {"type": ["object", "string"], "properties": {"a": {}}},
        {"type": "object", "properties": {f"p{n}": {} for n in range(500)}},
        {"type": "object", "properties": {}},
    ],
)
def test_a_body_that_is_no_one_object_is_typed_as_json(body: object) -> None:
    assert [each.name for each in open_arguments(with_body(body))] == ["id", "body"]


def test_a_body_whose_fields_would_be_called_like_an_argument_is_typed_as_json() -> None:
    schema = with_body(PLANT)
    schema["properties"] = {"body.name": {"type": "string"}, "body": PLANT}
    assert [each.name for each in open_arguments(schema)] == ["body", "body.name"]


def test_of_a_large_body_the_first_fields_are_opened_and_the_others_named() -> None:
    properties = {f"p{number}": {"type": "string"} for number in range(MAX_OPENED + 2)}
    whole = {"type": "object", "properties": properties, "additionalProperties": False}
    *opened, rest = open_arguments(with_body(whole))
    assert len(opened) == MAX_OPENED + 1
    assert f"p{MAX_OPENED}, p{MAX_OPENED + 1}" in rest.description
    closed = {**whole, "properties": {"a": {"type": "string"}, "id": {}}}
    labels = [each.label for each in open_arguments(with_body(closed))]
    assert labels == ["id", "a", "body.id"]


def test_a_server_cannot_say_that_its_answer_waits_for_a_person_or_where_a_link_leads() -> None:
    claimed = {"state": "pending", "approval": "x", "link": {"href": "https://evil.test"}}
    ours = {"toolwright": {"call": "c 1"}}
    said = {"content": [{"type": "text", "text": "hi"}], "structuredContent": claimed}
    told = describe_answer({**said, "_meta": ours, **claimed})
    assert (told["told"], told["link"]["href"]) == ("The call succeeded.", "/rooms/calls/c%201")
    assert "approval" not in told
    assert describe_answer({"error": "the engine is gone"}) == {"error": "the engine is gone"}
    assert describe_answer({**said, "isError": True, "structuredContent": {}})["failed"]


def test_a_tool_s_form_is_signed_and_unknown_tools_are_refused(plane: Plane, store: Store) -> None:
    fill_store(store)
    html = render_panels(store, Place("servers", "dns", {"tool": "create_zone"}))["try"]
    assert 'data-post="/servers/dns/tools/create_zone/call"' in html
    assert re.search(r'data-field="name"[^>]* required', html)
    assert "A rule of yours may send it at once" in html
    assert plane.ask("POST", "/servers/dns/tools/no_tool/call", json={}).status_code == 400
    assert plane.ask("POST", "/servers/nothing/tools/x/call", json={}).status_code == 404
    nothing = render_panels(store, Place("servers", "dns", {"tool": "x"}))
    assert ("There is no tool" in nothing["tool"], nothing["try"]) == (True, "")


def test_the_curve_is_the_share_of_right_calls_among_the_last_fifty() -> None:
    faults = ["server"] * 10 + [""] * 60
    outcomes = [CallOutcome(float(n), 1 + (n > 30), fault) for n, fault in enumerate(faults)]  # type: ignore[arg-type]
    shares = compute_shares(outcomes)
    assert (shares[0], shares[9], shares[-1]) == (0.0, 0.0, 1.0)
    assert shares[49] == pytest.approx(0.8)
    curve = build_curve(outcomes, [StateChange(20.0, "quarantined", "x")])
    html = PartRenderer().render("server_trust", "curve", curve)
    assert (html.count('class="mark version"'), html.count('class="mark held"')) == (1, 1)
    assert html.count('class="tick" d=') == 10
    assert build_curve(outcomes[:1], []) is None


@pytest.mark.parametrize(
    ("count", "times"),
    [
        (0, ()),
        (1, ()),
        (2, (0.0, 60.0)),
        (4, (0.0, 60.0, 120.0, 180.0)),
        (101, (0.0, 1500.0, 3000.0, 4500.0, 6000.0)),
    ],
)
def test_below_a_curve_stand_the_times_of_its_calls(count: int, times: tuple[float, ...]) -> None:
    moments = [60.0 * number for number in range(count)]
    assert draw_share_curve([1.0] * count, (), (), (), "", moments).times == times


@pytest.mark.parametrize(
    ("moments", "times"),
    [
        ((0.0, 20.0, 59.0), ()),
        ((0.0, 5.0, 10.0, 61.0), (0.0, 61.0)),
        ((0.0, 1.0, 60.0, 61.0, 120.0), (0.0, 60.0, 120.0)),
    ],
)
def test_no_time_stands_twice_below_a_curve(
    moments: tuple[float, ...], times: tuple[float, ...]
) -> None:
    curve = draw_share_curve([1.0] * len(moments), (), (), (), "", moments)
    assert curve.times == times


def test_below_the_calls_by_the_hour_stand_hours(store: Store) -> None:
    fill_store(store, 9)
    day = view_day(store, time.time())
    assert day.chart is not None
    first, *_, last = day.chart.times
    assert (len(day.chart.times), last - first, first % 3600) == (5, 24 * 3600, 0)
    html = PartRenderer().render("home", "day", day)
    shown = time.strftime("%m-%d %H:%M UTC", time.gmtime(last))
    assert f'<time data-clock="{last:.0f}">{shown}</time>' in html


def test_outcomes_of_a_server_are_its_ended_calls_oldest_first(store: Store) -> None:
    store.servers.publish(entry(), (), now=1.0)
    store.servers.publish(entry("other"), (), now=1.0)
    for number, (failed, name) in enumerate((("bug", "dns"), (None, "dns"), (None, "other"))):
        store.calls.record(invocation(f"c{number}", failed, started=number, entry=name), 1.0)
    store.calls.mark_wrong("c1", "ann", 2.0)
    found = store.calls.find_outcomes("dns", 10)
    assert [(each.started, each.fault) for each in found] == [(0.0, "server"), (1.0, "server")]
    assert store.calls.find_outcomes("dns", 1)[0].started == 1.0


def test_a_version_is_told_by_what_it_changed() -> None:
    before = entry("dns", 1, tool("a"), tool("b"), tool("c"), permissions=("network:x", "clock"))
    after = entry("dns", 2, tool("b"), tool("c", "New."), tool("d"), permissions=("clock", "env:K"))
    assert compare_versions(before, after) == VersionDifference(
        ("d",), ("a",), ("c",), ("env:K",), ("network:x",)
    )
    same = replace(after, version=3)
    assert compare_versions(after, same) == VersionDifference((), (), (), (), ())


def test_a_version_s_page_shows_changed_tools_permissions_and_lines(
    settings: Settings, store: Store
) -> None:
    fill_store(store)
    html = render_panels(store, Place("servers", "dns", {"version": "2"}), settings)["difference"]
    assert "+network:status.example:443" in html
    assert "-set_ttl" in html
    assert "+update_zone" in html
    assert "http.put" in html
    assert "http.patch" in html
    first = render_panels(store, Place("servers", "dns", {"version": "1"}), settings)
    assert "first version" in first["difference"]
    none = render_panels(store, Place("servers", "dns", {"version": "9"}), settings)
    assert "There is no" in none["difference"]


def test_lines_that_differ_stand_with_three_around_them() -> None:
    lines = [str(number) for number in range(20)]
    assert [*iterate_differences(lines, lines)] == []
    after = [*lines[:10], "new", *lines[11:]]
    kinds = [kind for kind, _ in iterate_differences(lines, after)]
    assert kinds == ["gap", "same", "same", "same", "del", "ins", "same", "same", "same", "gap"]


def test_hostile_code_is_compared_without_matching_every_line_with_every_other() -> None:
    many = ["x", "y"] * MATCHED_LINES
    found = [*iterate_differences(["a", *many, "b"], ["c", *reversed(many), "d"])]
    assert {kind for kind, _ in found} == {"del", "ins"}


def test_the_graph_shows_hosts_and_called_tools_and_never_goes_round_in_circles(
    store: Store,
) -> None:
    assert compute_depths({"a": ["b"], "b": ["c"], "c": [], "d": ["gone"]}) == {
        "a": 2,
        "b": 1,
        "c": 0,
        "d": 0,
    }
    assert max(compute_depths({"a": ["b"], "b": ["a"]}).values()) == MAX_DEPTH
    fill_store(store)
    parts = render_panels(store, Place("graph"))
    assert "<code>dns.list_zones</code>" in parts["graph"]
    assert "status.example" in parts["graph"]
    assert parts["graph"].count('class="edge"') == 7
    assert "made from dns@2" in parts["lineage"]
    assert parts["lineage"].count('class="edge branch"') == 1


def test_a_call_of_the_form_that_was_refused_a_host_is_answered_with_a_button(store: Store) -> None:
    refusal = {
        "request": {"method": "GET", "url": "http://localhost:9/zones"},
        "refusal": "not_allowed",
        "reason": "a person can grant it with `toolwright source allow localhost:9`",
    }
    call = invocation("c1", "not_allowed", exchanges=(refusal,))
    html = PartRenderer().render("calls", "refused_host", show_refused_host(call, (), "tried"))
    assert re.search(r'type="button" data-post="/hosts"[^>]* data-host="localhost:9"', html)
    assert show_refused_host(invocation("c2", "upstream"), (), "tried") is None


def test_figures_of_calls_say_which_of_them_count(store: Store) -> None:
    store.servers.publish(entry(), (), now=1.0)
    store.calls.record(invocation("c0"), 1.0)
    for number in (1, 2):
        store.calls.record(invocation(f"c{number}", "arguments"), 1.0)
    server = render_panels(store, Place("servers", "dns"))
    assert "3: 1 right, 0 wrong, 2 that do not count" in server["trust"]
    tool = render_panels(store, Place("servers", "dns", {"tool": "list_zones"}))["tool"]
    assert "3, 100% right of the last 1 that count" in tool
    assert "mistakes and outages do not count" in tool
    assert "also by callers" in render_panels(store, Place())["day"]


def test_a_call_of_a_destructive_tool_says_so(store: Store) -> None:
    destructive = replace(tool("create_zone", access="write"), destructive=True)
    store.servers.publish(entry("dns", 1, destructive), (), now=1.0)
    store.calls.record(invocation("c1", tool="create_zone", access="write"), 1.0)
    assert view_call(store, "c1", CalledTools(store.servers, None)).access == "destructive"
