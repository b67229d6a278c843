"""What models may cost: lines that no question crosses, and what a person may add."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.budget import Budget, Question, reached
from registry.modelcalls import Spent

BUDGET = Budget(
    forges=3,
    forge_tokens=1000,
    day_tokens=5000,
    forge_money=1.0,
    day_money=2.0,
    price_in=10.0,
    price_out=20.0,
)
ASKED = Question("code", 100, 0.1)
NOTHING = Spent()


@pytest.mark.parametrize(
    ("own", "others", "told"),
    [
        (NOTHING, NOTHING, ""),
        (NOTHING, Spent(forges=2), ""),
        (NOTHING, Spent(forges=3), "3 forges had a model write"),
        (Spent(tokens_in=500, tokens_out=400), NOTHING, ""),
        (Spent(tokens_in=500, tokens_out=401), NOTHING, "this job to 1001 tokens"),
        (Spent(cost=0.95), NOTHING, "this job to 1.05 money"),
        (NOTHING, Spent(tokens_in=4901), "a day to 5001 tokens"),
        (NOTHING, Spent(cost=1.95), "a day to 2.05 money"),
    ],
)
def test_the_first_line_that_would_be_crossed_is_told(own: Spent, others: Spent, told: str) -> None:
    reason = reached(BUDGET, ASKED, own, others)
    assert told in reason
    assert bool(told) == bool(reason)


def test_each_time_a_person_allows_it_a_job_has_one_budget_more() -> None:
    own = Spent(tokens_in=1900)
    assert reached(BUDGET, ASKED, own, NOTHING, allowed=1) == ""
    assert "2100 tokens" in reached(BUDGET, ASKED, Spent(tokens_in=2000), NOTHING, allowed=1)
    assert reached(BUDGET, ASKED, NOTHING, Spent(forges=9, tokens_in=4950), allowed=1) == ""


def test_only_what_writes_counts_as_a_forge() -> None:
    full = Spent(forges=3)
    assert reached(BUDGET, Question("arguments", 100, 0.1), NOTHING, full) == ""
    assert reached(BUDGET, Question("repair", 100, 0.1), NOTHING, full)


def test_a_line_of_nothing_is_none() -> None:
    free = Budget(forges=1, forge_tokens=0, day_tokens=0)
    dear = Spent(tokens_in=10**9, cost=10**6)
    assert reached(free, ASKED, dear, NOTHING) == ""


def test_without_prices_nothing_costs_money() -> None:
    assert Budget().cost(10**6, 10**6) == 0.0
    assert BUDGET.cost(1_000_000, 500_000) == 20.0


@given(st.lists(st.integers(1, 400), max_size=30), st.integers(0, 3))
def test_no_sequence_of_questions_spends_more_than_was_given(
    questions: list[int], allowed: int
) -> None:
    spent = 0
    for tokens in questions:
        if not reached(BUDGET, Question("code", tokens, 0.0), Spent(spent), NOTHING, allowed):
            spent += tokens
    assert spent <= BUDGET.forge_tokens * (1 + allowed)
