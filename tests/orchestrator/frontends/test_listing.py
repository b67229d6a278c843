from __future__ import annotations

from typing import Any

import pytest

from orchestrator.frontends.protocol import flatten_tool
from sandbox.bundle.model import RequestPattern, ToolDefinition


def tool(access: Any = "read", **given: Any) -> ToolDefinition:
    return ToolDefinition(
        name="get_pet",
        description="Get a pet.",
        input_schema={
            "type": "object",
            "properties": {"id": {"type": "string", "x-in": "path:id"}, "any": True},
        },
        output_schema={"type": "object"},
        access=access,
        operation="getPet",
        requests=(RequestPattern("GET", "https://api.test/v1/pets/{id}"),),
        **given,
    )


def test_a_tool_is_listed_without_what_only_the_proofs_read() -> None:
    assert flatten_tool(tool(), "https://api.test/v1") == {
        "name": "get_pet",
        "description": "Get a pet.",
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "any": True},
        },
        "annotations": {"readOnlyHint": True},
        "_meta": {"toolwright": {"method": "GET", "path": "/pets/{id}"}},
    }


def test_the_path_is_the_documents_own() -> None:
    listed = flatten_tool(tool(path="/pets/{id}?full=1#a"), "https://other.test")
    assert listed["_meta"]["toolwright"]["path"] == "/pets/{id}?full=1#a"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"destructive": True}, {"readOnlyHint": False}),
        ({}, {"readOnlyHint": False, "destructiveHint": False}),
        (
            {"idempotent": True, "destructive": True},
            {"readOnlyHint": False, "idempotentHint": True},
        ),
    ],
)
def test_annotations_say_what_is_not_the_default(given: Any, told: Any) -> None:
    assert flatten_tool(tool("write", **given), "")["annotations"] == told
