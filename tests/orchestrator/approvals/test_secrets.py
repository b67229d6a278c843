"""What is told of a secret when it is set."""

from __future__ import annotations

import pytest

from orchestrator.approvals.secrets import LIKE_A_WORD, SHORT, warn_of_length


@pytest.mark.parametrize(
    ("value", "warning"),
    [
        ("abc", SHORT),
        ("ada:abc", SHORT),
        ("admin", LIKE_A_WORD),
        ("administrator:admin", LIKE_A_WORD),
        ("ada:", LIKE_A_WORD),
        ("ada:correct horse", ""),
        ("0123456789abcdef", ""),
    ],
)
def test_who_sets_a_secret_as_short_as_a_word_hears_what_becomes_of_answers(
    value: str, warning: str
) -> None:
    assert warn_of_length(value) == warning
