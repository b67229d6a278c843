"""The registered servers as calls need them, kept in memory while the catalogue stays the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.clearance import Clearance
from orchestrator.composition import raised
from orchestrator.errors import UnknownTool
from orchestrator.shelf import Shelf
from registry.errors import Unknown
from registry.records import Entry
from registry.store import Store
from registry.trust import Standing
from sandbox.bundle import Bundle, ToolDefinition
from sandbox.errors import BundleInvalid


@dataclass(frozen=True)
class Member:
    """A server with its bundle, its tools as people classified them.

    `standing` may be one group of records behind; states never are. `earlier` is the version
    before where this one is on trial: it answers reads that this one fails.
    """

    entry: Entry
    bundle: Bundle
    standing: Standing
    earlier: Bundle | None = None


class Roster:
    def __init__(self, store: Store, shelf: Shelf, clearance: Clearance) -> None:
        self._store, self._shelf, self._clearance = store, shelf, clearance
        self._members: dict[str, Member] = {}
        self._loading: set[str] = set()

    def find(self, server: str, tool: str) -> Member:
        """The server that has this tool. Raises UnknownTool, BundleInvalid."""
        try:
            member = self.member(server)
            member.bundle.tool(tool)
        except (Unknown, KeyError) as error:
            raise UnknownTool(f"{server}.{tool}") from error
        return member

    def tool(self, server: str, tool: str) -> ToolDefinition:
        """A tool as it counts. Raises UnknownTool, BundleInvalid."""
        return self.find(server, tool).bundle.tool(tool)

    def member(self, server: str) -> Member:
        """The server of that name. Raises Unknown, BundleInvalid."""
        return self._members.get(server) or self._loaded(server)

    def update(self, server: str, standing: Standing) -> None:
        """Take over what recording a call said of its server."""
        member = self._members.get(server)
        if member:
            self._members[server] = replace(member, standing=standing)

    def forget(self) -> None:
        """The catalogue changed: load anew what is asked for."""
        self._members.clear()

    def on_trial(self, server: str) -> bool:
        """Whether the server's version, as it is called here, is on trial."""
        member = self._members.get(server)
        return member is not None and member.earlier is not None

    def _earlier(self, entry: Entry) -> Bundle | None:
        trial = self._store.trial(entry.name)
        if trial is None or trial.ended is not None or trial.version != entry.version:
            return None
        for version in self._store.versions(entry.name):
            if version.version == trial.previous:
                try:
                    return self._clearance.classified(self._shelf.bundle(version))
                except BundleInvalid:
                    return None
        return None

    def _loaded(self, server: str) -> Member:
        entry = self._store.entry(server)
        bundle = self._clearance.classified(self._shelf.bundle(entry))
        if server not in self._loading:  # Those that call each other in a circle do not run.
            self._loading.add(server)
            try:
                bundle = raised(bundle, self.tool)
            finally:
                self._loading.discard(server)
        member = Member(entry, bundle, self._store.standing(server), self._earlier(entry))
        self._members[server] = member
        return member
