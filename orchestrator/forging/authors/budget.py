"""What models may cost before a person is asked. Pure policy."""

from __future__ import annotations

from dataclasses import dataclass

from registry.modelcalls import WRITING, Spent

DAY_SECONDS = 86_400.0
MILLION = 1_000_000


@dataclass(frozen=True)
class Budget:
    """`forges` are those where a model wrote, in any 24 hours. Tokens count both ways; a line of 0
    tokens or 0 money is none. Prices are per million tokens, 0 where they are not known: then
    nothing costs money.
    """

    forges: int = 3
    forge_tokens: int = 200_000
    day_tokens: int = 1_000_000
    forge_money: float = 0.0
    day_money: float = 0.0
    price_in: float = 0.0
    price_out: float = 0.0

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """Money, in the currency of the prices."""
        return (tokens_in * self.price_in + tokens_out * self.price_out) / MILLION


@dataclass(frozen=True)
class Question:
    """What is about to be asked: its purpose, and what it costs at most."""

    purpose: str
    tokens: int
    cost: float


def reached(budget: Budget, question: Question, own: Spent, others: Spent, allowed: int = 0) -> str:
    """The line that a question would cross, in words, or "" where it crosses none.

    `own` is what its job spent, `others` what all others did in the last 24 hours. Each time that a
    person `allowed` it the job has one forge's budget more, and does not count as one of the day's.
    """
    if question.purpose in WRITING and not allowed and others.forges >= budget.forges:
        return f"{others.forges} forges had a model write in 24 hours, {budget.forges} may"
    return (
        _line("tokens", "this job", own.tokens + question.tokens, budget.forge_tokens, allowed)
        or _line("money", "this job", own.cost + question.cost, budget.forge_money, allowed)
        or _line(
            "tokens",
            "a day",
            own.tokens + others.tokens + question.tokens,
            budget.day_tokens and budget.day_tokens + allowed * budget.forge_tokens,
        )
        or _line(
            "money",
            "a day",
            own.cost + others.cost + question.cost,
            budget.day_money and budget.day_money + allowed * budget.forge_money,
        )
    )


def _line(what: str, of: str, wanted: float, most: float, allowed: int = 0) -> str:
    most *= 1 + allowed
    if not most or wanted <= most:
        return ""
    return f"the next answer could bring {of} to {wanted:.6g} {what}, the most is {most:.6g}"
