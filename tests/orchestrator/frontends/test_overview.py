"""The overview stays short, and says first what a client has to act on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.frontends.overview import MAX_TOKENS, SHARES
from orchestrator.results.fitting import fit_lists
from orchestrator.results.shape import TOKEN_BYTES, count_tokens

ROOM = MAX_TOKENS * TOKEN_BYTES
HEAD = {"frozen": False, "writer": "w" * 160, "approvals_held": "h" * 240, "servers": 9}
NAMES = ("approvals", "jobs", "running", "recent", "repairs", "grants_void")


def lines(count: int, letters: int = 80) -> list[dict[str, Any]]:
    return [{"id": f"{number:016}", "task": "x" * letters} for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 5, 100, 1000])
@pytest.mark.parametrize("letters", [0, 80, 5000])
def test_it_never_has_more_than_800_tokens(count: int, letters: int) -> None:
    told = fit_lists(
        HEAD, {name: lines(count, letters) for name in NAMES}, ROOM, SHARES, {"jobs": 10**6}
    )
    assert count_tokens(json.dumps(told, separators=(",", ":"))) <= MAX_TOKENS
    for name in NAMES:
        whole = 10**6 if name == "jobs" else count
        assert len(told[name]) + told["more"].get(name, 0) == whole


def test_what_waits_for_a_person_is_shown_before_what_has_ended() -> None:
    told = fit_lists(HEAD, {name: lines(1000) for name in NAMES}, ROOM, SHARES)
    assert len(told["approvals"]) >= 4
    assert len(told["jobs"]) >= 3
    assert len(told["recent"]) >= 1


def test_where_there_is_little_all_of_it_is_shown() -> None:
    told = fit_lists(HEAD, {name: lines(1) for name in NAMES}, ROOM, SHARES)
    assert all(told[name] == lines(1) for name in NAMES)
    assert told["more"] == {}
