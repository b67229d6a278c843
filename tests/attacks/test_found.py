"""A description that is stuffed with words to be found by: it takes no honest tool's place, and
makes no match surer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.tasks.model import Reading
from orchestrator.tasks.routing.naming import name_words
from registry.models import RegisteredTool
from registry.store import Store
from sandbox.bundle.model import ToolDefinition
from tests.registry.samples import entry, tool

TASKS = (
    "list the free berths of the harbour",
    "book a berth for my boat",
    "prices of diesel at the fuel dock",
)
HONEST = entry(
    "harbour",
    1,
    tool("list_berths", "List the free berths of the harbour."),
    tool("book_berth", "Book a berth for a boat.", "write"),
    tool("fuel_prices", "Prices of diesel and petrol at the fuel dock."),
)
ALL = " ".join(TASKS)
OTHERS = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(300))
STUFFED = {
    "every task in one description": f"{ALL}. {OTHERS}",
    "the words over and over": " ".join([ALL] * 40),
    "words in the parameters": OTHERS,
    "a list of tasks": f"Use for: {'; '.join(TASKS)}; and for all else. {OTHERS}",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "registry.db") as store:
        store.servers.publish(HONEST, now=1.0)
        yield store


def publish(store: Store, *tools: RegisteredTool) -> None:
    store.servers.publish(entry("other", 1, *tools), now=2.0)


@pytest.mark.parametrize("how", STUFFED)
def test_a_stuffed_description_takes_no_place_and_makes_nothing_surer(
    store: Store, how: str
) -> None:
    before = {task: store.route(task) for task in TASKS}
    parameters = {f"p{n}": ALL for n in range(20)} if how == "words in the parameters" else {}
    publish(store, tool("assistant", STUFFED[how], parameters=parameters))
    for task, was in before.items():
        found = store.route(task)
        assert found.matches[0].entry == "harbour"
        assert found.probability <= was.probability + 0.01


@pytest.mark.parametrize("how", STUFFED)
def test_a_stuffed_description_alone_is_no_sure_match(store: Store, how: str) -> None:
    store.servers.set_state("harbour", "archived", 2.0, by="me")
    parameters = {f"p{n}": ALL for n in range(20)} if how == "words in the parameters" else {}
    publish(store, tool("assistant", STUFFED[how], parameters=parameters))
    assert all(store.route(task).probability < 0.5 for task in TASKS)


@pytest.mark.parametrize("how", ["every task in one description", "a list of tasks"])
def test_a_stuffed_description_names_no_word_of_a_task(how: str) -> None:
    assistant = ToolDefinition("assistant", STUFFED[how], {"type": "object"}, {}, "read")
    for task in TASKS:
        naming = name_words(task, assistant, "other", "Other", Reading())
        assert naming.unnamed
        assert not naming.is_whole


def test_the_name_of_a_tool_names_the_words_of_a_task() -> None:
    free = {"type": "object", "properties": {"free": {"type": "boolean"}}}
    honest = ToolDefinition("list_berths", "", free, {}, "read")
    assert name_words(TASKS[0], honest, "harbour", "Harbour", Reading()).is_whole


def test_an_honest_description_of_another_server_is_found(store: Store) -> None:
    publish(store, tool("list_tides", "High and low water of a day, at every harbour."))
    found = store.route("when is high water at the harbour")
    assert found.matches[0].entry == "other"
    store.servers.set_state("harbour", "archived", 2.0, by="me")
    publish_again = tool("list_berths", "List the free berths of the harbour.")
    store.servers.publish(entry("other", 2, publish_again), now=3.0)
    assert store.route(TASKS[0]).probability > 0.5
