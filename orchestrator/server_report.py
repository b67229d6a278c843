"""A server's health for display: failures, repairs, trial version, drift, learned paces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.approvals.dates import format_age
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.settings import Settings
from registry.health.canary import CanaryTrial
from registry.health.causes import Cause, find_cause
from registry.models import Entry, Invocation, Job
from registry.servers.bundles import Bundles
from registry.servers.classifications import Level, get_level
from registry.servers.entries import ServerTable
from registry.servers.files import check_entry
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.errors import BundleInvalid

LOOKED_AT = 50
SHOWN = 12
"""Things learned that are shown to people."""


def encode_health(store: Store, entry: Entry, bundle: Bundle | None, now: float) -> dict[str, Any]:
    """A server's health as JSON. `bundle` is its current one, None where it cannot be read."""
    calls = store.calls.find(entry.name, LOOKED_AT)
    causes = [cause for call in calls if (cause := find_own_cause(call, bundle)) is not None]
    watched = store.descriptions.get(entry.source)
    trial = store.canaries.get(entry.name)
    return {
        "causes": dict(Counter(cause.kind for cause in causes)),
        "last_cause": causes[0].text if causes else "",
        "drifting": store.repairs.count_drift(entry.name, entry.version),
        "repairs": [_encode_repair(job) for job in store.repairs.find(entry.name, now)],
        "trial": trial and encode_trial(trial),
        "learned": [*map(str, bundle.paces), *map(str, bundle.widened)] if bundle else [],
        "document": watched and vars(watched),
    }


def describe_edit(home: Path, servers: ServerTable, entry: Entry) -> str:
    """That a server's files are not those of its version, and what becomes of that; "" where they
    are. Reads the files.
    """
    found = check_entry(home, entry)
    if found is None:
        return ""
    told = {
        "changed": "were changed",
        "missing": "are gone",
        "unreadable": f"cannot be read ({found.detail})",
    }.get(found.kind, found.detail)
    refused = servers.get_last_refusal(entry)
    then = (
        f"The last try of a change was refused: {refused}"
        if refused
        else "`toolwright serve` tries a change while it runs."
    )
    return f"Its files {told}; version {entry.version} as it was proved is in use. {then}"


def find_own_cause(call: Invocation, bundle: Bundle | None) -> Cause | None:
    """The cause of a call's failure, by its tool's definition where the bundle is of the version
    that was called: whether a refused request was the caller's or the code's, only that says.
    """
    same = bundle is not None and bundle.version == call.version
    tools = {tool.name: tool for tool in bundle.tools} if bundle and same else {}
    return find_cause(call, tools.get(call.tool))


def encode_trial(trial: CanaryTrial) -> dict[str, Any]:
    return {**vars(trial), "new": vars(trial.new), "old": vars(trial.old)}


def render_health(health: Mapping[str, Any], now: float) -> Iterator[str]:
    """Lines for people about a server's health, given as JSON; there may be none."""
    if health["causes"]:
        counted = ", ".join(f"{kind} {count}" for kind, count in health["causes"].items())
        yield f"failures of the last {LOOKED_AT} calls: {counted}; the last: {health['last_cause']}"
    for tool, count in health["drifting"].items():
        yield f"{tool} was answered {count} times with something undocumented"
    for repair in health["repairs"]:
        yield (
            f"repair {repair['job']} {repair['state']} {format_age(repair['created'], now)}: "
            f"{repair['message'] or repair['cause']}"
        )
    trial = health["trial"]
    if trial and trial["ended"] is None:
        yield f"version {trial['version']} is on trial beside version {trial['previous']}"
    learned = health["learned"]
    yield from (f"learned: {each}" for each in learned[:SHOWN])
    if len(learned) > SHOWN:
        yield f"learned: {len(learned) - SHOWN} more, which --json lists"
    document = health["document"]
    if document:
        told = document["problem"] or f"sha256 {document['digest'][:12]}"
        yield f"its description was looked at {format_age(document['checked'], now)}: {told}"


def _encode_repair(job: Job) -> dict[str, Any]:
    return {
        "job": job.id,
        "state": job.state,
        "created": job.created,
        "cause": str(job.request.get("cause", "")),
        "message": job.message,
        "result": job.result,
    }


def find_levels(settings: Settings, store: Store, entry: Entry) -> Mapping[str, Level]:
    """The effective level of each tool: as people classified it, else as its server declares it.

    Where the server's files cannot be read, the level that was registered.
    """
    try:
        bundle = Bundles(settings.home, store.servers).load_bundle(entry)
    except BundleInvalid:
        return {tool.name: _derive_level(tool.access, tool.destructive) for tool in entry.tools}
    classified = SignedPolicy(store, build_authority(settings)).classify_bundle(bundle)
    return {tool.name: get_level(tool) for tool in classified.tools}


def _derive_level(access: str, destructive: bool) -> Level:
    if access == "read":
        return "read"
    return "destructive" if destructive else "write"
