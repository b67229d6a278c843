from __future__ import annotations

from dataclasses import replace
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
    reading = read_arguments(task, tool.input_schema, tool=tool.name)
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
    assert named(task).is_whole


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


@pytest.mark.parametrize(
    "task",
    [
        "which berths have we got",
        "an overview of the berths at the moment",
        "look up the berths",
        "the whole list of berths",
        "details of the berths right now",
    ],
)
def test_phrases_that_say_nothing_name_nothing(task: str) -> None:
    assert named(task) == Naming((), True, True)


def test_the_path_of_an_operation_and_who_there_is_are_named() -> None:
    tool = replace(BERTHS, path="/marinas/{id}/berths")
    assert named("berths of the marina", tool).is_whole
    assert not named("berths of the marina").is_whole
    people = {"properties": {"body": {"items": {"properties": {"name": {"type": "string"}}}}}}
    assert named("who are the berths", replace(BERTHS, output_schema=people)).is_whole
    assert not named("who are the berths").is_whole


def test_several_are_named_by_a_plural_alone() -> None:
    assert named("show the berths").is_many
    assert named("show the berth") == Naming((), True, False)


PARCEL = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}
PARCEL_HAS = {"properties": {"body": {"properties": {"due": {"type": "string"}}}}}
TRACK = ToolDefinition("track_parcel", "", PARCEL, PARCEL_HAS, "read")


@pytest.mark.parametrize(
    ("task", "whole"),
    [
        ("track PX-100", True),
        ("track 5", False),
        ("find PX-100", False),
        ("when is parcel PX-100 due", True),
        ("who has parcel PX-100", False),
        ("when do I get a parcel", False),
        ("mark parcel PX-100 as due", False),
    ],
)
def test_a_verb_of_its_own_with_a_code_or_a_question_for_a_field_names_a_tool(
    task: str, whole: bool
) -> None:
    assert named(task, TRACK).is_whole is whole


def test_a_value_says_its_kind() -> None:
    codes = {"source": {"type": "string"}, "target": {"type": "string"}}
    amounts: dict[str, Any] = {"amount": {"type": "number"}, **codes}
    schema = {"type": "object", "properties": amounts, "required": [*amounts]}
    tool = ToolDefinition("convert_currency", "", schema, {}, "read")
    assert named("convert 100 EUR to USD", tool).is_whole
    assert not name_words("convert 100 EUR to USD", tool, "money", "", Reading()).is_whole


@pytest.mark.parametrize(
    ("task", "name", "whole"),
    [
        ("search the boats for b1", "boats_controller_dl", False),
        ("boats b1", "boats_controller_dl", False),
        ("show boat b1", "boat_cover", False),
        ("open the track PX-100", "track_parcel", False),
        ("could you track PX-100", "track_parcel", True),
    ],
)
def test_what_a_tool_is_about_is_no_verb_that_says_all_of_it(
    task: str, name: str, whole: bool
) -> None:
    takes = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    tool = ToolDefinition(name, "", takes, None, "read")
    value = task.split()[-1]
    reading = Reading({"id": value}, evidence={"id": value}, origins={"id": "task"})
    assert name_words(task, tool, "harbour", "", reading).is_whole is whole


def takes(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required]}


WHOLE, TEXT = {"type": "integer"}, {"type": "string"}
ROW = {"properties": {"body": {"properties": {"assignee": TEXT, "starts_at": TEXT, "phone": TEXT}}}}
STATES = {"type": "string", "enum": ["open", "done"]}
JOBS = ToolDefinition("list_jobs", "", takes(status=STATES, customer_id=WHOLE), ROW, "read")
JOB = ToolDefinition("jobs_get_by_id", "", takes("id", id=WHOLE), ROW, "read")
CHANGE = ToolDefinition("update_job", "", takes("id", id=WHOLE, status=STATES), ROW, "write")
CREATE = ToolDefinition("post_jobs", "", takes("title", title=TEXT), ROW, "write")
BOOKINGS = ToolDefinition("list_bookings", "", takes(), ROW, "read")
BOOKS = ToolDefinition("list_books", "", takes(), ROW, "read")


@pytest.mark.parametrize(
    ("task", "tool"),
    [
        ("mark job 3 as done", CHANGE),
        ("set the status of job 3 to done", CHANGE),
        ("make job 3 open", CHANGE),
        ("show job 3", JOB),
        ("when does job 3 start", JOB),
        ("who is job 3 assigned to", JOB),
        ('add a job titled "Paint"', CREATE),
        ("the phones of the jobs", JOBS),
        ("list the bookings", BOOKINGS),
    ],
)
def test_other_words_for_what_a_tool_does_name_it_whole(task: str, tool: ToolDefinition) -> None:
    assert named(task, tool).is_whole


@pytest.mark.parametrize(
    ("task", "tool", "unnamed"),
    [
        ("mark job 3", CHANGE, ("mark",)),
        ("mark job 3 as done", JOB, ("mark", "as", "done")),
        ("customers with open jobs", JOBS, ("customers",)),
        ("list the bookings", BOOKS, ("bookings",)),
        ("list the books", BOOKINGS, ()),
    ],
)
def test_words_for_another_thing_or_another_act_do_not_name_a_tool(
    task: str, tool: ToolDefinition, unnamed: tuple[str, ...]
) -> None:
    assert named(task, tool) == Naming(unnamed, False)
