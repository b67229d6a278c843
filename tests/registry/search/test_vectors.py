"""Tools found by their meaning: vectors of the real model, how sure a match is, and vetoes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.errors import EncoderUnusable
from registry.models import Route
from registry.search.encoder import DIMENSIONS, check_digest, check_runtime, load_encoder
from registry.search.vectors import VectorIndex, turn_vector
from registry.store import Store
from tests.registry.samples import entry, tool

HARBOUR = entry(
    "harbour",
    1,
    tool("list_berths", "List the free berths of the harbour.", parameters={"length": "Of a boat"}),
    tool("book_berth", "Book a berth for a boat.", "write", {"boat": "The boat's name"}),
    tool("tide_table", "High and low water of a day.", parameters={"date": "The day"}),
    tool("fuel_prices", "Prices of diesel and petrol at the fuel dock."),
)
LIBRARY = entry(
    "library",
    1,
    tool("search_books", "Find books by title or author.", parameters={"author": "Who wrote it"}),
    tool("lend_book", "Lend a book to a reader.", "write", {"reader": "The reader's card"}),
    tool("opening_hours", "When each branch is open."),
)
VAGUE = "vacant moorings for my yacht"
FOREIGN = "summarise the quarterly earnings of this company's competitors"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("vectors") / "registry.db") as store:
        for each in (HARBOUR, LIBRARY):
            store.servers.publish(each, now=1.0)
        while store.search.fill_vectors():
            pass
        yield store


@pytest.fixture
def by_words(tmp_path: Path) -> Iterator[Store]:
    """The same registry, without vectors."""
    with Store.open(tmp_path / "registry.db") as store:
        for each in (HARBOUR, LIBRARY):
            store.servers.publish(each, now=1.0)
        yield store


def first(route: Route) -> str:
    return route.matches[0].tool


def test_a_tool_is_found_by_what_a_task_means_where_they_share_no_word(
    store: Store, by_words: Store
) -> None:
    kayak = "somewhere to put my kayak overnight"
    assert by_words.route(kayak).verdict != "reuse"
    assert store.route(kayak).matches[0].entry == "harbour"
    found = store.route(VAGUE)
    assert first(found) == "list_berths"
    assert found.by_meaning
    assert first(store.route("I want to read something written by Ursula Le Guin")) in (
        "search_books",
        "lend_book",
    )


def test_what_fits_is_more_probable_than_what_does_not(store: Store) -> None:
    fitting = [
        store.route(task).probability
        for task in ("list the free berths", "find books by an author", "fuel prices at the dock")
    ]
    foreign = [
        store.route(task).probability
        for task in (FOREIGN, "translate this sentence into Welsh", "restart the database")
    ]
    assert min(fitting) > max(foreign)


def test_a_task_that_nothing_fits_is_told_to_be_forged(store: Store, by_words: Store) -> None:
    assert store.route(FOREIGN).verdict == "forge"
    assert by_words.route("restart the database").verdict == "forge"


def test_words_alone_are_never_sure_enough(by_words: Store, store: Store) -> None:
    task = "list the free berths of the harbour"
    assert first(by_words.route(task)) == "list_berths"
    assert by_words.route(task).verdict == "choose"
    assert store.route(task).verdict == "reuse"


def test_another_verb_than_the_tools_is_a_veto(store: Store) -> None:
    route = store.route("delete the free berths of the harbour")
    assert route.vetoes == ("another verb",)
    assert route.verdict != "reuse"
    assert store.route("list the free berths of the harbour").vetoes == ()


def test_another_vendor_than_the_tools_is_a_veto(tmp_path: Path) -> None:
    zones = tool("list_zones", "List the DNS zones of a Hetzner account.")
    with Store.open(tmp_path / "registry.db") as store:
        store.servers.publish(entry("hetzner", 1, zones, title="Hetzner DNS"), now=1.0)
        assert store.route("list the zones in our Cloudflare account").vetoes == ("another vendor",)
        assert store.route("list the zones in our Hetzner account").vetoes == ()
        assert store.route("list our zones").vetoes == ()
        assert store.route("list the zones with Dr. Weiss").vetoes == ()
        assert store.route("list the zones of Oslo and Bergen").vetoes == ()


def test_a_new_version_with_the_same_words_is_not_encoded_again(by_words: Store) -> None:
    assert by_words.search.fill_vectors() == 7
    by_words.servers.publish(entry("library", 2, *LIBRARY.tools), now=2.0)
    assert by_words.search.fill_vectors() == 0
    assert first(by_words.route("I want to borrow a novel")) in ("lend_book", "search_books")


def test_tools_are_found_as_soon_as_they_are_encoded(by_words: Store) -> None:
    assert by_words.search.fill_vectors(most=7) == 7
    assert first(by_words.route(VAGUE)) == "list_berths"
    marina = tool("vacant_moorings", "Moorings that are vacant, for yachts.")
    by_words.servers.publish(entry("marina", 1, marina), now=2.0)
    assert first(by_words.route(VAGUE)) == "vacant_moorings"
    assert by_words.search.fill_vectors() == 1
    assert first(by_words.route(VAGUE)) == "vacant_moorings"


def test_while_few_tools_are_encoded_words_alone_decide(by_words: Store) -> None:
    said = by_words.route("list berths")
    assert by_words.search.fill_vectors(most=1) == 1
    assert by_words.route("list berths") == said
    by_words.search.fill_vectors()
    assert by_words.route("list berths").by_meaning


def test_a_server_that_may_not_be_called_is_not_found_by_its_meaning(by_words: Store) -> None:
    by_words.search.fill_vectors()
    by_words.servers.set_state("harbour", "quarantined", 3.0, "test")
    assert all(match.entry == "library" for match in by_words.route(VAGUE).matches)


def test_without_vectors_nothing_is_left_of_them(by_words: Store) -> None:
    by_words.search.fill_vectors()
    by_words.search.clear_vectors()
    assert by_words.route(VAGUE).probability < 0.2
    assert not by_words.route("list berths").by_meaning


def test_everyday_words_for_one_thing_find_a_tool_without_vectors(by_words: Store) -> None:
    found = by_words.route(VAGUE)
    assert first(found) == "list_berths"
    assert found.verdict != "reuse"


def test_a_model_that_is_another_file_is_refused() -> None:
    with pytest.raises(EncoderUnusable, match="another"):
        check_digest(b"not the model", "0" * 64, "model.onnx")


def test_vectors_have_length_one_and_any_text_has_one() -> None:
    encoder = load_encoder()
    assert encoder is not None
    for text in ("", "a", "\ud800", "word " * 5_000, "\x00", "日本語"):
        vector = encoder.encode(text)
        assert vector.shape == (DIMENSIONS,)
        assert abs(float(vector @ vector) - 1) < 1e-4


def test_a_task_is_turned_for_the_order_only(store: Store) -> None:
    encoder = load_encoder()
    assert encoder
    vector = encoder.encode(VAGUE)
    turned = turn_vector(vector)
    assert abs(float(turned @ turned) - 1) < 1e-5
    assert 0.5 < float(turned @ vector) < 0.999
    likeness = VectorIndex(store._database).compare(vector, 3)
    assert likeness
    best = max(likeness.nearness, key=likeness.nearness.__getitem__)
    assert likeness.nearest[0] == best
    berths = store.search.explain(VAGUE).ranked[0]
    assert berths.cosine == likeness.cosines[berths.tool.id] != likeness.nearness[berths.tool.id]


@pytest.mark.parametrize("installed", ["1.29.0", "1.32.0", "2.0", "nightly"])
def test_a_runtime_that_reports_to_its_maker_is_refused_before_it_is_loaded(installed: str) -> None:
    with pytest.raises(EncoderUnusable, match=re.escape("onnxruntime<1.29")):
        check_runtime(installed)


def test_loading_the_encoder_leaves_nothing_behind(tmp_path: Path) -> None:
    # A runtime that reports to its maker keeps an id and a log where temporary files are.
    encode = "from registry.search.encoder import load_encoder; load_encoder().encode('a berth')"
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", encode], check=True, env=environment)

    assert list(tmp_path.iterdir()) == []
