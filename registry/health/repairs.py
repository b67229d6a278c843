"""Tables of repairs, of new versions on trial, and of API descriptions that are fetched again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text
from registry.database.rows import AnyConnection, fetch_mappings
from registry.health.canary import CanaryTrial, Judgement, OutcomeCounts, judge_trial
from registry.jobs.jobs import parse_job, queue_job
from registry.models import CALLABLE, ENDED_JOBS, Job, JobKind

REPAIR: JobKind = "repair"
REPAIRS_A_DAY = 3
DAY = 86_400.0
REPAIR_PAUSE = DAY / 2
"""Seconds from a repair that failed to the next for the same kind of cause: an API's owner may
still be at work, and the repairs of a day are not spent within minutes.
"""
KEPT_TRYING = 7 * DAY
"""Seconds that a failed repair counts for."""
ATTEMPTS = 3
"""Failed repairs, over at least a day, after which a server that answers nothing is archived."""
MAX_SOURCE = 2_000
TEXT = 2_000
_TRIAL = select(tables.trials).where(tables.trials.c.entry == bindparam("entry"))


@dataclass(frozen=True)
class WatchedDescription:
    """An API's description as of its last check at `checked` (epoch seconds). `problem` says why it
    could not be fetched; `etag` and `modified` are its validators (RFC 9110, section 8.8).
    """

    source: str
    checked: float = 0.0
    etag: str = ""
    modified: str = ""
    digest: str = ""
    problem: str = ""


@dataclass(frozen=True)
class RepairAttempts:
    """When a version's repairs began that failed (epoch seconds), and whether it `answered` a call
    since the first of them.
    """

    began: tuple[float, ...] = ()
    answered: bool = True


def is_past_repair(attempts: RepairAttempts, now: float) -> bool:
    """Whether a server has come to the end of the ladder: ATTEMPTS repairs failed, the first at
    least a day ago, and no call was answered since.
    """
    tried = len(attempts.began) >= ATTEMPTS and now - min(attempts.began) >= DAY
    return tried and not attempts.answered


def is_too_soon(earlier: Job, job: Job, now: float) -> bool:
    """Whether a repair comes too soon after an earlier one of the same version that failed, for a
    cause of the same kind.
    """
    same = all(
        earlier.request.get(name) == job.request.get(name) for name in ("version", "check", "kind")
    )
    return earlier.state == "failed" and same and now - earlier.updated < REPAIR_PAUSE


class RepairTable(Repository):
    """Repairs, and checks of servers by their own cases, which are jobs: one of each at a time and
    at most three of each a day for each server.
    """

    def queue_repair(self, job: Job, now: float) -> Job | None:
        """Queue a repair of the server that `job.request["server"]` names, or a check of it where
        the request has `check`. None while it is frozen, one is under way, it has had those of the
        day, or the last repair of the same kind of cause failed less than REPAIR_PAUSE ago.
        """
        server, check = str(job.request["server"]), bool(job.request.get("check"))
        with self._database.write() as connection:
            frozen = connection.execute(select(tables.freeze.c.frozen)).scalar()
            earlier = _find_repairs(connection, server, now - DAY, check)
            live = any(each.state not in ENDED_JOBS for each in earlier)
            if frozen or live or len(earlier) >= REPAIRS_A_DAY:
                return None
            if any(is_too_soon(each, job, now) for each in earlier):
                return None
            self._append_audit_row(connection, *queue_job(connection, job), job.created)
            payload = {"job": job.id, "cause": clean_text(str(job.request.get("cause", "")), TEXT)}
            kind = "check.opened" if check else "repair.opened"
            self._append_audit_row(connection, kind, server, payload, now)
        return job

    def find(self, server: str, now: float) -> tuple[Job, ...]:
        """The repairs of a server's last day, newest first."""
        with self._database.read() as connection:
            return _find_repairs(connection, server, now - DAY)

    def find_due(self, now: float) -> Job | None:
        """A failed repair that is to be tried again: the newest one of a server that is not
        archived, that has the same version still, and that answered no call since. The server may
        be quarantined, and is then called by nobody who would open another.
        """
        jobs, entries = tables.jobs, tables.entries
        since = now - KEPT_TRYING
        recent = (jobs.c.kind == REPAIR) & (jobs.c.created > since)
        query = select(jobs).where(recent).order_by(jobs.c.created.desc())
        newest: dict[str, Job] = {}
        with self._database.read() as connection:
            for row in connection.execute(query).mappings():
                job = parse_job(row)
                if not job.request.get("check"):
                    newest.setdefault(str(job.request.get("server")), job)
            for server, job in newest.items():
                if job.state != "failed" or now - job.updated < REPAIR_PAUSE:
                    continue
                of = select(entries.c.state, entries.c.version).where(entries.c.name == server)
                entry = connection.execute(of).first()
                if entry is None or entry.state == "archived":
                    continue
                same = entry.version == job.request.get("version")
                if same and not _has_answered(connection, server, job.created):
                    return job
        return None

    def find_failed(self, now: float) -> tuple[Job, ...]:
        """The newest repair of each server that failed in the last week, where the server is in use
        and has the same version still.
        """
        jobs, entries = tables.jobs, tables.entries
        recent = (jobs.c.kind == REPAIR) & (jobs.c.created > now - KEPT_TRYING)
        query = select(jobs).where(recent).order_by(jobs.c.created.desc())
        current = select(entries.c.name, entries.c.version).where(entries.c.state != "archived")
        with self._database.read() as connection:
            versions = {row.name: row.version for row in connection.execute(current)}
            newest: dict[str, Job] = {}
            for row in connection.execute(query).mappings():
                job = parse_job(row)
                if not job.request.get("check"):
                    newest.setdefault(str(job.request.get("server")), job)
        return tuple(
            job
            for server, job in newest.items()
            if job.state == "failed" and versions.get(server, -1) == job.request.get("version")
        )

    def find_attempts(self, server: str, version: int, now: float) -> RepairAttempts:
        """The repairs of a version that did not mend it so far, the one that is under way included,
        and whether it answered a call since the first of them.
        """
        with self._database.read() as connection:
            failed = [
                job
                for job in _find_repairs(connection, server, now - KEPT_TRYING)
                if job.state != "done" and job.request.get("version") == version
            ]
            first = min((job.created for job in failed), default=now)
            answered = _has_answered(connection, server, first)
        return RepairAttempts(tuple(job.created for job in failed), answered)

    def count_drift(self, entry: str, version: int) -> dict[str, int]:
        """The number of calls by tool of a version whose answers were not as documented."""
        calls = tables.invocations
        failed = calls.c.failure_kind.in_(("schema", "malformed", "drift"))
        drifted = failed | calls.c.difference.is_not(None)
        query = (
            select(calls.c.tool, func.count())
            .where((calls.c.entry == entry) & (calls.c.version == version) & drifted)
            .group_by(calls.c.tool)
        )
        with self._database.read() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}


class CanaryTable(Repository):
    """Trials of new versions, one for each server, the latest only."""

    def begin_trial(self, trial: CanaryTrial) -> None:
        """Put a server's newest version on trial, in place of any earlier trial."""
        with self._database.write() as connection:
            connection.execute(delete(tables.trials).where(tables.trials.c.entry == trial.entry))
            connection.execute(insert(tables.trials), _build_trial_row(trial))
            payload = {"version": trial.version, "previous": trial.previous}
            self._append_audit_row(connection, "trial.began", trial.entry, payload, trial.began)

    def withdraw_trial(self, trial: CanaryTrial, earlier: CanaryTrial | None, now: float) -> None:
        """Forget a trial whose version was not registered: the `earlier` one is the last again.
        Nothing where another one has taken its place.
        """
        with self._database.write() as connection:
            found = _find_trial(connection, trial.entry)
            if found is None or (found.version, found.began) != (trial.version, trial.began):
                return
            connection.execute(delete(tables.trials).where(tables.trials.c.entry == trial.entry))
            if earlier is not None:
                connection.execute(insert(tables.trials), _build_trial_row(earlier))
            payload = {"version": trial.version, "outcome": "not registered"}
            self._append_audit_row(connection, "trial.ended", trial.entry, payload, now)

    def get(self, entry: str) -> CanaryTrial | None:
        """The last trial of a server's version, under way or ended."""
        with self._database.look() as connection:
            return _find_trial(connection, entry)

    def count_outcome(
        self, entry: str, version: int, succeeded: bool, now: float
    ) -> tuple[CanaryTrial, Judgement] | None:
        """Count an outcome of a version on trial, and judge the trial. None where it is not on
        trial.
        """
        with self._database.write() as connection:
            trial = _find_trial(connection, entry)
            if trial is None or trial.ended is not None or trial.version != version:
                return None
            new = trial.new
            new = replace(
                new, succeeded=new.succeeded + succeeded, failed=new.failed + (not succeeded)
            )
            trial = replace(trial, new=new)
            judgement = judge_trial(trial)
            if judgement != "going on":
                trial = replace(trial, ended=now, outcome=judgement)
                payload = {"version": version, "outcome": judgement, **vars(new)}
                self._append_audit_row(connection, "trial.ended", entry, payload, now)
            of_entry = tables.trials.c.entry == entry
            connection.execute(
                update(tables.trials).where(of_entry).values(_build_trial_row(trial))
            )
        return trial, judgement

    def end_trial(self, entry: str, outcome: str, now: float) -> None:
        """End a trial for another reason: a person decided, or another version was published."""
        going = (tables.trials.c.entry == entry) & tables.trials.c.ended.is_(None)
        values = {"ended": now, "outcome": clean_text(outcome, TEXT)}
        with self._database.write() as connection:
            if connection.execute(update(tables.trials).where(going).values(values)).rowcount:
                self._append_audit_row(connection, "trial.ended", entry, {"outcome": outcome}, now)


class DescriptionTable(Repository):
    """The last check of every watched API description, by its URL."""

    def get(self, source: str) -> WatchedDescription | None:
        with self._database.read() as connection:
            return _find_description(connection, source)

    def find_due_servers(self, now: float, interval: float, most: int) -> tuple[str, ...]:
        """The names of compiled servers in use whose description was not checked for `interval`
        seconds, at most so many.
        """
        entries, versions, watched = tables.entries, tables.versions, tables.watched
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
            .limit(most)
        )
        with self._database.read() as connection:
            return tuple(connection.execute(query).scalars())

    def claim_check(self, source: str, now: float, interval: float) -> WatchedDescription | None:
        """Claim the next check of a source, so that no other process makes it. None where the last
        one is less than `interval` seconds ago.
        """
        with self._database.write() as connection:
            known = _find_description(connection, source)
            if known is not None and known.checked > now - interval:
                return None
            claimed = replace(known or WatchedDescription(source), checked=now)
            _store_description(connection, claimed, known is not None)
        return claimed

    def release_check(self, source: str) -> None:
        """Give back a claimed check that was not made: it is due again."""
        with self._database.write() as connection:
            watched = tables.watched
            due = update(watched).where(watched.c.source == source).values(checked=0.0)
            connection.execute(due)

    def store_check(self, seen: WatchedDescription, now: float, server: str, changed: bool) -> None:
        """Store the result of a check."""
        with self._database.write() as connection:
            _store_description(
                connection, seen, _find_description(connection, seen.source) is not None
            )
            if changed:
                payload = {"source": clean_text(seen.source, TEXT), "digest": seen.digest}
                self._append_audit_row(connection, "drift.document", server, payload, now)


def _has_answered(connection: Connection, server: str, since: float) -> bool:
    """Whether a call of a server that began since then succeeded."""
    calls = tables.invocations
    good = (calls.c.failure_kind.is_(None)) & (calls.c.state == "done") & ~calls.c.disputed
    query = select(calls.c.id).where((calls.c.entry == server) & (calls.c.started >= since) & good)
    return connection.execute(query.limit(1)).first() is not None


def _find_repairs(
    connection: Connection, server: str, since: float, check: bool = False
) -> tuple[Job, ...]:
    jobs = tables.jobs
    recent = (jobs.c.kind == REPAIR) & (jobs.c.created > since)
    rows = connection.execute(select(jobs).where(recent).order_by(jobs.c.created.desc()))
    found = (parse_job(row) for row in rows.mappings() if _is_about(row, server, check))
    return tuple(found)


def _is_about(row: RowMapping, server: str, check: bool) -> bool:
    request: Mapping[str, Any] = json.loads(row["request"])
    return request.get("server") == server and bool(request.get("check")) is check


def _find_trial(connection: AnyConnection, entry: str) -> CanaryTrial | None:
    rows = fetch_mappings(connection, _TRIAL, {"entry": entry})
    if not rows:
        return None
    (row,) = rows
    plain = ("entry", "version", "previous", "began", "calls", "ended", "outcome")
    return CanaryTrial(
        **{name: row[name] for name in plain},
        new=OutcomeCounts(row["succeeded"], row["failed"]),
        old=OutcomeCounts(row["old_succeeded"], row["old_failed"]),
    )


def _build_trial_row(trial: CanaryTrial) -> dict[str, Any]:
    plain = {name: value for name, value in vars(trial).items() if name not in ("new", "old")}
    return {
        **plain,
        "succeeded": trial.new.succeeded,
        "failed": trial.new.failed,
        "old_succeeded": trial.old.succeeded,
        "old_failed": trial.old.failed,
    }


def _find_description(connection: Connection, source: str) -> WatchedDescription | None:
    query = select(tables.watched).where(tables.watched.c.source == source)
    row = connection.execute(query).mappings().first()
    return None if row is None else WatchedDescription(**row)


def _store_description(connection: Connection, seen: WatchedDescription, exists: bool) -> None:
    table = tables.watched
    texts = {
        name: clean_text(getattr(seen, name), TEXT) for name in ("etag", "modified", "problem")
    }
    values = {**vars(seen), **texts}
    if exists:
        connection.execute(update(table).where(table.c.source == seen.source).values(values))
    else:
        connection.execute(insert(table), values)
