"""What `bench.reality` measures with: scenarios, and how answers and arguments are read."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from mcp.types import Tool

from bench.reality.calling import (
    FilePart,
    NoTool,
    encode_files,
    find_tool,
    fit_arguments,
    read_answer,
)
from bench.reality.model import RealServer
from bench.reality.servers import SERVERS


def tool(name: str, description: str, *properties: str) -> Tool:
    schema = {"type": "object", "properties": {name: {} for name in properties}}
    return Tool(name=name, description=description, input_schema=schema)


LIST = tool("list_boats", "All boats. GET /boats.", "if_match")
MAKE = tool("make_boat", "POST /boats. Body: a boat.", "name", "body")
SPREAD = tool("boats_post", "POST /boats", "name", "length", "X-Trace")


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_a_server_has_scenarios_enough_that_write_and_read_both_ways(server: RealServer) -> None:
    names = [scenario.name for scenario in server.scenarios]
    assert len(set(names)) == len(names) >= 8
    assert {scenario.through_serve for scenario in server.scenarios} == {True, False}
    assert server.sources[0] == "{host}", "a user gives the bare address first"


def test_a_tool_is_found_by_its_operation_and_by_its_name_alone() -> None:
    tools = [LIST, MAKE]
    assert find_tool(tools, "GET /boats") is LIST
    assert find_tool(tools, "POST /boats") is MAKE
    assert find_tool(tools, "make_boat") is MAKE
    with pytest.raises(NoTool, match="DELETE /boats"):
        find_tool(tools, "DELETE /boats")


def test_arguments_get_the_names_that_a_tool_has_for_them() -> None:
    assert fit_arguments(LIST, {"If-Match": "1", "new": 2}) == {"if_match": "1", "new": 2}
    body = {"name": "Ada", "length": 7}
    assert fit_arguments(MAKE, {"body": body}) == {"body": body}
    assert fit_arguments(SPREAD, {"body": body, "x-trace": "t"}) == {**body, "X-Trace": "t"}


def test_a_file_is_given_as_base64_with_its_name_and_type() -> None:
    part = FilePart("dot.png", b"\x89", "image/png")
    given = {"base64": "iQ==", "filename": "dot.png", "content_type": "image/png"}
    assert encode_files({"body": {"file": [part]}}) == {"body": {"file": [given]}}


@pytest.mark.parametrize(
    ("result", "wrapped", "body"),
    [
        ({"structuredContent": {"status": 200, "body": [1]}}, True, [1]),
        ({"structuredContent": {"body": [1]}}, False, {"body": [1]}),
        ({"structuredContent": {"result": [1]}}, False, [1]),
        ({"content": [{"type": "text", "text": '{"a": 1}'}]}, True, {"a": 1}),
        (
            {"content": [{"type": "text", "text": t} for t in ("a note", '{"a": 1}')]},
            True,
            {"a": 1},
        ),
        ({"content": [{"type": "text", "text": "plain"}]}, True, "plain"),
    ],
)
def test_the_body_is_the_apis_own(result: dict[str, Any], wrapped: bool, body: Any) -> None:
    assert read_answer(result, wrapped).body == body


def test_bytes_and_errors_of_an_answer_are_kept() -> None:
    data = base64.b64encode(b"\x00\xff").decode()
    blocks = [
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "x:y", "blob": data}},
    ]
    answer = read_answer({"content": blocks, "isError": True}, wrapped=True)
    assert answer.data == (b"\x00\xff", b"\x00\xff")
    assert answer.is_error
