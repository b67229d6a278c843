from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from registry.stems import stem

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
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(word, tokenize = 'porter unicode61')")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(t, row)")
    yield connection
    connection.close()


@given(start=STARTS, ending=st.sampled_from(ENDINGS))
@example("relate", "")
@example("hopp", "ing")
@example("adopt", "ion")
@example("controll", "")
@example("x" * 63, "s")
def test_stems_are_those_of_the_index(fts5: sqlite3.Connection, start: str, ending: str) -> None:
    fts5.execute("DELETE FROM t")
    fts5.execute("INSERT INTO t VALUES (?)", (start + ending,))
    assert [term for (term,) in fts5.execute("SELECT term FROM terms")] == [stem(start + ending)]


@pytest.mark.parametrize("word", ["", "a", "4", "ipv4", "größe", "東京", "x" * 10_000])
def test_what_is_no_english_word_is_its_own_stem(word: str) -> None:
    assert stem(word) == word
