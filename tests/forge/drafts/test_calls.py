"""Operations that a tool's code calls become its requests, its access and its credentials."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from forge.drafts.calls import resolve_calls
from forge.drafts.draft import Draft, parse_draft
from forge.drafts.examples import HTTP_EXAMPLE
from forge.drafts.named import find_missing_tools
from sandbox.bundle.apispec import APISpec, Operation
from sandbox.bundle.model import RequestPattern

BASE = "https://api.harbour.example/v1"


def operation(method: str, path: str, access: Any = "read", **more: Any) -> Operation:
    return Operation(f"{method} {path}", method, path, BASE, access, **more)


SPEC = APISpec(
    "Harbour",
    "",
    "docs",
    "prose",
    (operation("GET", "/berths"), operation("POST", "/bookings", "write")),
)


def parsed(**changes: Any) -> Draft:
    given = {key: value for key, value in HTTP_EXAMPLE.items() if key != "api"}
    tool = {**given["tools"][0], **changes}
    draft = parse_draft({**given, "tools": [tool]})
    assert isinstance(draft, Draft), draft
    return draft


def reasons(draft: Draft, spec: APISpec | None = SPEC) -> str:
    found = resolve_calls(draft, spec, BASE)
    assert not isinstance(found, Draft)
    return "\n".join(f"{problem.where}: {problem.reason}" for problem in found)


def test_a_tool_asks_for_its_operations_and_writes_where_one_of_them_does() -> None:
    made = resolve_calls(parsed(), SPEC, BASE)
    assert isinstance(made, Draft)
    (tool,) = made.tools
    assert tool.requests == (
        RequestPattern("GET", f"{BASE}/berths"),
        RequestPattern("POST", f"{BASE}/bookings"),
    )
    assert tool.access == "write"
    asked = [answer.tool for answer in made.examples[0].answers]
    assert asked == [f"GET {BASE}/berths?min_length=10", f"POST {BASE}/bookings"]


def test_a_read_that_says_so_is_a_write_all_the_same() -> None:
    made = resolve_calls(parsed(access="read"), SPEC, BASE)
    assert isinstance(made, Draft)
    assert made.tools[0].access == "write"


def test_what_is_no_operation_is_told_with_those_that_there_are() -> None:
    told = reasons(parsed(calls=["GET /berth", "POST /bookings"]))
    assert "/tools/0/calls/0: is no operation of the API, which has GET /berths" in told
    assert "there is no API" in reasons(parsed(), None)


def test_operations_with_other_credentials_are_not_one_tools() -> None:
    keyed = replace(SPEC.operations[1], security=(("key",),))
    other = replace(SPEC, operations=(SPEC.operations[0], keyed))
    assert "different credentials" in reasons(parsed(), other)


def test_tools_that_a_task_names_are_found_behind_the_word_alone() -> None:
    task = "A server with the tools list_zones, get_zone and move_zone. Keep snake_case."
    assert find_missing_tools(task, {"get_zone"}) == ("list_zones", "move_zone")
    assert find_missing_tools("what lies at https://x.example/a_b of no_tool", ()) == ()
