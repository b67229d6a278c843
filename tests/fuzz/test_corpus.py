"""Every input that was kept: what once broke a promise, and what led fuzzing further."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_kept_breaks_no_promise(target: str) -> None:
    kept = sorted((CORPUS / target).iterdir())
    assert kept
    for path in kept:
        TARGETS[target](path.read_bytes())


def test_nothing_is_kept_of_what_is_fuzzed_no_more() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
