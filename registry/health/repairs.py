"""What mends servers and keeps them well: repairs, new versions on trial, watched descriptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from registry import schema
from registry.jobs import Jobs, job_from
from registry.jsontext import clean
from registry.records import CALLABLE, ENDED_JOBS, Job, JobKind
from registry.trial import Judgement, Tally, Trial, judged

REPAIR: JobKind = "repair"
REPAIRS_A_DAY = 3
DAY = 86_400.0
MAX_SOURCE = 2_000
TEXT = 2_000


@dataclass(frozen=True)
class Watched:
    """An API's description as it was fetched last. `checked` is when, `problem` why it could not
    be; `etag` and `modified` are its validators (RFC 9110, section 8.8).
    """

    source: str
    checked: float = 0.0
    etag: str = ""
    modified: str = ""
    digest: str = ""
    problem: str = ""


class Health(Jobs):
    """Repairs are jobs; of a server one at a time, and three a day."""

    def open_repair(self, job: Job, now: float) -> Job | None:
        """Queue a repair of the server that `job.request["server"]` names. None while it is frozen,
        one is under way, or it has had its repairs of the day.
        """
        server = str(job.request["server"])
        with self._database.write() as connection:
            frozen = connection.execute(select(schema.freeze.c.frozen)).scalar()
            earlier = _repairs(connection, server, now - DAY)
            live = any(each.state not in ENDED_JOBS for each in earlier)
            if frozen or live or len(earlier) >= REPAIRS_A_DAY:
                return None
            self._queue(connection, job)
            payload = {"job": job.id, "cause": clean(str(job.request.get("cause", "")), TEXT)}
            self._append(connection, "repair.opened", server, payload, now)
        return job

    def repairs(self, server: str, now: float) -> tuple[Job, ...]:
        """The repairs of a server's last day, newest first."""
        with self._database.read() as connection:
            return _repairs(connection, server, now - DAY)

    def begin_trial(self, trial: Trial) -> None:
        """Put a server's newest version on trial, in place of any earlier trial."""
        with self._database.write() as connection:
            connection.execute(delete(schema.trials).where(schema.trials.c.entry == trial.entry))
            connection.execute(insert(schema.trials), _trial_row(trial))
            payload = {"version": trial.version, "previous": trial.previous}
            self._append(connection, "trial.began", trial.entry, payload, trial.began)

    def trial(self, entry: str) -> Trial | None:
        """The last trial of a server's version, under way or ended."""
        with self._database.read() as connection:
            return _trial(connection, entry)

    def count_trial(
        self, entry: str, version: int, succeeded: bool, now: float
    ) -> tuple[Trial, Judgement] | None:
        """Count an outcome of a version on trial, and what becomes of it. None where none is."""
        with self._database.write() as connection:
            trial = _trial(connection, entry)
            if trial is None or trial.ended is not None or trial.version != version:
                return None
            new = trial.new
            new = replace(
                new, succeeded=new.succeeded + succeeded, failed=new.failed + (not succeeded)
            )
            trial = replace(trial, new=new)
            judgement = judged(trial)
            if judgement != "going on":
                trial = replace(trial, ended=now, outcome=judgement)
                payload = {"version": version, "outcome": judgement, **vars(new)}
                self._append(connection, "trial.ended", entry, payload, now)
            of_entry = schema.trials.c.entry == entry
            connection.execute(update(schema.trials).where(of_entry).values(_trial_row(trial)))
        return trial, judgement

    def end_trial(self, entry: str, outcome: str, now: float) -> None:
        """End a trial from outside: a person decided, or another version came."""
        going = (schema.trials.c.entry == entry) & schema.trials.c.ended.is_(None)
        values = {"ended": now, "outcome": clean(outcome, TEXT)}
        with self._database.write() as connection:
            if connection.execute(update(schema.trials).where(going).values(values)).rowcount:
                self._append(connection, "trial.ended", entry, {"outcome": outcome}, now)

    def drifting(self, entry: str, version: int) -> dict[str, int]:
        """How often each tool of a version was answered with something undocumented."""
        calls = schema.invocations
        drifted = calls.c.failure_kind.in_(("schema", "malformed", "drift"))
        query = (
            select(calls.c.tool, func.count())
            .where((calls.c.entry == entry) & (calls.c.version == version) & drifted)
            .group_by(calls.c.tool)
        )
        with self._database.read() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def watched(self, source: str) -> Watched | None:
        with self._database.read() as connection:
            return _watched(connection, source)

    def due_watch(self, now: float, interval: float) -> str:
        """A compiled server in use whose description nobody has looked at for `interval` seconds;
        "" where there is none.
        """
        entries, versions, watched = schema.entries, schema.versions, schema.watched
        recent = select(watched.c.source).where(watched.c.checked > now - interval)
        query = (
            select(entries.c.name)
            .join(
                versions,
                (versions.c.entry == entries.c.name) & (versions.c.version == entries.c.version),
            )
            .where(
                entries.c.state.in_(CALLABLE)
                & versions.c.created_by.startswith("compiler")
                & (func.length(versions.c.source) <= MAX_SOURCE)
                & versions.c.source.not_in(recent)
            )
            .order_by(entries.c.name)
            .limit(1)
        )
        with self._database.read() as connection:
            return connection.execute(query).scalar() or ""

    def claim_watch(self, source: str, now: float, interval: float) -> Watched | None:
        """Take a source's next check, for all processes. None where its last is not long ago."""
        with self._database.write() as connection:
            known = _watched(connection, source)
            if known is not None and known.checked > now - interval:
                return None
            claimed = replace(known or Watched(source), checked=now)
            _keep(connection, claimed, known is not None)
        return claimed

    def keep_watch(self, seen: Watched, now: float, server: str, changed: bool) -> None:
        """Store what a check found."""
        with self._database.write() as connection:
            _keep(connection, seen, _watched(connection, seen.source) is not None)
            if changed:
                payload = {"source": clean(seen.source, TEXT), "digest": seen.digest}
                self._append(connection, "drift.document", server, payload, now)


def _repairs(connection: Connection, server: str, since: float) -> tuple[Job, ...]:
    jobs = schema.jobs
    recent = (jobs.c.kind == REPAIR) & (jobs.c.created > since)
    rows = connection.execute(select(jobs).where(recent).order_by(jobs.c.created.desc()))
    found = (job_from(row) for row in rows.mappings() if _about(row, server))
    return tuple(found)


def _about(row: RowMapping, server: str) -> bool:
    request: Mapping[str, Any] = json.loads(row["request"])
    return request.get("server") == server


def _trial(connection: Connection, entry: str) -> Trial | None:
    query = select(schema.trials).where(schema.trials.c.entry == entry)
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    plain = ("entry", "version", "previous", "began", "calls", "ended", "outcome")
    return Trial(
        **{name: row[name] for name in plain},
        new=Tally(row["succeeded"], row["failed"]),
        old=Tally(row["old_succeeded"], row["old_failed"]),
    )


def _trial_row(trial: Trial) -> dict[str, Any]:
    plain = {name: value for name, value in vars(trial).items() if name not in ("new", "old")}
    return {
        **plain,
        "succeeded": trial.new.succeeded,
        "failed": trial.new.failed,
        "old_succeeded": trial.old.succeeded,
        "old_failed": trial.old.failed,
    }


def _watched(connection: Connection, source: str) -> Watched | None:
    query = select(schema.watched).where(schema.watched.c.source == source)
    row = connection.execute(query).mappings().first()
    return None if row is None else Watched(**row)


def _keep(connection: Connection, seen: Watched, exists: bool) -> None:
    table = schema.watched
    texts = {name: clean(getattr(seen, name), TEXT) for name in ("etag", "modified", "problem")}
    values = {**vars(seen), **texts}
    if exists:
        connection.execute(update(table).where(table.c.source == seen.source).values(values))
    else:
        connection.execute(insert(table), values)
