from __future__ import annotations

from typing import Any

import pytest

from orchestrator.tasks.model import Reading
from orchestrator.tasks.reading.read import read_arguments
from orchestrator.tasks.routing.naming import Naming, name_words
from sandbox.bundle.model import ToolDefinition

PROPERTIES = {
    "pier": {"type": "string", "enum": ["north", "south"]},
    "boat": {"type": "string", "description": "Name of a yacht, never of a dinghy"},
}
ANSWER = {"properties": {"body": {"items": {"properties": {"price": {"type": "number"}}}}}}
BERTHS = ToolDefinition(
    "list_berths",
    "List vacant moorings.",
    {"type": "object", "properties": PROPERTIES},
    ANSWER,
    "read",
)


def named(task: str, tool: ToolDefinition = BERTHS) -> Naming:
    reading = read_arguments(task, tool.input_schema)
    return name_words(task, tool, "harbour", "Harbour of Bergen, with all that one wants", reading)


@pytest.mark.parametrize(
    "task",
    [
        "list all berths",
        "Please show me the berths of the south pier",
        "the price of the berths in the harbour",
        "berths of the boat Nemo",
    ],
)
def test_a_tool_is_named_by_its_name_its_server_and_what_its_schemas_have(task: str) -> None:
    assert named(task) == Naming((), True)


@pytest.mark.parametrize(
    ("task", "unnamed"),
    [
        ("vacant berths", ("vacant",)),
        ("list berths for a dinghy", ("dinghy",)),
        ("list all that one wants of berths", ("one", "wants")),
        ("list berths tomorrow", ("tomorrow",)),
        ("list the berths that are not north", ("not",)),
        ("list berths, then pay", ("then", "pay")),
        ("how many berths are there", ("how", "many")),
    ],
)
def test_a_word_that_only_prose_has_or_that_changes_the_question_is_not_named(
    task: str, unnamed: tuple[str, ...]
) -> None:
    assert named(task) == Naming(unnamed, False)


def test_a_tool_is_not_named_whole_by_less_than_its_name() -> None:
    assert named("the price of the pier") == Naming((), False)
    assert named("show it") == Naming((), False)


def test_a_value_says_its_kind() -> None:
    codes = {"source": {"type": "string"}, "target": {"type": "string"}}
    amounts: dict[str, Any] = {"amount": {"type": "number"}, **codes}
    schema = {"type": "object", "properties": amounts, "required": [*amounts]}
    tool = ToolDefinition("convert_currency", "", schema, {}, "read")
    assert named("convert 100 EUR to USD", tool).is_whole
    assert not name_words("convert 100 EUR to USD", tool, "money", "", Reading()).is_whole
