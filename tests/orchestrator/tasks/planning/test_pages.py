from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tasks.planning.pages import describe_page
from sandbox.bundle.model import ToolDefinition

WHOLE = {"type": "integer"}


def tool(**properties: Any) -> ToolDefinition:
    takes = {"type": "object", "properties": properties}
    return ToolDefinition("list_boats", "GET /boats.", takes, {}, "read")


SIZED = tool(limit={"type": "integer", "default": 3}, kind={"type": "string"})
FOLLOWED = tool(limit=SIZED.input_schema["properties"]["limit"], most={"x-in": "pages", **WHOLE})
UNSIZED = tool(page=WHOLE)


@pytest.mark.parametrize(
    ("takes", "arguments", "answer", "told"),
    [
        (SIZED, {}, [1, 2, 3], "There may be more than these 3."),
        (SIZED, {"kind": "sail"}, {"boats": [1, 2, 3]}, "There may be more than these 3."),
        (FOLLOWED, {}, [1, 2, 3], "There may be more than these 3; `most` follows the pages."),
        (UNSIZED, {}, [*range(10)], "There may be more than these 10."),
        (SIZED, {}, [1, 2], ""),
        (SIZED, {"limit": 3}, [1, 2, 3], ""),
        (FOLLOWED, {"most": 3}, [1, 2, 3], ""),
        (UNSIZED, {}, [*range(9)], ""),
        (SIZED, {}, {"a": [1, 2, 3], "b": []}, ""),
        (SIZED, {}, "text", ""),
        (tool(kind={"type": "string"}), {}, [*range(50)], ""),
    ],
)
def test_a_full_page_of_a_list_may_have_more_behind_it(
    takes: ToolDefinition, arguments: dict[str, Any], answer: Any, told: str
) -> None:
    assert describe_page(takes, arguments, answer) == told
