"""Table of model calls: prompts, answers, tokens and cost.

An answer is found again by its job and prompt, so that nothing is paid for twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, RowMapping, func, insert, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, to_bounded_json
from registry.needs import BudgetLine

WRITING = ("specification", "code", "repair", "api")
"""Purposes of calls in which a model writes code or a specification; they count as a forge."""


@dataclass(frozen=True)
class ModelCall:
    """One call of a model. `job` and `server` are "" where it belongs to none; `cost` is in the
    currency of the configured prices. While `state` is `asked`, tokens and cost are upper bounds;
    `message` says why it `failed`.
    """

    job: str
    server: str
    purpose: str
    author: str
    prompt: str = field(repr=False)
    prompt_digest: str
    started: float
    tokens_in: int
    tokens_out: int
    cost: float = 0.0
    model: str = ""
    seconds: float = 0.0
    state: Literal["asked", "answered", "failed"] = "asked"
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)
    message: str = ""
    id: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True)
class ModelUsage:
    """Sums of tokens, cost and calls; `forges` is the number of jobs in which a model wrote.
    `month_cost` is the cost of a longer time, where that was summed as well.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    calls: int = 0
    forges: int = 0
    month_cost: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


MONTH_SECONDS = 30 * 86_400.0
"""A month is any 30 days, as a day is any 24 hours."""
CONTENT = 2 << 20
PROMPT = 256 * 1024
TEXT = 2_000

Verdict = Callable[[ModelUsage, ModelUsage], BudgetLine | None]
"""Why a question may not be asked, given what its job spent and what others did since; or ""."""


class ModelUsageTable(Repository):
    def begin_call(self, call: ModelCall, since: float, verdict: Verdict) -> ModelCall | BudgetLine:
        """Store a question before it is asked, with its id, unless the verdict on what was spent
        by its job and, since a time, by all others is a line that it would cross: that line then.
        The others' `month_cost` is theirs of the 30 days before it.

        Both happen in one transaction, so that two processes cannot spend the same budget.
        """
        calls = tables.model_calls
        with self._database.write() as connection:
            mine = (calls.c.job == call.job) & (calls.c.job != "")
            own = _sum_usage(connection, mine)
            others = _sum_usage(connection, ~mine, calls.c.started >= since)
            month = _sum_usage(connection, ~mine, calls.c.started >= call.started - MONTH_SECONDS)
            others = replace(others, month_cost=month.cost)
            line = verdict(own, others)
            if line is not None:
                return line
            key = connection.execute(insert(calls), _to_row(call)).inserted_primary_key
            assert key is not None
            stored = replace(call, id=int(key[0]))
            self._append_audit_row(
                connection, "model.asked", call.job, _build_payload(stored), call.started
            )
        return stored

    def end_call(self, call: ModelCall, now: float) -> None:
        """Store the outcome of a call."""
        calls = tables.model_calls
        row = _to_row(call)
        names = ("model", "seconds", "tokens_in", "tokens_out", "cost")
        values = {name: row[name] for name in (*names, "state", "content", "message")}
        with self._database.write() as connection:
            connection.execute(update(calls).where(calls.c.id == call.id).values(values))
            self._append_audit_row(
                connection, f"model.{call.state}", call.job, _build_payload(call), now
            )

    def find_answer(self, job: str, prompt_digest: str) -> ModelCall | None:
        """The job's newest answered call with the same prompt, or None."""
        calls = tables.model_calls
        query = (
            select(calls)
            .where(calls.c.job == job, calls.c.prompt_digest == prompt_digest)
            .where(calls.c.state == "answered")
            .order_by(calls.c.id.desc())
        )
        with self._database.read() as connection:
            row = connection.execute(query).mappings().first()
        return _parse_row(row) if row is not None else None

    def find(self, job: str) -> tuple[ModelCall, ...]:
        """The calls of a job, in order."""
        calls = tables.model_calls
        query = select(calls).where(calls.c.job == job).order_by(calls.c.id)
        with self._database.read() as connection:
            return tuple(_parse_row(row) for row in connection.execute(query).mappings())

    def sum_for_job(self, job: str) -> ModelUsage:
        """The usage of a job; zero for ""."""
        if not job:
            return ModelUsage()
        with self._database.read() as connection:
            return _sum_usage(connection, tables.model_calls.c.job == job)

    def sum_for_server(self, server: str) -> ModelUsage:
        with self._database.read() as connection:
            return _sum_usage(connection, tables.model_calls.c.server == server)

    def sum_since(self, since: float) -> ModelUsage:
        with self._database.read() as connection:
            return _sum_usage(connection, tables.model_calls.c.started >= since)

    def sum_recent(self, now: float, day: float) -> ModelUsage:
        """The usage of the last `day` seconds, with the cost of the last 30 days."""
        month = self.sum_since(now - MONTH_SECONDS)
        return replace(self.sum_since(now - day), month_cost=month.cost)

    def sum_by_model(self, since: float) -> Mapping[str, ModelUsage]:
        """The usage since a time by model, the dearest first; "" where none answered."""
        calls = tables.model_calls
        query = select(calls.c.model, *_SUMS).where(calls.c.started >= since)
        with self._database.read() as connection:
            rows = connection.execute(query.group_by(calls.c.model).order_by(_SUMS[2].desc()))
            return {row[0]: ModelUsage(*row[1:]) for row in rows}

    def sum_by_job(self, since: float, limit: int = 20) -> Mapping[str, ModelUsage]:
        """The usage since a time of the jobs that asked last, the newest first."""
        calls = tables.model_calls
        query = (
            select(calls.c.job, *_SUMS)
            .where(calls.c.started >= since, calls.c.job != "")
            .group_by(calls.c.job)
            .order_by(func.max(calls.c.started).desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return {row[0]: ModelUsage(*row[1:]) for row in connection.execute(query)}

    def sum_by_server(self) -> Mapping[tuple[str, str], ModelUsage]:
        """All usage by (server, author); the server is "" where a call belongs to none."""
        calls = tables.model_calls
        query = (
            select(calls.c.server, calls.c.author, *_SUMS)
            .group_by(calls.c.server, calls.c.author)
            .order_by(calls.c.server, calls.c.author)
        )
        with self._database.read() as connection:
            rows = connection.execute(query)
            return {(row[0], row[1]): ModelUsage(*row[2:]) for row in rows}


_CALLS = tables.model_calls
_SUMS = (
    func.coalesce(func.sum(_CALLS.c.tokens_in), 0),
    func.coalesce(func.sum(_CALLS.c.tokens_out), 0),
    func.coalesce(func.sum(_CALLS.c.cost), 0.0),
    func.count(_CALLS.c.id),
)


def _sum_usage(connection: Connection, *where: ColumnElement[bool]) -> ModelUsage:
    tokens_in, tokens_out, cost, count = connection.execute(select(*_SUMS).where(*where)).one()
    wrote = (_CALLS.c.job != "") & _CALLS.c.purpose.in_(WRITING)
    forges = select(func.count(_CALLS.c.job.distinct())).where(wrote, *where)
    return ModelUsage(tokens_in, tokens_out, cost, count, connection.execute(forges).scalar_one())


def _build_payload(call: ModelCall) -> dict[str, Any]:
    """The audit's payload about a call, with the digest of its prompt and without the answer."""
    names = ("id", "server", "purpose", "author", "model", "prompt_digest")
    told = {name: getattr(call, name) for name in (*names, "tokens_in", "tokens_out")}
    return {**told, "cost": round(call.cost, 9), "message": call.message[:300]}


def _to_row(call: ModelCall) -> dict[str, Any]:
    row = {name: value for name, value in vars(call).items() if name != "id"}
    return {
        **row,
        "prompt": clean_text(call.prompt, PROMPT),
        "model": clean_text(call.model, TEXT),
        "content": to_bounded_json(dict(call.content), CONTENT),
        "message": clean_text(call.message, TEXT),
    }


def _parse_row(row: RowMapping) -> ModelCall:
    return ModelCall(**{**row, "content": json.loads(row["content"])})
