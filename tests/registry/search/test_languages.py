"""Tasks in German, Spanish, French and Chinese are read by a lexicon, English ones are not."""

from importlib.resources import files

import pytest

from registry.search.background import load_background
from registry.search.languages import FUNCTION_WORDS, LANGUAGES, LEXICON, MOST_WORDS, read_task
from registry.search.words import parse_query, split_words, stem_word, write_english


@pytest.mark.parametrize(
    ("task", "meant"),
    [
        ("Zeige alle Rechnungen eines Kunden", {"show", "invoice", "customer"}),
        ("Busca las facturas de un cliente", {"search", "invoice", "customer"}),
        ("Affiche les factures d'un client", {"show", "invoice", "customer"}),
        ("查询客户的发票", {"search", "invoice", "customer"}),
        ("aktuelle Temperatur", {"current", "temperature"}),
    ],
)
def test_a_task_in_another_language_is_known_in_english(task: str, meant: set[str]) -> None:
    told = {word for term in parse_query(task).terms for word in term.english}
    assert meant <= told
    assert meant <= set(write_english(task).split())


def test_the_last_part_of_a_german_compound_is_read() -> None:
    assert "station" in write_english("Wo ist die Wetterstation?").split()


def test_names_and_other_words_stay_as_they_are() -> None:
    assert write_english("Zeige das Wetter in Reykjavik").split()[-1] == "reykjavik"
    assert "github" in write_english("在GitHub创建项目").split()


@pytest.mark.parametrize(
    "task",
    [
        "Show me the hotels in Los Angeles",
        "flights from Las Vegas to San Jose",
        "Tesla's stock price",
        "die with a d20 and a d6",
        "weather",
        "convert pdf to text",
        "a list of the cafes in La Paz",
        "translate 'wo ist der Bahnhof' to English for me",
        "What does 谢谢 mean in English?",
        "",
    ],
)
def test_an_english_task_is_not_touched(task: str) -> None:
    assert write_english(task) == task
    assert not any(term.english for term in parse_query(task).terms)


def test_function_words_of_the_language_are_no_terms() -> None:
    words = {term.word for term in parse_query("Zeige mir das Wetter für die Stadt Bern").terms}
    assert words == {"zeige", "wetter", "stadt", "bern"}


def test_own_words_stay_beside_their_english() -> None:
    (term,) = parse_query("das Wetter").terms
    assert term.spellings == ("wetter", "weather")


def test_only_the_first_words_of_a_task_are_read() -> None:
    words = [f"wort{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(500)]
    assert "wetter" not in read_task([*words, "die", "wetter"], frozenset()).meanings
    assert "wetter" in read_task([*words[: MOST_WORDS - 2], "die", "wetter"], frozenset()).meanings


def test_the_lexicon_has_one_line_a_meaning_and_plain_forms() -> None:
    text = files("registry.search").joinpath(LEXICON).read_text("utf-8")
    lines = [line.split("|") for line in text.splitlines() if not line.startswith("#")]
    assert {len(line) for line in lines} == {1 + len(LANGUAGES)}
    assert len({line[0] for line in lines}) == len(lines)
    for english, *others in lines:
        assert split_words(english) == [english]
        for language, forms in zip(LANGUAGES, others, strict=True):
            for form in forms.split():
                assert form == form.lower()
                assert form not in FUNCTION_WORDS.get(language, ())


def test_the_usual_words_are_stems_with_a_share() -> None:
    background = load_background()
    assert background
    assert all(0 < share <= 1 for share in background.values())
    assert background[stem_word("information")] > background[stem_word("weather")]
