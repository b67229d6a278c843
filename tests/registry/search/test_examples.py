"""Example tasks: written by rules or by a model, and learned from calls that succeeded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.search.examples import MAX_OF_TOOL, MAX_RULES, MAX_TASK, write_examples
from registry.store import Store
from tests.registry.samples import entry, invocation, tool

TASK = "boats for plimsoll"
BOATS = (
    tool("list_big_boats", "Boats of the harbour."),
    tool("list_fast_boats", "Boats of the harbour."),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "registry.db") as store:
        store.servers.publish(entry("harbour", 1, *BOATS), now=1.0)
        yield store


def use(store: Store, id: str, task: str = TASK, failed: str | None = None) -> None:
    call = invocation(id, failed, entry="harbour", tool="list_fast_boats", task=task)
    store.calls.record(call, now=2.0)


def first(store: Store, task: str = TASK) -> str:
    return store.route(task).matches[0].tool


def count_rows(store: Store) -> int:
    with store._database.read() as connection:
        query = "SELECT count(*) FROM search_examples"
        return int(connection.exec_driver_sql(query).scalar_one())


def test_rules_write_a_few_bounded_tasks_from_a_listing() -> None:
    told = write_examples(
        tool("list_free_berths", "Free berths. More of it.", parameters={"boatLength": "m"})
    )
    assert "show me free berths" in told
    assert "show me free berths by boat length" in told
    assert "Free berths" in told
    long = write_examples(tool("x" * 40, "y" * 10_000, parameters={"z" * 900: "", "a": ""}))
    for examples in (told, long):
        assert 1 <= len(examples) <= MAX_RULES
        assert all(len(each) <= MAX_TASK for each in examples)


def test_a_model_s_examples_find_a_tool_whose_own_words_do_not(store: Store) -> None:
    assert store.search.find_tools("jollyboats") == ()
    store.search.describe_by_examples("harbour", "list_big_boats", ["all jollyboats, please"], 2.0)
    assert first(store, "jollyboats") == "list_big_boats"


def test_examples_never_make_a_match_surer(store: Store) -> None:
    before = store.route("list the boats of the harbour")
    wording = ["list the boats of the harbour", "boats of the harbour, all of them"]
    store.search.describe_by_examples("harbour", "list_big_boats", wording, 2.0)
    assert store.route("list the boats of the harbour").probability <= before.probability
    store.search.describe_by_examples("harbour", "list_big_boats", ["jollyboats"], 3.0)
    assert store.route("jollyboats").probability < 0.1


def test_tasks_that_succeeded_put_their_tool_first_and_make_nothing_surer(store: Store) -> None:
    before = store.route(TASK)
    assert before.matches[0].tool == "list_big_boats"
    use(store, "a")
    use(store, "b")
    after = store.route(TASK)
    assert after.matches[0].tool == "list_fast_boats"
    assert after.probability <= before.probability
    assert first(store, "boats of the harbour") == "list_big_boats"


def test_failed_calls_teach_nothing_and_wrong_results_count_against(store: Store) -> None:
    use(store, "a", failed="upstream")
    assert first(store) == "list_big_boats"
    use(store, "b")
    use(store, "c")
    assert first(store) == "list_fast_boats"
    store.calls.mark_wrong("b", "ann", 3.0)
    assert first(store) == "list_big_boats"


def test_a_refusal_counts_against_a_tool(store: Store) -> None:
    use(store, "a")
    use(store, "b")
    assert first(store) == "list_fast_boats"
    for _ in range(4):
        store.search.reject(TASK, "harbour", "list_fast_boats", now=4.0)
    assert first(store) == "list_big_boats"


def test_use_lifts_no_tool_that_is_far_behind(store: Store) -> None:
    store.servers.publish(entry("dns", 1, tool("list_zones", "Zones.")), now=2.0)
    for number in range(5):
        call = invocation(f"z{number}", entry="dns", tool="list_zones", task=TASK)
        store.calls.record(call, now=3.0)
    assert store.route(TASK).matches[0].entry == "harbour"


def test_what_is_learned_is_bounded_and_can_be_removed(store: Store) -> None:
    for number in range(MAX_OF_TOOL + 5):
        use(store, f"c{number}", f"{TASK} {number} {'long ' * 200}")
    assert count_rows(store) == MAX_OF_TOOL
    assert store.search.forget_use("another") == 0
    assert store.search.forget_use() == MAX_OF_TOOL
    assert count_rows(store) == 0
    assert first(store) == "list_big_boats"


def test_a_call_recorded_twice_is_learned_once(store: Store) -> None:
    use(store, "a")
    use(store, "a")
    with store._database.read() as connection:
        query = "SELECT good FROM search_examples"
        assert connection.exec_driver_sql(query).scalars().all() == [1]
