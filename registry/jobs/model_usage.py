"""What models were asked, what they answered, and what it cost: nothing is paid for twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, func, insert, select, update

from registry import schema
from registry.audit import Ledger
from registry.jsontext import bounded, clean
from registry.modelcalls import WRITING, ModelCall, Spent

CONTENT = 2 << 20
PROMPT = 256 * 1024
TEXT = 2_000

Verdict = Callable[[Spent, Spent], str]
"""Why a question may not be asked, given what its job spent and what others did since; or ""."""


class Spending(Ledger):
    def begin_model_call(self, call: ModelCall, since: float, verdict: Verdict) -> ModelCall | str:
        """Store a question before it is asked, with its id, unless the verdict on what was spent
        by its job and, since a time, by all others is against it: its reason then.

        Verdict and row are one transaction: two processes do not spend the same money.
        """
        calls = schema.model_calls
        with self._database.write() as connection:
            mine = (calls.c.job == call.job) & (calls.c.job != "")
            own = _spent(connection, mine)
            others = _spent(connection, ~mine, calls.c.started >= since)
            reason = verdict(own, others)
            if reason:
                return reason
            key = connection.execute(insert(calls), _row(call)).inserted_primary_key
            assert key is not None
            stored = replace(call, id=int(key[0]))
            self._append(connection, "model.asked", call.job, _noted(stored), call.started)
        return stored

    def end_model_call(self, call: ModelCall, now: float) -> None:
        """Store what came of a question."""
        calls = schema.model_calls
        row = _row(call)
        names = ("model", "seconds", "tokens_in", "tokens_out", "cost")
        values = {name: row[name] for name in (*names, "state", "content", "message")}
        with self._database.write() as connection:
            connection.execute(update(calls).where(calls.c.id == call.id).values(values))
            self._append(connection, f"model.{call.state}", call.job, _noted(call), now)

    def answered_call(self, job: str, prompt_digest: str) -> ModelCall | None:
        """The job's earlier answer to the very same question."""
        calls = schema.model_calls
        query = (
            select(calls)
            .where(calls.c.job == job, calls.c.prompt_digest == prompt_digest)
            .where(calls.c.state == "answered")
            .order_by(calls.c.id.desc())
        )
        with self._database.read() as connection:
            row = connection.execute(query).mappings().first()
        return _call(row) if row is not None else None

    def model_calls(self, job: str) -> tuple[ModelCall, ...]:
        """The questions of a job, in their order."""
        calls = schema.model_calls
        query = select(calls).where(calls.c.job == job).order_by(calls.c.id)
        with self._database.read() as connection:
            return tuple(_call(row) for row in connection.execute(query).mappings())

    def spent_by_job(self, job: str) -> Spent:
        """What was spent for a job; nothing for none ("")."""
        if not job:
            return Spent()
        with self._database.read() as connection:
            return _spent(connection, schema.model_calls.c.job == job)

    def spent_on(self, server: str) -> Spent:
        with self._database.read() as connection:
            return _spent(connection, schema.model_calls.c.server == server)

    def spent_since(self, since: float) -> Spent:
        with self._database.read() as connection:
            return _spent(connection, schema.model_calls.c.started >= since)

    def spent_by_server(self) -> Mapping[tuple[str, str], Spent]:
        """By server ("" for what was about none) and author, all that was ever spent."""
        calls = schema.model_calls
        query = (
            select(calls.c.server, calls.c.author, *_SUMS)
            .group_by(calls.c.server, calls.c.author)
            .order_by(calls.c.server, calls.c.author)
        )
        with self._database.read() as connection:
            rows = connection.execute(query)
            return {(row[0], row[1]): Spent(*row[2:]) for row in rows}


_CALLS = schema.model_calls
_SUMS = (
    func.coalesce(func.sum(_CALLS.c.tokens_in), 0),
    func.coalesce(func.sum(_CALLS.c.tokens_out), 0),
    func.coalesce(func.sum(_CALLS.c.cost), 0.0),
    func.count(_CALLS.c.id),
)


def _spent(connection: Connection, *where: ColumnElement[bool]) -> Spent:
    tokens_in, tokens_out, cost, count = connection.execute(select(*_SUMS).where(*where)).one()
    wrote = (_CALLS.c.job != "") & _CALLS.c.purpose.in_(WRITING)
    forges = select(func.count(_CALLS.c.job.distinct())).where(wrote, *where)
    return Spent(tokens_in, tokens_out, cost, count, connection.execute(forges).scalar_one())


def _noted(call: ModelCall) -> dict[str, Any]:
    """What the audit says of a question; its prompt and answer are named by what they hash to."""
    names = ("id", "server", "purpose", "author", "model", "prompt_digest")
    told = {name: getattr(call, name) for name in (*names, "tokens_in", "tokens_out")}
    return {**told, "cost": round(call.cost, 9), "message": call.message[:300]}


def _row(call: ModelCall) -> dict[str, Any]:
    row = {name: value for name, value in vars(call).items() if name != "id"}
    return {
        **row,
        "prompt": clean(call.prompt, PROMPT),
        "model": clean(call.model, TEXT),
        "content": bounded(dict(call.content), CONTENT),
        "message": clean(call.message, TEXT),
    }


def _call(row: RowMapping) -> ModelCall:
    return ModelCall(**{**row, "content": json.loads(row["content"])})
