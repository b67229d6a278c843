"""Registered tools that may do a task already are named in its brief."""

from __future__ import annotations

import pytest

from orchestrator.forging.drafts.briefing import rank_similar
from registry.store import Store
from tests.registry.samples import entry, tool

TASK = (
    "A tool total_lengths(rows) that adds up lengths given in metres, feet and yards, and refuses "
    "a unit that it does not know; the answer is in metres with three decimals."
)


@pytest.fixture
def lengths(store: Store) -> Store:
    store.servers.publish(
        entry("lengths", 1, tool("total", "Sum of values."), description=TASK[:300]), now=1.0
    )
    for number in range(30):
        units = tool("convert", "Convert metres, feet and yards.")
        store.servers.publish(entry(f"units_{number}", 1, units), now=1.0)
    return store


@pytest.mark.parametrize("task", [TASK, TASK.replace("three", "two"), TASK.upper()])
def test_a_task_like_that_of_a_registered_server_finds_its_tools_first(
    lengths: Store, task: str
) -> None:
    near = rank_similar(task, lengths.search.find_tools(task, 50))
    assert near[0].tool == "lengths.total"


@pytest.mark.parametrize(
    "task", ["the roots of a polynomial", "adds up the weights of parcels", ""]
)
def test_another_task_finds_none(lengths: Store, task: str) -> None:
    assert "lengths.total" not in [
        n.tool for n in rank_similar(task, lengths.search.find_tools(task, 50))
    ]
