"""What a person would not see does not reach a model or a terminal."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import exactjson
from sandbox.sanitize import (
    clean_json,
    clean_text,
    find_readings,
    is_clean_json,
    strip_unprintable,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("red \x1b[31mtext\x1b[0m", "red text"),
        ("\x1b]0;title\x07window", "window"),
        ("\x1b]8;;https://evil.test\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("clear\x1b[2J\x1bcall", "clearall"),
        ("c1 \x9b31mred", "c1 red"),
        ("over\rwritten", "over\nwritten"),
        ("nul\0 bell\a", "nul bell"),
        ("tag\U000e0049\U000e0067", "tag"),
        ("\u202eright to left", "right to left"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("a\u200db", "ab"),
        ("filler\u3164x", "fillerx"),
        ("\ue000private", "private"),
        ("x" + "".join(chr(0xE0100 + n) for n in b"hidden"), "x"),
        ("❤️🔥", "❤️🔥"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
        ("1️⃣", "1️⃣"),
    ],
)
def test_only_what_can_be_seen_is_left(text: str, shown: str) -> None:
    assert clean_text(text) == shown


@given(st.text())
def test_clean_text_stays_as_it_is(text: str) -> None:
    once = clean_text(text)
    assert clean_text(once) == once


@given(st.text(st.characters(categories=("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"))))
def test_nothing_of_invisible_text_is_left_but_line_ends(text: str) -> None:
    assert set(clean_text(text)) <= {"\n", "\t"}


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs"))))
def test_printable_ascii_is_never_touched(text: str) -> None:
    assert clean_text(text) == text


@given(st.text(st.characters(categories=("Ll", "Lo", "Nd"))))
def test_letters_of_any_script_are_never_touched(text: str) -> None:
    fillers = {"\u115f", "\u1160", "\u3164", "\uffa0"}
    assert clean_text(text) == "".join(c for c in text if c not in fillers)


def test_no_character_that_is_cleaned_away_hides_what_stands_around_it() -> None:
    gone = [letter for letter in map(chr, range(sys.maxunicode + 1)) if not clean_text(letter)]
    told = [letter for letter in gone if find_readings(letter.encode("utf-8", "surrogatepass"))]
    surrogates = {letter for letter in gone if "\ud800" <= letter <= "\udfff"}
    assert set(gone) - set(told) <= surrogates


def test_keys_and_values_of_json_are_cleaned() -> None:
    assert clean_json({"a\u200b": ["\x1b[1mb", 1, None, True]}) == {"a": ["b", 1, None, True]}


def test_tag_characters_are_what_unicode_calls_format_characters() -> None:
    assert unicodedata.category("\U000e0041") == "Cf"


def test_what_is_unprintable_is_stripped_wherever_it_stands_and_letters_stay() -> None:
    assert strip_unprintable("zöné 日本 ½\n") == "zöné 日本 ½\n"
    assert strip_unprintable("a\x00b\u200bc\u202ed\u2028e\ue000f") == "abcdef"


@given(st.dictionaries(st.text(), st.lists(st.text())))
@settings(max_examples=50)
def test_what_is_said_to_be_clean_json_is_what_cleaning_leaves_as_it_is(
    value: dict[str, list[str]],
) -> None:
    if is_clean_json(exactjson.dumps(value)):
        assert clean_json(value) is value


@pytest.mark.parametrize("letter", [*map(chr, range(32)), "\x7f", "\u200b", "\u2028", "\U000e0041"])
def test_clean_json_is_told_by_how_it_is_written(letter: str) -> None:
    value = {"a": [f"b{letter}c"]}
    assert is_clean_json(exactjson.dumps(value)) == (clean_json(value) is value)


@given(st.text('\\"bfrun/a\b\f\n\r\t\x01'))
def test_escapes_in_json_are_read_as_a_parser_reads_them(text: str) -> None:
    value = {"a": text}
    is_clean = clean_json(value) is value
    assert is_clean_json(exactjson.dumps(value)) == is_clean
    long = {**value, "b": "x" * 40_000}
    assert is_clean or not is_clean_json(exactjson.dumps(long))


def test_ordinary_words_are_clean_json() -> None:
    assert is_clean_json(exactjson.dumps({"text": 'a "quoted" line\n\tand \\ é 船', "n": [1.5]}))
