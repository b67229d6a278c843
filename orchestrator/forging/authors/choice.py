"""Who writes a server's code: decided here and nowhere else. Pure policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from orchestrator.needs import Needs, budget_needs

Wanted = Literal["", "client", "openai", "sampling", "none"]
Writer = Literal["openai", "sampling", "client", "none"]
WRITERS: tuple[Writer, ...] = get_args(Writer)
SUBMIT = "read the brief, then `submit`"


@dataclass(frozen=True)
class Able:
    """Who could be asked. `endpoint` is the configured one in words, "" without one, and `lacks`
    what it needs from a person first; `sampling` says that the job's own client lets its model be
    asked and is here; `spent` is the budget's line that was reached, "" where money is left, and
    `budgets` how many more than the usual one a person gave the job.
    """

    endpoint: str = ""
    lacks: Needs = field(default_factory=dict)
    sampling: bool = False
    spent: str = ""
    budgets: int = 0


@dataclass(frozen=True)
class Choice:
    """Who writes, and why, in words for people. `needs` is what a person could allow so that a
    model is asked after all (`registry.records.Job.needs`).
    """

    writer: Writer
    told: str
    needs: Needs = field(default_factory=dict)


def choose(wanted: Wanted, able: Able, job: str, began: str = "") -> Choice:
    """Who writes for an order that wants that author, or any (""): the endpoint where one is
    configured, else the client's model where it may be asked, else whoever hands code in. A client
    that began (the author of the job's last draft) goes on.
    """
    if began == "client":
        return Choice("client", f"whoever handed in the draft mends it: {SUBMIT}")
    if wanted == "none":
        return Choice("none", "nobody is to write code for it")
    if wanted == "client":
        return Choice("client", f"whoever reads the brief writes: {SUBMIT}")
    if wanted in ("", "openai") and able.endpoint:
        return _asked("openai", f"{able.endpoint} writes", able, job)
    if wanted in ("", "sampling") and able.sampling:
        return _asked("sampling", "the client's own model writes, asked by sampling", able, job)
    return Choice("client", f"{_ABSENT[wanted]}: {SUBMIT}")


_ABSENT: Mapping[Wanted, str] = {
    "": "no model is configured (OPENAI_MODEL) and the client's cannot be asked",
    "openai": "no endpoint is configured: set OPENAI_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL",
    "sampling": "no client that lets its model be asked is connected to this job",
}


def _asked(writer: Writer, told: str, able: Able, job: str) -> Choice:
    """That model writes, unless a person has to allow it first."""
    if writer == "openai" and able.lacks:
        return Choice("client", f"a person has to allow it first: {able.lacks['how']}", able.lacks)
    if able.spent:
        needs = budget_needs(job, able.spent, able.budgets)
        reason = f"{able.spent}. A person can allow it: {needs['how']}"
        return Choice("client", f"{reason}. Or {SUBMIT}", needs)
    return Choice(writer, told)
