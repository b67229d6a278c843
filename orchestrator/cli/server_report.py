"""What is told of a server's health: repairs, trial, drift, and what its API's answers taught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.moments import ago
from registry.cause import cause_of
from registry.records import Entry, Job
from registry.store import Store
from registry.trial import Trial
from sandbox.bundle import Bundle

LOOKED_AT = 50


def health_json(store: Store, entry: Entry, bundle: Bundle | None, now: float) -> dict[str, Any]:
    """A server's health as scripts see it. `bundle` is its current one, where it can be read."""
    calls = store.invocations(entry.name, LOOKED_AT)
    causes = [cause for call in calls if (cause := cause_of(call)) is not None]
    watched = store.watched(entry.source)
    trial = store.trial(entry.name)
    return {
        "causes": dict(Counter(cause.kind for cause in causes)),
        "last_cause": causes[0].text if causes else "",
        "drifting": store.drifting(entry.name, entry.version),
        "repairs": [_repair(job) for job in store.repairs(entry.name, now)],
        "trial": trial and trial_json(trial),
        "learned": [*map(str, bundle.paces), *map(str, bundle.widened)] if bundle else [],
        "document": watched and vars(watched),
    }


def trial_json(trial: Trial) -> dict[str, Any]:
    return {**vars(trial), "new": vars(trial.new), "old": vars(trial.old)}


def health_lines(health: Mapping[str, Any], now: float) -> Iterator[str]:
    """The same in lines for people; none where there is nothing to tell."""
    if health["causes"]:
        counted = ", ".join(f"{kind} {count}" for kind, count in health["causes"].items())
        yield f"failures of the last {LOOKED_AT} calls: {counted}; the last: {health['last_cause']}"
    for tool, count in health["drifting"].items():
        yield f"{tool} was answered {count} times with something undocumented"
    for repair in health["repairs"]:
        yield (
            f"repair {repair['job']} {repair['state']} {ago(repair['created'], now)}: "
            f"{repair['message'] or repair['cause']}"
        )
    trial = health["trial"]
    if trial and trial["ended"] is None:
        yield f"version {trial['version']} is on trial beside version {trial['previous']}"
    yield from (f"learned: {learned}" for learned in health["learned"])
    document = health["document"]
    if document:
        told = document["problem"] or f"sha256 {document['digest'][:12]}"
        yield f"its description was looked at {ago(document['checked'], now)}: {told}"


def _repair(job: Job) -> dict[str, Any]:
    return {
        "job": job.id,
        "state": job.state,
        "created": job.created,
        "cause": str(job.request.get("cause", "")),
        "message": job.message,
        "result": job.result,
    }
