"""Suggestions for a task: the registered tools that fit it, and how far each is trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from forge.text import shorten_text
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.errors import UnknownTool
from orchestrator.gateway.catalog import Catalog
from registry.models import LEAST_SHOWN, Route, ToolMatch
from registry.servers.quarantine import explain_archive, explain_quarantine
from registry.store import Store
from registry.trust import Standing
from sandbox import exactjson
from sandbox.bundle.apispec import Access
from sandbox.errors import BundleInvalid

MOST_READ = 1_000
"""Of so many listings the schemas are kept: the same tools are found again and again."""
MAX_DESCRIPTION = 2_000
"""Letters of a description that are told: a third-party server's may have as many as it likes."""
SCHEMA_LETTERS = 64_000
"""Of the schemas of one answer. The best match has its own in any case."""


@dataclass(frozen=True)
class Suggestion:
    """A tool that fits a task. `access` is what it counts as, `standing` its server's."""

    match: ToolMatch
    standing: Standing
    access: Access

    def to_json(self) -> dict[str, Any]:
        """The suggestion as clients see it, and as a task run's job keeps it."""
        match = self.match
        return {
            "tool": f"{match.entry}.{match.tool}",
            "call_with": "call_read" if self.access == "read" else "call_write",
            "description": shorten_text(match.description, MAX_DESCRIPTION),
            "server": match.title,
            "group": match.group,
            "similarity": round(match.score, 4),
            "trust": self.standing.level,
            "reliability": self.standing.score,
            "inputSchema": _read_input_schema(match.listed)[0],
        }

    def count_letters(self) -> int:
        """The letters of its input schema as JSON."""
        return _read_input_schema(self.match.listed)[1]


@dataclass(frozen=True)
class Routed:
    """Where a task may go: what the search says of it, its matches as suggestions, those that are
    `quarantined`, by name with why and what lifts it, and where nothing fits what would of servers
    out of use (`resting`).
    """

    route: Route
    found: tuple[Suggestion, ...]
    quarantined: Mapping[str, str] = field(default_factory=dict)
    resting: tuple[str, ...] = ()

    def drop_unlike(self) -> Routed:
        """Without those whose likeness to the task is none when it is shown."""
        kept = tuple(each for each in self.found if each.match.score >= LEAST_SHOWN)
        return replace(self, found=kept)

    def to_json(self) -> dict[str, Any]:
        """The answer as clients see it. `probability` is that of the first being right."""
        told: dict[str, Any] = {
            "candidates": [*_encode_candidates(self.found)],
            "none": "forge",
            "verdict": self.route.verdict,
            "probability": round(self.route.probability, 2),
        }
        if self.quarantined:
            told["quarantined"] = [
                {"tool": name, "why": why} for name, why in self.quarantined.items()
            ]
        if self.resting:
            told["out_of_use"] = list(self.resting)
        return {**told, "vetoes": list(self.route.vetoes)} if self.route.vetoes else told


@dataclass(frozen=True)
class Suggestions:
    """Finds tools for a task among the registered servers."""

    store: Store
    roster: Catalog
    policy: SignedPolicy

    def find(self, task: str, k: int) -> Sequence[Suggestion]:
        """The tools that fit a task, at most `k`, best first."""
        return self.route(task, k).found

    def route(self, task: str, k: int) -> Routed:
        """Where a task may go, with the tools that fit it, at most `k`, best first."""
        route = self.store.route(task, k)
        return Routed(
            route,
            tuple(self.suggest(route.matches)),
            find_quarantined(self.store, task, k),
            describe_resting(self.store, task) if route.verdict == "forge" else (),
        )

    def suggest(self, matches: Sequence[ToolMatch]) -> Iterator[Suggestion]:
        """The tools as they count. Those whose row cannot be read, or went, are left out."""
        servers = {match.entry for match in matches if match.listed}
        standings = self.store.standings.find_by_server(servers)
        classified = self.policy.find_classified(servers)
        for match in matches:
            if match.listed and match.entry in standings:
                is_sure = match.self_evident and match.entry not in classified
                access = match.access if is_sure else self._find_access(match)
                yield Suggestion(match, standings[match.entry], access)

    def _find_access(self, match: ToolMatch) -> Access:
        """As the catalog has it, which reads its server's files; as it was registered where they
        cannot be read, or the catalog does not know of it yet.
        """
        try:
            return self.roster.find_tool(match.entry, match.tool).access
        except (UnknownTool, BundleInvalid):
            return match.access


def _encode_candidates(found: Sequence[Suggestion]) -> Iterator[dict[str, Any]]:
    """The suggestions as clients see them, without the schemas that there is no room for."""
    room = SCHEMA_LETTERS
    for number, each in enumerate(found):
        told = each.to_json()
        room -= each.count_letters()
        if number and room < 0:
            del told["inputSchema"]
            told["left_out"] = f"inputSchema: `find` has it with the task {told['tool']} and k=1"
        yield told


@lru_cache(MOST_READ)
def _read_input_schema(listed: str) -> tuple[Any, int]:
    """The input schema of a tool's listing, which nobody changes, and its letters as JSON."""
    schema = exactjson.loads(listed.encode())["inputSchema"]
    return schema, len(exactjson.dumps(schema))


def find_quarantined(store: Store, task: str, k: int) -> dict[str, str]:
    """The tools of quarantined servers that fit a task, by name (`server.tool`), best first; each
    with why it is quarantined and what lifts that.
    """
    matches = store.search.find_quarantined(task, k)
    why = {match.entry: explain_quarantine(store.servers, match.entry) for match in matches}
    return {f"{match.entry}.{match.tool}": why[match.entry] for match in matches}


def describe_resting(store: Store, task: str) -> tuple[str, ...]:
    """A line for each tool that would fit a task if its server were in use, with what puts it
    back.
    """
    return tuple(_describe_resting(store, match) for match in store.search.find_resting(task))


def _describe_resting(store: Store, match: ToolMatch) -> str:
    tool, entry = f"{match.entry}.{match.tool}", store.servers.get(match.entry)
    if match.state == "archived":
        return f"{tool} fits and is archived: {explain_archive(entry)}."
    return f"{tool} fits and is {explain_quarantine(store.servers, match.entry)}"
