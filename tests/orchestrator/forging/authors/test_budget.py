"""What models may cost: lines that no question crosses, and what a person may add."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.approvals.needs import render_line
from orchestrator.forging.authors.budget import CostEstimate, find_reached_limit
from orchestrator.settings import Budget
from registry.jobs.model_usage import ModelUsage
from registry.needs import BudgetLine

BUDGET = Budget(
    forges=3,
    forge_tokens=1000,
    day_tokens=5000,
    forge_money=1.0,
    day_money=2.0,
    price_in=10.0,
    price_out=20.0,
)
ASKED = CostEstimate("code", 100, 0.1)
NOTHING = ModelUsage()


@pytest.mark.parametrize(
    ("own", "others", "told"),
    [
        (NOTHING, NOTHING, ""),
        (NOTHING, ModelUsage(forges=2), ""),
        (NOTHING, ModelUsage(forges=3), "3 forges had a model write"),
        (ModelUsage(tokens_in=500, tokens_out=400), NOTHING, ""),
        (ModelUsage(tokens_in=500, tokens_out=401), NOTHING, "this job to 1001 tokens"),
        (ModelUsage(cost=0.95), NOTHING, "this job to 1.05 money"),
        (NOTHING, ModelUsage(tokens_in=4901), "a day to 5001 tokens"),
        (NOTHING, ModelUsage(cost=1.95), "a day to 2.05 money"),
    ],
)
def test_the_first_line_that_would_be_crossed_is_told(
    own: ModelUsage, others: ModelUsage, told: str
) -> None:
    line = find_reached_limit(BUDGET, ASKED, own, others)
    assert bool(told) == (line is not None)
    assert line is None or told in render_line(line)


def test_each_time_a_person_allows_it_a_job_has_one_budget_more() -> None:
    own = ModelUsage(tokens_in=1900)
    assert find_reached_limit(BUDGET, ASKED, own, NOTHING, allowed=1) is None
    over = find_reached_limit(BUDGET, ASKED, ModelUsage(tokens_in=2000), NOTHING, allowed=1)
    assert over == BudgetLine("job", "tokens", 2100, 2000)
    assert (
        find_reached_limit(BUDGET, ASKED, NOTHING, ModelUsage(forges=9, tokens_in=4950), allowed=1)
        is None
    )


def test_only_what_writes_counts_as_a_forge() -> None:
    full = ModelUsage(forges=3)
    assert find_reached_limit(BUDGET, CostEstimate("arguments", 100, 0.1), NOTHING, full) is None
    assert find_reached_limit(BUDGET, CostEstimate("repair", 100, 0.1), NOTHING, full)


def test_a_line_of_nothing_is_none() -> None:
    free = Budget(forges=1, forge_tokens=0, day_tokens=0)
    dear = ModelUsage(tokens_in=10**9, cost=10**6)
    assert find_reached_limit(free, ASKED, dear, NOTHING) is None


def test_without_prices_nothing_costs_money() -> None:
    assert Budget().compute_cost(10**6, 10**6) == 0.0
    assert BUDGET.compute_cost(1_000_000, 500_000) == 20.0


@given(st.lists(st.integers(1, 400), max_size=30), st.integers(0, 3))
def test_no_sequence_of_questions_spends_more_than_was_given(
    questions: list[int], allowed: int
) -> None:
    spent = 0
    for tokens in questions:
        if not find_reached_limit(
            BUDGET, CostEstimate("code", tokens, 0.0), ModelUsage(spent), NOTHING, allowed
        ):
            spent += tokens
    assert spent <= BUDGET.forge_tokens * (1 + allowed)


def test_a_month_has_a_line_of_its_own() -> None:
    budget = Budget(forges=9, month_money=5.0, forge_money=1.0)
    spent = ModelUsage(cost=0.5, month_cost=4.8)
    line = find_reached_limit(budget, CostEstimate("code", 100, 0.1), ModelUsage(cost=0.2), spent)
    assert line == BudgetLine("month", "money", pytest.approx(5.1), 5.0)
    assert "a month to 5.1 money" in render_line(line)
    assert find_reached_limit(budget, ASKED, NOTHING, spent) is None
    assert find_reached_limit(budget, ASKED, ModelUsage(cost=0.2), spent, allowed=1) is None


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
def test_no_question_is_asked_that_could_bring_a_month_past_its_line(
    own: float, month: float, cost: float
) -> None:
    budget = Budget(forges=9, forge_tokens=0, day_tokens=0, month_money=50.0)
    question = CostEstimate("code", 1, cost)
    line = find_reached_limit(budget, question, ModelUsage(cost=own), ModelUsage(month_cost=month))
    assert (line is not None) == (own + month + cost > 50.0)
