"""Budget policy: the limit that a question to a model would exceed, in tokens, money or forges a
day. Pure policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orchestrator.settings import Budget
from registry.jobs.model_usage import WRITING, ModelUsage
from registry.needs import BudgetLine

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class CostEstimate:
    """What is about to be asked: its purpose, and what it costs at most."""

    purpose: str
    tokens: int
    cost: float


def find_reached_limit(
    budget: Budget, question: CostEstimate, own: ModelUsage, others: ModelUsage, allowed: int = 0
) -> BudgetLine | None:
    """The line that a question would cross; None where it crosses none.

    `own` is what its job spent, `others` what all others did in the last 24 hours, with what they
    cost in the last 30 days. Each time that a
    person `allowed` it the job has one forge's budget more, and does not count as one of the day's.
    """
    if question.purpose in WRITING and not allowed and others.forges >= budget.forges:
        return BudgetLine("day", "forges", others.forges + 1, budget.forges)
    return (
        _check_limit("job", "tokens", own.tokens + question.tokens, budget.forge_tokens, allowed)
        or _check_limit("job", "money", own.cost + question.cost, budget.forge_money, allowed)
        or _check_limit(
            "day",
            "tokens",
            own.tokens + others.tokens + question.tokens,
            budget.day_tokens and budget.day_tokens + allowed * budget.forge_tokens,
        )
        or _check_limit(
            "day",
            "money",
            own.cost + others.cost + question.cost,
            budget.day_money and budget.day_money + allowed * budget.forge_money,
        )
        or _check_limit(
            "month",
            "money",
            own.cost + others.month_cost + question.cost,
            budget.month_money and budget.month_money + allowed * budget.forge_money,
        )
    )


def _check_limit(
    of: Literal["job", "day", "month"],
    unit: Literal["tokens", "money"],
    wanted: float,
    most: float,
    allowed: int = 0,
) -> BudgetLine | None:
    most *= 1 + allowed
    return BudgetLine(of, unit, wanted, most) if most and wanted > most else None
