"""Patterns mean on the host what ECMA-262 says, and end in time that grows with the text alone."""

from __future__ import annotations

import json
import re

import pytest

from sandbox.schemas.patterns import (
    MAX_PATTERN,
    MAX_WORK,
    compile_linear,
    is_expression,
    matches,
)

ENDLESS = [
    "^(a+)+$",
    "^(a|a)*$",
    "^(a|aa)+$",
    "^a*a*a*a*b$",
    "(x+x+)+y",
    "(?:a?){300}b",
    r"^(\w+\s?)*!$",
]
"""Each takes exponential or high polynomial time in Python's engine."""


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_catastrophic_pattern_is_told_within_work_that_grows_with_the_text(pattern: str) -> None:
    linear = compile_linear(pattern)
    assert linear is not None
    assert linear.work("a" * 9_999) == linear.size * 10_000
    assert linear.size < 1_000
    assert matches(pattern, "a" * 10_000 + "?") is False


def test_a_match_that_takes_more_work_than_allowed_is_not_begun() -> None:
    linear = compile_linear("(?:ab?){900}c")
    assert linear is not None
    text = "a" * (MAX_WORK // linear.size)
    assert matches("(?:ab?){900}c", text) is None
    assert matches("(?:ab?){900}c", text[:100]) is False


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)a", "(?<=a)b", "^(?=a)a|b", "^a(?!b)", "a++"])
def test_what_the_linear_engine_cannot_read_is_an_expression_that_is_not_matched(
    pattern: str,
) -> None:
    assert is_expression(pattern)
    assert matches(pattern, "aab") is None


@pytest.mark.parametrize("pattern", ["(", "[a", "a**", "\\", "(?<a-b>x)", "a" * (MAX_PATTERN + 1)])
def test_what_nobody_can_read_is_no_expression(pattern: str) -> None:
    assert not is_expression(pattern)
    assert matches(pattern, "a") is None


@pytest.mark.parametrize(
    ("pattern", "fits", "differs"),
    [
        (r"^\d$", "4", "\u09ea"),  # a Bengali four
        (r"^\D$", "\u09ea", "4"),
        (r"^\w$", "_", "é"),
        (r"^\W$", "é", "_"),
        (r"\bé", "aé", "é"),
        (r"^\s$", "\u00a0", "\x1c"),
        (r"^\s$", "\v", "\u200b"),
        (r"^\s$", "\ufeff", "x"),
        (r"^[\s\d]+$", "1\u20282", "x"),
        (r"^\S$", "é", "\u00a0"),
        (r"^[^\S]$", "\u3000", "x"),
        (r"^[\s\S]$", "\n", ""),
        (r"^[a-c\s-]+$", "a -", "x"),
        (r"^[\d-x]+$", "1-x", "a"),
        ("^a$", "a", "a\n"),
        ("^.$", "\U0001f432", "\u2028"),
        ("^.$", "é", "\r"),
        ("(?s)^.$", "\n", ""),
        ("(?i)^abc$", "aBc", "abd"),
        ("^\U0001f432*$", "\U0001f432\U0001f432", "\U0001f409"),
        (r"^\u00e9$", "é", "e"),
        (r"^[\u0430-\u044f]+$", "слово", "word"),
        (r"^\ud83d\udc32$", "\U0001f432", "\U0001f409"),
        (r"^\u{1F432}$", "\U0001f432", "\U0001f409"),
        (r"^\x41$", "A", "B"),
        (r"^\cJ$", "\n", "J"),
        (r"^[\b]$", "\b", "b"),
        (r"^\p{L}+$", "straße", "a1"),
        (r"^\P{L}+$", "12", "1a"),
        (r"^[\p{Letter}\p{Decimal_Number}]+$", "é4", "-"),
        (r"^\p{Script=Greek}+$", "αβ", "ab"),
        (r"^https?:\/\/", "https://", "https:--"),
        ("^(?<year>[0-9]{4})$", "2024", "24"),
        ("^(?P<year>[0-9]{4})$", "2024", "24"),
        ("^[[:alpha:]]$", "a]", "z]"),
        ("^[^[]+$", "a", "["),
        ("^[]a]$", "]", "b"),
        ("^{name}$", "{name}", "name"),
        ("^a{,3}$", "aaa", "aaaa"),
        (r"^a\Z", "a", "a\n"),
    ],
)
def test_a_pattern_means_what_documents_mean(pattern: str, fits: str, differs: str) -> None:
    assert matches(pattern, fits) is True
    assert matches(pattern, differs) is False


@pytest.mark.parametrize(
    ("pattern", "fits", "differs"),
    [
        ("^(?=.*[A-Z]).{8,}$", "passWord", "password"),
        (r"^(?=.*[A-Z])(?=.*\d)[^()]{4,}$", "aB3c", "aBcd"),
        (r"^(?![0-9]+$)[a-z0-9_\-]+$", "a1", "11"),
        (r"^(?!a|b[)\]]\))(?=.)\w", "cb", "b))"),
        ("^(?=a|b)[a-c]$", "b", "c"),
        ("^(?=(?:a+)+b)", "ab", "a" * 10_000),
    ],
)
def test_look_ahead_that_a_pattern_begins_with_is_matched_in_parts(
    pattern: str, fits: str, differs: str
) -> None:
    assert matches(pattern, fits) is True
    assert matches(pattern, differs) is False
    assert re.search(pattern, fits)


def test_half_a_character_is_a_character() -> None:
    text = json.loads(r'"a\ud800"')
    assert matches("^a.$", text) is True
    assert matches("^a[a-z]$", text) is False
    assert matches("^" + text, text) is None


@pytest.mark.parametrize("letter", "CEGHIKLQRUXYaeghijkmoqy")
def test_an_escape_that_another_dialect_knows_is_not_taken_for_its_letter(letter: str) -> None:
    assert matches(f"^\\{letter}", letter) is not True


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z0-9_-]{3,16}$",
        r"^[^\s@]+@[^\s@]+\.[^\s@]+$",
        r"^v\d+(\.\d+)*$",
        r"^P(?:$)(\d+Y)?(\d+M)?(T(?:\d)(\d+H)?)?$",
        r"""^[A-Za-z0-9()\[\]'"][-A-Za-z0-9_. \/()\[\]]{0,40}$""",
        r"\{user_question\}[\s\S]*?\{content\}",
        "[[A-Z0-9]{1,18}",
        ".^",
    ],
)
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
def test_on_plain_text_both_engines_agree(pattern: str) -> None:
    texts = ["", "abc", "a@b.co", "v1.2", "P1Y", "[x]", "{user_question}\n{content}", "A B", "[A1"]
    for text in texts:
        assert matches(pattern, text) is (re.search(pattern, text) is not None), text
