"""The gate, as a table: who may call what, and who is asked first."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from orchestrator.gate import Allow, Ask, Deny, Question, rule
from registry.records import EntryState
from registry.trust import EXEMPT_SUCCESSES, Level, Standing
from sandbox.apispec import Access

BLANK = Standing(
    level="probationary",
    version=1,
    total=0,
    successful=0,
    counted=0,
    window=0,
    ratio=None,
    wilson=0.0,
    score=None,
    ladder_successes=0,
    version_successes=0,
    average_latency_ms=None,
    last_failure=None,
    last_failure_reason="",
)


def question(
    state: str = "active",
    access: Access = "read",
    level: Level = "probationary",
    written: int = 0,
    frozen: bool = False,
) -> Question:
    operation = replace(BLANK, version_successes=written)
    return Question(state, access, replace(BLANK, level=level), operation, frozen)


@pytest.mark.parametrize("level", ["probationary", "standard", "trusted"])
def test_a_read_of_an_active_server_is_allowed(level: Level) -> None:
    assert isinstance(rule(question(level=level)), Allow)


@pytest.mark.parametrize(
    ("level", "written", "ruling"),
    [
        ("probationary", 1000, Ask),
        ("standard", 1000, Ask),
        ("trusted", 0, Ask),
        ("trusted", EXEMPT_SUCCESSES - 1, Ask),
        ("trusted", EXEMPT_SUCCESSES, Allow),
        ("degraded", 1000, Deny),
    ],
)
def test_a_write_asks_until_a_trusted_server_has_done_it_fifty_times(
    level: Level, written: int, ruling: type
) -> None:
    assert isinstance(rule(question(access="write", level=level, written=written)), ruling)


def test_a_write_whose_own_record_is_not_known_asks() -> None:
    unknown = replace(question(access="write", level="trusted"), operation=None)
    assert isinstance(rule(unknown), Ask)


@pytest.mark.parametrize("access", get_args(Access))
@pytest.mark.parametrize("level", get_args(Level))
def test_an_experimental_server_asks_for_every_call(access: Access, level: Level) -> None:
    ruling = rule(question("experimental", access, level, EXEMPT_SUCCESSES))
    assert isinstance(ruling, Ask)


@pytest.mark.parametrize(
    "state", sorted({*get_args(EntryState), "", "never heard of"} - {"active", "experimental"})
)
@pytest.mark.parametrize("access", get_args(Access))
def test_a_server_in_any_other_state_is_denied(state: str, access: Access) -> None:
    ruling = rule(question(state, access, "trusted", EXEMPT_SUCCESSES))
    assert isinstance(ruling, Deny)
    assert state in ruling.reason


@pytest.mark.parametrize("state", [*get_args(EntryState), "never heard of"])
@pytest.mark.parametrize("access", get_args(Access))
@pytest.mark.parametrize("level", get_args(Level))
def test_nothing_is_allowed_or_asked_while_frozen(state: str, access: Access, level: Level) -> None:
    frozen = question(state, access, level, EXEMPT_SUCCESSES, frozen=True)
    assert isinstance(rule(frozen), Deny)
