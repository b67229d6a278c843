"""The index in memory: both ways of adding up agree, and what changes is found at once."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.search.documents import (
    MAX_REPEATS,
    FoundTool,
    SearchDocument,
    WeightedField,
    hash_stem,
    pack_documents,
    pack_stems,
)
from registry.search.postings import (
    BULK,
    KEPT_SHARE,
    LEAST_KEPT,
    MOST_ADDED,
    MOST_ENDS,
    Postings,
    WeighedTerm,
)
from registry.store import Store
from tests.registry.samples import entry, tool

FIELD = WeightedField(2.0, 0.75, 4)
WORDS = ("zone", "record", "berth", "boat", "tide", "list")
TERMS = (
    WeighedTerm(2.0, (("zone", 1.0), ("record", 0.4))),
    WeighedTerm(1.0, (("berth", 0.9),)),
    WeighedTerm(0.5, (("nothing", 1.0),)),
)


def document(id: int, words: list[str], entry: str = "dns") -> SearchDocument:
    return SearchDocument(id, entry, f"tool_{id}", "read", "tool", *pack_stems({FIELD: words}))


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=8), max_size=20))
def test_a_search_without_numpy_comes_to_the_same(texts: list[list[str]]) -> None:
    found = []
    for quick in (True, False):
        postings = Postings(quick)
        postings.extend(pack_documents(document(id, words) for id, words in enumerate(texts)))
        sums = postings.add_up(TERMS, 0.8)
        slots = range(len(texts))
        evidence = [round(each, 4) for each in sums.list_evidence(slots)]
        covered = [round(each, 4) for each in sums.list_covered(slots)]
        found.append((evidence, covered, set(postings.select_best(sums, len(texts)))))
    assert found[0] == found[1]


@pytest.mark.parametrize("quick", [True, False])
def test_many_documents_at_once_are_the_same_as_one_after_another(quick: bool) -> None:
    texts = [[WORDS[id % 6], WORDS[id % 5]] for id in range(BULK)]
    documents = [document(id, words, f"server{id % 7}") for id, words in enumerate(texts)]
    at_once, one_by_one = Postings(quick), Postings(quick)
    at_once.extend(pack_documents(documents))
    for each in documents:
        one_by_one.extend(pack_documents([each]))
    for word in (*WORDS, "nothing"):
        assert at_once.count_documents(word) == one_by_one.count_documents(word)
        assert at_once.get_worth(word, 777) == one_by_one.get_worth(word, 777)
    best = [each.select_best(each.add_up(TERMS, 0.8), 20) for each in (at_once, one_by_one)]
    assert best[0] == best[1]


@pytest.mark.parametrize("quick", [True, False])
def test_of_equals_those_that_came_first_are_the_best(quick: bool) -> None:
    postings = Postings(quick)
    texts = [["zone", "berth"] if id == 17 else ["zone"] for id in range(50)]
    postings.extend(pack_documents(document(id, words) for id, words in enumerate(texts)))
    best = postings.select_best(postings.add_up(TERMS, 0.8), 5)
    assert best == [17, 0, 1, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.sampled_from(WORDS))), max_size=6))
def test_what_was_asked_before_is_found_as_by_who_asks_first(
    steps: list[tuple[int, list[str]]],
) -> None:
    """Words are kept with their postings, until servers come or go."""
    asked, left = Postings(), dict[str, list[SearchDocument]]()
    for id, (number, words) in enumerate(steps):
        server = f"server{number}"
        if left.pop(server, None):
            asked.discard(server)
        else:
            left[server] = [document(id, words, server), document(id + 100, ["zone"], server)]
            asked.extend(pack_documents(left[server]))
        fresh = Postings()
        for documents in left.values():
            fresh.extend(pack_documents(documents))
        found = [
            sorted((tool.id, round(evidence, 4)) for tool, evidence in search_all(each))
            for each in (asked, fresh)
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("wanted", [[3, 7, 299], range(300)], ids=["few", "all"])
def test_a_search_without_numpy_covers_the_same(wanted: Sequence[int]) -> None:
    covered = []
    for quick in (True, False):
        postings = Postings(quick)
        texts = (["zone", "berth"] if id % 7 == 0 else ["zone"] for id in range(300))
        postings.extend(pack_documents(document(id, words) for id, words in enumerate(texts)))
        covered.append(
            [round(each, 4) for each in postings.add_up(TERMS, 0.8).list_covered(wanted)]
        )
    assert covered[0] == covered[1]
    assert {*covered[0]} == {2.0, 3.0}


def test_of_a_very_common_word_only_tools_that_rarer_words_found_count_without_numpy() -> None:
    terms = (WeighedTerm(1.0, (("zone", 1.0),)), WeighedTerm(2.0, (("berth", 1.0),)))
    documents = [
        document(id, ["zone", "berth"] if id % 1_000 == 0 else ["zone"])
        for id in range(MOST_ADDED + 1)
    ]
    found = []
    for quick in (True, False):
        postings = Postings(quick)
        postings.extend(pack_documents(documents))
        sums = postings.add_up(terms, 0.8)
        slots = sorted(postings.select_best(sums, 31))
        found.append((slots, [round(each, 4) for each in sums.list_evidence(slots)]))
    assert found[0] == found[1]
    assert found[1][0] == list(range(0, MOST_ADDED + 1, 1_000))
    assert sums.list_evidence([1]) == [0.0]


def search_all(postings: Postings) -> list[tuple[FoundTool, float]]:
    sums = postings.add_up(TERMS, 0.8)
    slots = postings.select_best(sums, 100)
    return list(zip(map(postings.get_tool, slots), sums.list_evidence(slots), strict=True))


@pytest.mark.parametrize("word", ["zone", "unknown"])
def test_words_that_are_asked_for_take_no_more_memory_than_the_documents_allow(word: str) -> None:
    postings = Postings(quick=True)
    postings.extend(pack_documents(document(id, ["zone", "list"]) for id in range(1_000)))
    tracemalloc.start()
    try:
        for number in range(3_000):
            stems = ((word, number / 3_000), (f"{word}{number}", 0.9))
            postings.add_up([WeighedTerm(1.0, stems)], 0.0)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 40 * (LEAST_KEPT + KEPT_SHARE * 1_000)


@pytest.mark.parametrize("quick", [True, False])
def test_what_was_discarded_is_not_found_and_not_counted(quick: bool) -> None:
    postings = Postings(quick)
    postings.extend(
        pack_documents(document(id, ["zone"], "dns" if id else "gone") for id in range(20))
    )
    postings.discard("gone")
    assert (len(postings), postings.count_documents("zone")) == (19, 19)
    assert 0 not in postings.select_best(postings.add_up(TERMS, 0.8), 50)
    assert postings.find_slot(0) is None
    postings.discard("dns")
    assert (len(postings), postings.count_documents("zone")) == (0, 0)
    assert postings.select_best(postings.add_up(TERMS, 0.8), 50) == []


def test_a_word_said_over_and_over_counts_no_more_than_a_few_times() -> None:
    few, many = (
        document(0, ["zone"] * count + ["tide"] * (40 - count)) for count in (MAX_REPEATS, 40)
    )
    postings = Postings()
    both = [few, SearchDocument(1, "dns", "b", "read", "b", many.stems, many.worths)]
    postings.extend(pack_documents(both))
    assert postings.get_worth("zone", 1) == postings.get_worth("zone", 0)


def test_another_process_finds_what_was_published_withdrawn_and_published_again(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "registry.db") as one, Store.open(tmp_path / "registry.db") as two:
        assert two.search.find_tools("list zones") == ()
        one.servers.publish(entry("dns", 1, tool("list_zones")), now=1.0)
        assert [match.tool for match in two.search.find_tools("list zones")] == ["list_zones"]
        one.servers.publish(entry("dns", 2, tool("list_boats")), now=2.0)
        assert two.search.find_tools("zones") == ()
        assert [match.tool for match in two.search.find_tools("list boats")] == ["list_boats"]
        one.servers.set_state("dns", "archived", 3.0, by="me")
        assert two.search.find_tools("list boats") == ()
        one.servers.publish(entry("marina", 1, tool("list_boats")), now=4.0)
        one.servers.set_state("dns", "active", 5.0, by="me")
        assert [match.entry for match in two.search.find_tools("list boats")] == ["dns", "marina"]


@pytest.mark.parametrize("quick", [True, False])
def test_what_is_published_and_withdrawn_after_many_were_loaded_is_as_if_loaded_with_them(
    quick: bool,
) -> None:
    texts = [[WORDS[id % 6], WORDS[id % 5]] for id in range(2 * BULK)]
    documents = [document(id, words, f"server{id // 7}") for id, words in enumerate(texts)]
    whole, in_parts = Postings(quick), Postings(quick)
    whole.extend(pack_documents([*documents[7:], *documents[:7]]))
    in_parts.extend(pack_documents(documents[: 7 * (BULK // 7 + 1)]))
    assert in_parts.count_documents("zone")
    in_parts.extend(pack_documents(documents[7 * (BULK // 7 + 1) :]))
    in_parts.discard("server0")
    in_parts.extend(pack_documents(documents[:7]))
    for word in (*WORDS, "nothing"):
        assert whole.count_documents(word) == in_parts.count_documents(word)
    found = []
    for postings in (whole, in_parts):
        best = postings.select_best(postings.add_up(TERMS, 0.8), 2 * BULK)
        found.append([postings.get_tool(slot) for slot in best])
    assert found[0] == found[1]
    slots = [postings.find_slot(3) for postings in (whole, in_parts)]
    tools = [
        postings.get_tool(slot)
        for postings, slot in zip((whole, in_parts), slots, strict=True)
        if slot is not None
    ]
    assert [each.tool for each in tools] == ["tool_3", "tool_3"]


def test_stems_whose_keys_end_alike_are_told_apart() -> None:
    pytest.importorskip("numpy")
    seen: dict[int, str] = {}
    words = (f"word{number}" for number in range(100_000))
    one, other = next(
        (seen[end], word)
        for word in words
        if seen.setdefault(end := hash_stem(word) & MOST_ENDS, word) != word
    )
    postings = Postings(True)
    texts = [[one], [other], [one, other], *[["zone"]] * BULK]
    postings.extend(pack_documents(document(id, words) for id, words in enumerate(texts)))
    for word, slots in ((one, [0, 2]), (other, [1, 2])):
        assert [slot for slot in range(BULK) if postings.get_worth(word, slot)] == slots
