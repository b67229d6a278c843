"""The cost of models, as the terminal shows it: a day, a month, by model and by job."""

from __future__ import annotations

from typing import Any

from orchestrator.cli.terminal import print_json, print_table, print_text
from orchestrator.settings import Budget
from orchestrator.views.records import encode_spent
from registry.jobs.model_usage import MONTH_SECONDS, ModelUsage, ModelUsageTable

DAY_SECONDS = 86_400.0


def print_cost(usage: ModelUsageTable, budget: Budget, now: float, as_json: bool) -> None:
    """Print what was spent in the last 24 hours and 30 days, and the most that may be."""
    told = encode_cost(usage, budget, now)
    if as_json:
        print_json(told)
        return
    for name, span in (("day", "24 hours"), ("month", "30 days")):
        most = f" of {told[name]['most']:g}" if told[name]["most"] else ""
        print_text(
            f"{told[name]['cost']:.4f}{most} in {span} ({told[name]['questions']} questions)"
        )
    for kind in ("model", "job"):
        lines = told[f"{kind}s"]
        if lines:
            heads = (kind, "questions", "tokens in", "tokens out", "cost")
            names = (kind, "questions", "tokens_in", "tokens_out", "cost")
            print_table(heads, ((line[name] for name in names) for line in lines))


def encode_cost(usage: ModelUsageTable, budget: Budget, now: float) -> dict[str, Any]:
    """What was spent, as scripts see it; `most` is 0 where there is no limit."""
    since = now - MONTH_SECONDS
    return {
        "day": _encode_span(usage.sum_since(now - DAY_SECONDS), budget.day_money),
        "month": _encode_span(usage.sum_since(since), budget.month_money),
        "models": [
            {"model": model, **encode_spent(spent)}
            for model, spent in usage.sum_by_model(since).items()
        ],
        "jobs": [
            {"job": job, **encode_spent(spent)} for job, spent in usage.sum_by_job(since).items()
        ],
    }


def _encode_span(spent: ModelUsage, most: float) -> dict[str, Any]:
    return {**encode_spent(spent), "most": most}
