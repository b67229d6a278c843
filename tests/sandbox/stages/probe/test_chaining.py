"""Ids that answers give: one path segment, of the list that gave it, and nothing that acts."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.bundle.apispec import Operation, Parameter
from sandbox.bundle.model import ToolDefinition
from sandbox.stages.probe.chaining import ProbeTarget, build_target, find_ids, is_id

GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize(
    "value",
    [
        7,
        0,
        -1,
        "localhost",
        "example.org.",
        "2.0.192.in-addr.arpa.",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "0af3bc12de45",
        "5b8b1f0b7d6e4f9a9c3d2e1f0a9b8c7d",
        "my_dag-2",
        "x" * 128,
    ],
)
def test_what_identifies_goes_into_a_path(value: Any) -> None:
    assert is_id(value)


@pytest.mark.parametrize(
    "value",
    [
        "../admin/delete",
        "..",
        ".",
        "a..b",
        ".hidden",
        "a/b",
        "a\\b",
        "%2e%2e",
        "1;drop",
        "?x=1",
        "a?x=1",
        "a#b",
        "a&b=c",
        "a b",
        "a\nb",
        "a\x00",
        "",
        "x" * 129,
        "x" * 1_000_000,
        "héllo",
        "\uff41dmin",
        "\u202etxt",
        "http://evil.test/",
        "//evil.test",
        "job:cancel",
        "delete",
        "Delete-all",
        "logout",
        "admin",
        "tokens",
        "export",
        "run",
        "Start",
        "restart-all",
        "new",
        "edit",
        GITHUB,
        "AKIAIOSFODNN7QX4PLMA",
        10**400,
        2**63,
        1.5,
        True,
        None,
        ["a"],
        {"id": 1},
    ],
)
def test_what_is_a_path_an_act_or_a_secret_does_not(value: Any) -> None:
    assert not is_id(value)


def target(path: str, kind: str = "string") -> ProbeTarget:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    takes = {
        "type": "object",
        "properties": {n: {"type": kind, "x-in": f"path:{n}"} for n in names},
        "required": names,
    }
    tool = ToolDefinition("tool", "Reads.", takes, {"type": "object"}, "read")
    parameters = tuple(Parameter(name, "path", required=True) for name in names)
    made = build_target(
        tool, Operation(path, "GET", path, "https://api.test", "read", parameters=parameters)
    )
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("listed", "one", "answer", "given"),
    [
        ("/pets", "/pets/{petId}", [{"id": "a1", "owner": "b2"}], {"petId": "a1"}),
        ("/pets", "/pets/{pet_id}", {"pets": [{"pet_id": "p", "id": 3}]}, {"pet_id": "p"}),
        ("/pets", "/pets/{id}", {"items": [{"id": 3}], "tags": ["x"]}, {"id": "3"}),
        ("/pets", "/pets/{name}", {"data": [{"id": 3, "name": "Rex"}]}, {"name": "Rex"}),
        ("/pets", "/pets/{id}/toys", ["a", "b"], {"id": "a"}),
        ("/pets", "/pet/{petId}", [{"id": "a1"}], {"petId": "a1"}),
        ("/pets", "/pets/{id}", [{"id": "../x"}, {"id": "b"}], {"id": "b"}),
        ("/pets", "/pets/{id}", [{"id": "mine"}], None),
        ("/pets", "/pets/{id}", [{"id": "../x"}], None),
        ("/pets", "/pets/{id}", [{"id": {"$oid": "x"}}], None),
        ("/pets", "/pets/{id}", {"id": "a"}, None),
        ("/pets", "/pets/{id}", [], None),
        ("/pets", "/pets/{id}", "text", None),
        ("/pets", "/cats/{id}", [{"id": "a"}], None),
        ("/pets", "/v2/pets/{id}", [{"id": "a"}], None),
        ("/pets", "/pets/{id}", [{"secret_value": "a"}], None),
    ],
)
def test_the_id_in_a_list_feeds_the_read_of_one(
    listed: str, one: str, answer: Any, given: Any
) -> None:
    wanting = target(one)
    known = find_ids(target(listed), answer, [wanting, target("/pets/mine")])
    assert wanting.find_arguments(known) == given


def test_an_id_goes_on_to_what_is_below() -> None:
    zones, zone = target("/servers/{s}/zones"), target("/servers/{server_id}/zones/{zone_id}")
    known = find_ids(target("/servers"), [{"id": "main"}], [zones, zone])
    assert zones.find_arguments(known) == {"s": "main"}
    assert zone.find_arguments(known) is None
    known |= find_ids(zones, [{"id": "example.org."}], [zone])
    assert zone.find_arguments(known) == {"server_id": "main", "zone_id": "example.org."}


def test_a_value_that_the_tool_would_not_take_is_not_tried() -> None:
    one = target("/pets/{id}", "integer")
    assert one.find_arguments(find_ids(target("/pets"), [{"id": 4}], [one])) == {"id": 4}
    assert one.find_arguments(find_ids(target("/pets"), [{"id": "x"}], [one])) is None


@pytest.mark.parametrize("path", ["/files/{name}.json", "/x/{a}-{b}", "/jobs/{id}:show"])
def test_a_parameter_that_is_less_than_a_segment_is_not_filled(path: str) -> None:
    tool = ToolDefinition("tool", "Reads.", {"type": "object"}, {"type": "object"}, "read")
    operation = Operation(path, "GET", path, "https://api.test", "read")
    assert build_target(tool, operation) is None
