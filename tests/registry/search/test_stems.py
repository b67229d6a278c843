from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from registry.database import tables
from registry.search.words import stem_word

ENDINGS = (
    "s es ies sses ed eed ing y ational tional enci anci izer bli logi alli entli eli ousli "
    "ization ation ator alism iveness fulness ousness aliti iviti biliti icate ative alize "
    "iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous "
    "ive ize e ll"
).split()
STARTS = st.text("abcdehilnorstuvwxyz", max_size=8)


@pytest.fixture(scope="module")
def fts5() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute(tables.SEARCH_INDEX)
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(search_index, row)")
    yield connection
    connection.close()


@given(start=STARTS, ending=st.sampled_from(ENDINGS))
@example("relate", "")
@example("hopp", "ing")
@example("adopt", "ion")
@example("controll", "")
@example("x" * 63, "s")
def test_the_index_keeps_stems_as_they_are(
    fts5: sqlite3.Connection, start: str, ending: str
) -> None:
    found = stem_word(start + ending)
    fts5.execute("INSERT INTO search_index(search_index) VALUES ('delete-all')")
    fts5.execute("INSERT INTO search_index(rowid, name) VALUES (1, ?)", (found,))
    assert [term for (term,) in fts5.execute("SELECT term FROM terms")] == [found]


@pytest.mark.parametrize(
    "family",
    [
        "zone zones zoned zoning",
        "list lists listed listing",
        "relate related relation relational",
        "hop hopped hopping",
        "adopt adopted adoption",
        "control controls controlled controlling",
        "biology biological",
        "key keys",
    ],
)
def test_words_of_one_family_have_one_stem(family: str) -> None:
    assert len(set(map(stem_word, family.split()))) == 1


def test_threads_stem_side_by_side() -> None:
    tried = [f"{chr(97 + number % 26) * 3}{number % 7 * 'l'}ations" for number in range(2_000)]
    alone = [stem_word.__wrapped__(word) for word in tried]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(stem_word.__wrapped__, tried)) == alone


@pytest.mark.parametrize("word", ["", "a", "4", "ipv4", "größe", "東京", "x" * 10_000])
def test_what_is_no_english_word_is_its_own_stem(word: str) -> None:
    assert stem_word(word) == word
