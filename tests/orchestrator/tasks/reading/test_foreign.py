"""Tasks in other languages, written by a tool's own words."""

from __future__ import annotations

import pytest

from orchestrator.tasks.reading.foreign import write_plainly
from registry.search.words import stem_word

WORDS = "list zone invoice weather city station parcel number employee"
KNOWN = frozenset(map(stem_word, WORDS.split()))


@pytest.mark.parametrize(
    ("task", "written"),
    [
        ("Wie ist das Wetter in Graz?", "the the the weather in Graz?"),
        ("Rechnung 2031 bitte", "invoice 2031 the"),
        ("Liste die Zonen auf", "list the zone the"),
        ("Wer ist Mitarbeiter 44?", "who the employee 44?"),
        ("le numéro d'employé 5", "the number of employee 5"),
        ("Liste die Zonen mit Wetterstation", "list the zone with weather station"),
        ("muestra el tiempo en Sevilla", "show the weather in Sevilla"),
        ("où est mon colis FR2210984", "the the the parcel FR2210984"),
    ],
)
def test_what_the_lexicon_has_is_written_in_english(task: str, written: str) -> None:
    assert write_plainly(task, KNOWN) == written


def test_of_several_meanings_the_tools_own_is_taken() -> None:
    assert write_plainly("zeig die Rechnung", frozenset({"bill"})) == "the the bill"
    assert write_plainly("zeig die Rechnung", KNOWN) == "the the invoice"


@pytest.mark.parametrize(
    "task",
    ["list the open tickets", "weather in Essen", "show employee 44", "", "a 1 \u2028 \x00 \ud83d"],
)
def test_an_english_task_stays_as_it_is(task: str) -> None:
    assert write_plainly(task, KNOWN) == task


@pytest.mark.parametrize(
    ("task", "kept"),
    [
        ("Zeig mir nicht die Rechnungen", "nicht"),
        ("muestra el tiempo sin Sevilla", "sin"),
        ("ne montre pas le colis", "pas"),
        ("zeig die Rechnung „Wetter in Graz“", "„Wetter in Graz“"),
        ("zeig die Rechnung von wetter@example.org", "wetter@example.org"),
        ("muestra el tiempo en Tiempo", "Tiempo"),
    ],
)
def test_negations_quotations_addresses_and_names_stay(task: str, kept: str) -> None:
    assert kept in write_plainly(task, KNOWN)


def test_a_german_noun_is_no_name_but_behind_a_preposition_of_places() -> None:
    assert write_plainly("Wie ist das Wetter im Garten?", KNOWN).endswith("in garten?")
    assert write_plainly("Ist das Wetter in Ordnung?", KNOWN).endswith("in ordnung?")
    assert write_plainly("Ist das Wetter in Dresden gut?", KNOWN).endswith("in Dresden gut?")
