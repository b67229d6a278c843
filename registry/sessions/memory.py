"""Memory of a session: its last calls, runs and decisions, out of the rows that record them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import RowMapping, func, select

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text
from registry.sessions.kept_results import KeptResultTable

MAX_EXCHANGES = 10
MAX_VALUES = 6
"""The exchanges whose answers are loaded: the newest that succeeded."""
MAX_RUNS = 5
SESSION_LETTERS = 20_000
"""As calls are stored (`registry.calls.batch.TEXT`)."""


@dataclass(frozen=True)
class SessionCall:
    """One call of a session. `outcome` is `ok`, the kind of its failure, or its state where it has
    not ended. `handle` names its kept result, `value` is what it answered, for the newest alone.
    """

    call: str
    tool: str
    started: float
    task: str = ""
    reason: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outcome: str = "ok"
    access: Literal["read", "write"] = "read"
    handle: str = ""
    value: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class SessionApproval:
    """A write of a session that a person decides, or decided."""

    approval: str
    tool: str
    state: str
    created: float
    decided_by: str = ""


@dataclass(frozen=True)
class SessionRun:
    """A task run or a forge of a session; `message` says how it stands."""

    job: str
    kind: str
    state: str
    task: str
    message: str
    updated: float


@dataclass(frozen=True)
class SessionMemory:
    """The newest first of each. Empty for a session that nobody named."""

    exchanges: tuple[SessionCall, ...] = ()
    approvals: tuple[SessionApproval, ...] = ()
    runs: tuple[SessionRun, ...] = ()


class SessionTable(Repository):
    """Reads what calls, approvals and jobs say of a session; writes nothing."""

    def load_memory(self, session: str, now: float) -> SessionMemory:
        """The session's memory; of a name under which nothing was done, an empty one."""
        if not session:
            return SessionMemory()
        name = clean_text(session, SESSION_LETTERS)
        handles = KeptResultTable(self._database).find_handles(session, now)
        with self._database.read() as connection:
            calls = connection.execute(_select_calls(name)).mappings().all()
            good = [
                row["id"] for row in calls if row["state"] == "done" and not row["failure_kind"]
            ]
            values = {
                row.id: row.result
                for row in connection.execute(
                    select(tables.invocations.c.id, tables.invocations.c.result).where(
                        tables.invocations.c.id.in_(good[:MAX_VALUES])
                    )
                )
            }
            approvals = connection.execute(_select_approvals(name)).mappings().all()
            runs = connection.execute(_select_runs(name)).mappings().all()
        return SessionMemory(
            tuple(_parse_exchange(row, handles, values.get(row["id"])) for row in calls),
            tuple(SessionApproval(**row) for row in approvals),
            tuple(SessionRun(**{**row, "task": row["task"] or ""}) for row in runs),
        )


def _select_calls(session: str) -> Any:
    calls = tables.invocations
    names = (
        *("id", "entry", "tool", "started", "task", "reason", "arguments", "access", "state"),
        "failure_kind",
    )
    columns = (calls.c[name] for name in names)
    # The second condition lets SQLite take the partial index.
    query = select(*columns).where(calls.c.session == session, calls.c.session != "")
    return query.order_by(calls.c.sequence.desc()).limit(MAX_EXCHANGES)


def _select_approvals(session: str) -> Any:
    rows = tables.approvals
    return (
        select(
            rows.c.id.label("approval"),
            (rows.c.entry + "." + rows.c.tool).label("tool"),
            rows.c.state,
            rows.c.created,
            rows.c.decided_by,
        )
        .where(rows.c.session == session)
        .order_by(rows.c.created.desc())
        .limit(MAX_EXCHANGES)
    )


def _select_runs(session: str) -> Any:
    jobs = tables.jobs
    task = func.json_extract(jobs.c.request, "$.task")
    return (
        select(
            jobs.c.id.label("job"),
            jobs.c.kind,
            jobs.c.state,
            task.label("task"),
            jobs.c.message,
            jobs.c.updated,
        )
        .where(func.json_extract(jobs.c.request, "$.session") == session)
        .order_by(jobs.c.created.desc())
        .limit(MAX_RUNS)
    )


def _parse_exchange(row: RowMapping, handles: Mapping[str, str], result: str | None) -> SessionCall:
    ended = row["failure_kind"] or "ok" if row["state"] == "done" else row["state"]
    arguments = json.loads(row["arguments"])
    return SessionCall(
        call=row["id"],
        tool=f"{row['entry']}.{row['tool']}",
        started=row["started"],
        task=row["task"],
        reason=row["reason"],
        arguments=arguments if isinstance(arguments, dict) else {},
        outcome=ended,
        access=row["access"],
        handle=handles.get(row["id"], ""),
        value=_extract_value(json.loads(result)) if result else None,
    )


def _extract_value(result: Any) -> Any:
    """What a call answered, of its stored MCP result; None where that was too long to store."""
    return result.get("structuredContent") if isinstance(result, dict) else None
