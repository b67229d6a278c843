"""Briefs for the authors of forge jobs: name, parent server and similar tools, fixed when the job
begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from operator import itemgetter

from forge.addresses import find_locations
from forge.drafts.assemble import DESCRIBED, choose_name
from forge.drafts.brief import MAX_NEAR, Brief, NearTool
from forge.drafts.gains import format_reference
from forge.text import sanitize_line
from orchestrator.errors import ForgeFailed
from orchestrator.forging.authors.choice import WRITERS
from orchestrator.forging.drafts.compose import ParentServer
from orchestrator.forging.order import NO_SOURCE, ForgeOrder
from registry.errors import RowNotFound
from registry.jobs.pending import PendingForge, SimilarTool, read_pending
from registry.models import Entry, Job, ToolMatch
from registry.search.words import measure_likeness
from registry.servers.bundles import Bundles
from registry.store import Store

NEAR = 0.5
"""The score from which on a registered tool may well do the task already."""
ALIKE = 0.6
"""So much the same the task is as a tool's description, or as its server's, that it may do it."""
LIKELY = 0.28
"""From this probability on the first match may well do the task (best F1 on public tasks)."""
SOUGHT = 50


@dataclass(frozen=True)
class Briefing:
    """Makes briefs of orders: with a name, the parent, and tools that may do the task already."""

    store: Store
    shelf: Bundles

    def prepare_brief(self, job: Job, order: ForgeOrder) -> tuple[ParentServer | None, Brief]:
        parent = self.load_parent(job, order)
        return parent, self._build_brief(job, order, parent)

    def pending(self, brief: Brief) -> PendingForge:
        """What of a brief is decided once for a job."""
        return PendingForge(
            name=brief.name,
            parent=format_reference(brief.parent) if brief.parent else "",
            near=tuple(SimilarTool(near.tool, near.description) for near in brief.near),
        )

    def _build_brief(self, job: Job, order: ForgeOrder, parent: ParentServer | None) -> Brief:
        """The brief of a job, with the name that it was given first."""
        kept = read_pending(job.result) or PendingForge()
        if kept.near is None:
            near = self._find_similar(order)
        else:
            near = tuple(NearTool(each.tool, each.description) for each in kept.near)
        return Brief(
            task=order.task,
            name=kept.name or self._choose_name(order),
            parent=parent.bundle if parent else None,
            parents_examples=parent.examples if parent else (),
            parents_suite=parent.suite if parent else "",
            near=near,
            addressed=order.source not in ("", NO_SOURCE) or bool(find_locations(order.task)),
        )

    def _choose_name(self, order: ForgeOrder) -> str:
        taken = {summary.name for summary in self.store.servers.find_summaries()}
        if order.name and order.name != order.parent and order.name in taken:
            raise ForgeFailed(_render_taken(order.name))
        return order.name or choose_name(order.task, order.parent, taken)

    def _find_similar(self, order: ForgeOrder) -> tuple[NearTool, ...]:
        route = self.store.route(order.task, SOUGHT)
        others = [match for match in route.matches if match.entry != order.parent]
        first = route.matches[:1] if route.probability >= LIKELY and not route.vetoes else ()
        return rank_similar(order.task, others, first)

    def load_parent(self, job: Job, order: ForgeOrder) -> ParentServer | None:
        """The parent as it was when the job was begun. Raises Unknown, BundleInvalid."""
        if not order.parent:
            return None
        kept = read_pending(job.result)
        entry = self._find_entry(order.parent, kept.parent if kept else "")
        bundle = self.shelf.load_bundle(entry)
        if bundle.launch is not None:
            raise ForgeFailed(f"{entry.name} is a third-party server, not ours to change.")
        shelf = self.shelf
        return ParentServer(bundle, shelf.load_examples(entry), shelf.load_registered_suite(entry))

    def _find_entry(self, name: str, told: str) -> Entry:
        if not told:
            return self.store.servers.get(name)
        digest = told.rpartition(":")[2]
        versions = self.store.servers.find_versions(name)
        found = next((entry for entry in versions if entry.digest == digest), None)
        if found is None:
            raise RowNotFound("version", told)
        return found

    def check_name_free(self, brief: Brief) -> None:
        """Raises ForgeFailed where the name is another's by now, or the parent not what it was."""
        try:
            entry = self.store.servers.get(brief.name)
        except RowNotFound:
            return
        if self._is_ours(entry, brief):
            return
        if brief.parent is None or not brief.is_next_version:
            raise ForgeFailed(_render_taken(brief.name))
        if entry.digest != brief.parent.compute_digest():
            raise ForgeFailed(
                f"{entry.name} is at version {entry.version} by now, and this draft changes "
                f"version {brief.parent.version}. `forge` again with parent={entry.name}."
            )

    def _is_ours(self, entry: Entry, brief: Brief) -> bool:
        """Whether an entry was registered for this very brief, by an attempt that then died."""
        made = self.shelf.load_bundle(entry).provenance
        return made.author in WRITERS and made.prompt_digest == brief.compute_digest()


def rank_similar(
    task: str, found: Iterable[ToolMatch], likely: Collection[ToolMatch] = ()
) -> tuple[NearTool, ...]:
    """Those that may well do a task already, of what the search found for it; the most like it
    first. Those that are `likely` do.
    """
    # A server that was written for a task has the beginning of that as its description.
    short = sanitize_line(task, DESCRIBED)
    near = []
    for match in found:
        told = f"{match.tool} {match.description}"
        alike = max(measure_likeness(short, match.entry_description), measure_likeness(task, told))
        if match.score >= NEAR or alike >= ALIKE or match in likely:
            near.append(
                (
                    -max(alike, match.score),
                    NearTool(f"{match.entry}.{match.tool}", match.description),
                )
            )
    return tuple(each for _, each in sorted(near, key=itemgetter(0))[:MAX_NEAR])


def _render_taken(name: str) -> str:
    return (
        f"there is a server {name} already. Choose another name. To change that server, give its "
        "name as the parent too (`--parent` at the terminal)."
    )
