"""The index in memory: both ways of adding up agree, and what changes is found at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.search.postings import (
    BULK,
    MAX_REPEATS,
    Postings,
    SearchDocument,
    WeighedTerm,
    WeightedField,
    group_keys,
    pack_stems,
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
        postings.extend([document(id, words) for id, words in enumerate(texts)])
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
    at_once.extend(documents)
    for each in documents:
        one_by_one.extend([each])
    for word in (*WORDS, "nothing"):
        assert at_once.count_documents(word) == one_by_one.count_documents(word)
        assert at_once.get_worth(word, 777) == one_by_one.get_worth(word, 777)
    best = [each.select_best(each.add_up(TERMS, 0.8), 20) for each in (at_once, one_by_one)]
    assert best[0] == best[1]


@pytest.mark.parametrize("quick", [True, False])
def test_what_was_discarded_is_not_found_and_not_counted(quick: bool) -> None:
    postings = Postings(quick)
    postings.extend([document(id, ["zone"], "dns" if id else "gone") for id in range(20)])
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
    postings.extend([few])
    postings.extend([SearchDocument(1, "dns", "b", "read", "b", many.stems, many.worths)])
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


@pytest.mark.parametrize("low", [0, 1 << 32], ids=["other keys", "keys with the same 32 bits"])
def test_equal_keys_are_brought_together_in_their_order(low: int) -> None:
    numpy = pytest.importorskip("numpy")
    keys = numpy.array([7, 7 + (low or 1), 7, 7 + (low or 1), -5, 7], numpy.int64)
    order, starts = group_keys(numpy, keys)
    groups = [part.tolist() for part in numpy.split(order, starts[1:])]
    assert sorted(groups) == [[0, 2, 5], [1, 3], [4]]
