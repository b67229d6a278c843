"""Versions of a server: finding, comparing and rolling back."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from forge.drafts.gains import format_reference, list_gains
from orchestrator.errors import OrchestratorError
from registry.errors import RowNotFound
from registry.models import Entry, EntryState, build_entry
from registry.servers.bundles import Bundles
from registry.servers.entries import ServerTable
from registry.store import Store
from sandbox.bundle.model import Bundle, render_files
from sandbox.sanitize import clean_text

MAX_LINES = 2_000


@dataclass(frozen=True)
class RollbackPlan:
    """Going back: from the current version to an earlier one, as a new version with its content.

    `gains` are what that may do which the current one may not.
    """

    current: Entry
    target: Entry
    bundle: Bundle
    gains: tuple[str, ...]


def find_version(servers: ServerTable, name: str, version: int | None) -> Entry:
    """A version of a server, by default the current one. Raises Unknown."""
    if version is None:
        return servers.get(name)
    for entry in servers.find_versions(name):
        if entry.version == version:
            return entry
    raise RowNotFound("version", f"{name} {version}")


def find_previous_version(servers: ServerTable, name: str, version: int) -> int | None:
    """The version that came before one; None where it is the first."""
    return max(
        (e.version for e in servers.find_versions(name) if e.version < version), default=None
    )


def plan_rollback(
    servers: ServerTable, shelf: Bundles, name: str, version: int | None
) -> RollbackPlan:
    """What going back comes to; without a version, to the one before the current. Changes nothing.

    Raises Unknown, BundleInvalid, OrchestratorError where there is nothing to go back to.
    """
    current = servers.get(name)
    wanted = find_previous_version(servers, name, current.version) if version is None else version
    if wanted is None:
        raise OrchestratorError(f"{name} has one version only; there is none to go back to.")
    if wanted == current.version:
        raise OrchestratorError(f"{name} is at version {wanted} already.")
    target = find_version(servers, name, wanted)
    now, earlier = shelf.load_bundle(current), shelf.load_bundle(target)
    if now.launch is not None or earlier.launch is not None:
        raise OrchestratorError(f"{name} is a third-party server: `toolwright add` it again.")
    newest = max(entry.version for entry in servers.find_versions(name))
    made = replace(earlier.provenance, parent=format_reference(earlier))
    bundle = replace(earlier, version=newest + 1, provenance=made)
    return RollbackPlan(current, target, bundle, list_gains(earlier, now))


def roll_back(
    store: Store, shelf: Bundles, plan: RollbackPlan, by: str, reason: str, now: float
) -> Entry:
    """Register the earlier version's content again, with the proofs and cases that it had.

    Raises RegistryError, DiskUnusable; the current version stays then.
    """
    name, target = plan.bundle.name, plan.target
    reports = store.servers.get_reports(name, target.version)
    failed = any(not report.passed for report in reports)
    state: EntryState = "experimental" if failed else "active"
    entry = replace(build_entry(plan.bundle, now, state=state), source=target.source)
    published = shelf.publish_bundle(
        plan.bundle,
        entry,
        reports,
        None,
        shelf.load_examples(target),
        shelf.load_registered_cases(target),
        shelf.load_registered_suite(target),
    )
    payload = {
        "from": plan.current.version,
        "to": target.version,
        "as": published.version,
        "by": by,
        "reason": clean_text(reason)[:2000],
        "state": state,
    }
    store.audit.add_note("rollback", name, payload, now)
    store.canaries.end_trial(name, f"rolled back by {by}", now)
    return published


def diff_versions(old: Bundle, new: Bundle) -> Iterator[str]:
    """A unified diff of two versions' files, with what the new one may do beyond the old on top."""
    for gain in list_gains(new, old):
        yield f"# may do more: {gain}"
    before_, after = render_files(old), render_files(new)
    lines = 0
    for name in sorted({*before_, *after}):
        texts = [files.get(name, b"").decode("utf-8", "replace") for files in (before_, after)]
        for line in difflib.unified_diff(
            texts[0].splitlines(),
            texts[1].splitlines(),
            f"{name} version {old.version}",
            f"{name} version {new.version}",
            lineterm="",
        ):
            lines += 1
            if lines > MAX_LINES:
                yield f"# cut after {MAX_LINES} lines"
                return
            yield line[:2000]
