from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from registry.search.words import stem_word


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
