"""Choice of the author who writes a server's code: endpoint, client's model or submitted code. Pure
policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from orchestrator.approvals.needs import render_line, render_way
from registry.needs import BudgetLine, BudgetNeed, Need

Wanted = Literal["", "client", "openai", "sampling", "none"]
Writer = Literal["openai", "sampling", "client", "none"]
WRITERS: tuple[Writer, ...] = get_args(Writer)
SUBMIT = "read the brief, then `submit`"


@dataclass(frozen=True)
class AuthorOptions:
    """Who could be asked. `endpoint` is the configured one in words, "" without one, and `lacks`
    what it needs from a person first; `sampling` says that the job's own client lets its model be
    asked and is here; `spent` is the budget's line that was reached, None where money is left, and
    `budgets` how many more than the usual one a person gave the job.
    """

    endpoint: str = ""
    lacks: Need | None = None
    sampling: bool = False
    spent: BudgetLine | None = None
    budgets: int = 0


@dataclass(frozen=True)
class AuthorChoice:
    """Who writes, and why, in words for people. `needs` is what a person could allow so that a
    model is asked after all; `way` is how code is handed in, where no model writes it.
    """

    writer: Writer
    why: str
    needs: Need | None = None
    way: str = ""

    @property
    def told(self) -> str:
        return f"{self.why}: {self.way}" if self.way else self.why


def choose_author(wanted: Wanted, able: AuthorOptions, job: str, began: str = "") -> AuthorChoice:
    """Who writes for an order that wants that author, or any (""): the endpoint where one is
    configured, else the client's model where it may be asked, else whoever hands code in. A client
    that began (the author of the job's last draft) goes on.
    """
    if began == "client":
        return AuthorChoice("client", "whoever handed in the draft mends it", way=SUBMIT)
    if wanted == "none":
        return AuthorChoice("none", "nobody is to write code for it")
    if wanted == "client":
        return AuthorChoice("client", "a client's model or a person writes it", way=SUBMIT)
    if wanted in ("", "openai") and able.endpoint:
        return _choose_model("openai", f"{able.endpoint} writes", able, job)
    if wanted in ("", "sampling") and able.sampling:
        return _choose_model(
            "sampling", "the client's own model writes, asked by sampling", able, job
        )
    return AuthorChoice("client", _ABSENT[wanted], way=SUBMIT)


_ABSENT: Mapping[Wanted, str] = {
    "": "no model is configured (OPENAI_MODEL) and the client's cannot be asked",
    "openai": "no endpoint is configured: set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL",
    "sampling": "no client that lets its model be asked is connected to this job",
}


def _choose_model(writer: Writer, told: str, able: AuthorOptions, job: str) -> AuthorChoice:
    """That model writes, unless a person has to allow it first."""
    if writer == "openai" and able.lacks:
        way = render_way(able.lacks, job)
        return AuthorChoice("client", f"a person has to allow it first: {way}", able.lacks)
    if able.spent:
        need = BudgetNeed(able.spent, able.budgets)
        reason = f"{render_line(able.spent)}. A person can allow it: {render_way(need, job)}"
        return AuthorChoice("client", f"{reason}. Or {SUBMIT}", need)
    return AuthorChoice(writer, told)
