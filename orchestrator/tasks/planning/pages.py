"""Whether what a list answered may be its first page only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.tasks.reading.parameters import ToolParameter, list_parameters
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.accepted import PAGES, get_place

SMALL = 10
"""A list of fewer rows is no page of a longer one, though its tool takes a page."""
_PAGING = frozenset("page offset cursor skip limit start after top per".split())


def takes_pages(tool: ToolDefinition) -> bool:
    """Whether one call of a list may give its first rows only."""
    return bool(find_most(tool)) or any(map(_is_paging, list_parameters(tool.input_schema)))


def find_most(tool: ToolDefinition) -> str:
    """The argument by which a tool follows pages, "" where it has none."""
    properties = tool.input_schema.get("properties") or {}
    return next((name for name, each in properties.items() if get_place(each)[0] == PAGES), "")


def _is_paging(parameter: ToolParameter) -> bool:
    return parameter.is_counting or bool(_PAGING & {*parameter.words})


def describe_page(tool: ToolDefinition, arguments: Mapping[str, Any], answer: Any) -> str:
    """What is to be said of a list that may go on behind what was answered, "" where it is whole,
    or where who asked said which part is wanted.
    """
    parameters = list_parameters(tool.input_schema)
    most = find_most(tool)
    asked = {p.name for p in parameters if _is_paging(p)} | {most}
    if not takes_pages(tool) or asked & arguments.keys():
        return ""
    rows = _find_rows(answer)
    if rows is None or len(rows) < find_page_size(tool):
        return ""
    how = f"; `{most}` follows the pages" if most else ""
    return f"There may be more than these {len(rows)}{how}."


def find_page_size(tool: ToolDefinition) -> int:
    """How many rows a page has that nobody gave a size for; where the schema does not say, how many
    rows are taken for one.
    """
    counting = [p for p in list_parameters(tool.input_schema) if p.is_counting]
    sizes = [p.schema.get("default") for p in counting]
    return sizes[0] if len(sizes) == 1 and isinstance(sizes[0], int) and sizes[0] > 0 else SMALL


def _find_rows(answer: Any) -> list[Any] | None:
    """The one list of an answer: itself, or the only field of it that is one."""
    if isinstance(answer, list):
        return answer
    fields = answer.values() if isinstance(answer, Mapping) else ()
    lists = [field for field in fields if isinstance(field, list)]
    return lists[0] if len(lists) == 1 else None
