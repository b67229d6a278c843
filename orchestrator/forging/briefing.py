"""What a forge job's author is told, and what of it stays as it was when the job began."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from forge.brief import MAX_NEAR, Brief, Near
from forge.mutation import DESCRIBED, name_for, reference
from forge.prose import visible
from orchestrator.authorship import WRITERS
from orchestrator.composing import Parent
from orchestrator.errors import ForgeFailed
from orchestrator.orders import Order
from orchestrator.shelf import Shelf
from registry.errors import Unknown
from registry.records import Entry, Job, Match
from registry.store import Store
from registry.wording import likeness

NEAR = 0.5
"""The score from which on a registered tool may well do the task already."""
ALIKE = 0.6
"""So much the same the task is as a tool's description, or as its server's, that it may do it."""
SOUGHT = 50


@dataclass(frozen=True)
class Briefing:
    """Makes briefs of orders: with a name, the parent, and tools that may do the task already."""

    store: Store
    shelf: Shelf

    def begun(self, job: Job, order: Order) -> tuple[Parent | None, Brief]:
        parent = self.parent(job, order)
        return parent, self._brief(job, order, parent)

    def told(self, brief: Brief) -> dict[str, Any]:
        """What of a brief is decided once for a job."""
        return {
            "name": brief.name,
            "parent": reference(brief.parent) if brief.parent else "",
            "near": [vars(near) for near in brief.near],
        }

    def _brief(self, job: Job, order: Order, parent: Parent | None) -> Brief:
        """The brief of a job, with the name that it was given first."""
        told = job.result if isinstance(job.result, dict) else {}
        near = tuple(Near(**near) for near in told["near"]) if "near" in told else self._near(order)
        return Brief(
            task=order.task,
            name=told.get("name") or self._name(order),
            parent=parent.bundle if parent else None,
            parents_examples=parent.examples if parent else (),
            parents_suite=parent.suite if parent else "",
            near=near,
        )

    def _name(self, order: Order) -> str:
        taken = {summary.name for summary in self.store.summaries()}
        if order.name and order.name != order.parent and order.name in taken:
            raise ForgeFailed(_taken(order.name))
        return order.name or name_for(order.task, order.parent, taken)

    def _near(self, order: Order) -> tuple[Near, ...]:
        found = self.store.search(order.task, SOUGHT)
        return near_to(order.task, [match for match in found if match.entry != order.parent])

    def parent(self, job: Job, order: Order) -> Parent | None:
        """The parent as it was when the job was begun. Raises Unknown, BundleInvalid."""
        if not order.parent:
            return None
        told = job.result.get("parent", "") if isinstance(job.result, dict) else ""
        entry = self._entry(order.parent, told)
        bundle = self.shelf.bundle(entry)
        if bundle.launch is not None:
            raise ForgeFailed(f"{entry.name} is a third-party server, not ours to change.")
        shelf = self.shelf
        return Parent(bundle, shelf.examples(entry), shelf.registered_suite(entry))

    def _entry(self, name: str, told: str) -> Entry:
        if not told:
            return self.store.entry(name)
        digest = told.rpartition(":")[2]
        versions = self.store.versions(name)
        found = next((entry for entry in versions if entry.digest == digest), None)
        if found is None:
            raise Unknown("version", told)
        return found

    def check_free(self, brief: Brief) -> None:
        """Raises ForgeFailed where the name is another's by now, or the parent not what it was."""
        try:
            entry = self.store.entry(brief.name)
        except Unknown:
            return
        if self._is_ours(entry, brief):
            return
        if brief.parent is None or not brief.versions:
            raise ForgeFailed(_taken(brief.name))
        if entry.digest != brief.parent.digest():
            raise ForgeFailed(
                f"{entry.name} is at version {entry.version} by now, and this draft changes "
                f"version {brief.parent.version}. `forge` again with parent={entry.name}."
            )

    def _is_ours(self, entry: Entry, brief: Brief) -> bool:
        """Whether an entry was registered for this very brief, by an attempt that then died."""
        made = self.shelf.bundle(entry).provenance
        return made.author in WRITERS and made.prompt_digest == brief.digest()


def near_to(task: str, found: Iterable[Match]) -> tuple[Near, ...]:
    """Those that may well do a task already, of what the search found for it; the most like it
    first.
    """
    # A server that was written for a task has the beginning of that as its description.
    short = visible(task, DESCRIBED)
    near = []
    for match in found:
        told = f"{match.tool} {match.description}"
        alike = max(likeness(short, match.entry_description), likeness(task, told))
        if match.score >= NEAR or alike >= ALIKE:
            near.append(
                (-max(alike, match.score), Near(f"{match.entry}.{match.tool}", match.description))
            )
    return tuple(each for _, each in sorted(near, key=itemgetter(0))[:MAX_NEAR])


def _taken(name: str) -> str:
    return (
        f"there is a server {name} already. `forge` with parent={name} and name={name} to change "
        "it, or choose another name."
    )
