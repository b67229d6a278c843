"""The registered servers as calls need them, kept in memory while the catalogue stays the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.clearance import Clearance
from orchestrator.errors import UnknownTool
from orchestrator.shelf import Shelf
from registry.errors import Unknown
from registry.records import Entry
from registry.store import Store
from registry.trust import Standing
from sandbox.bundle import Bundle


@dataclass(frozen=True)
class Member:
    """A server with its bundle, its tools as people classified them.

    `standing` may be one group of records behind; states never are.
    """

    entry: Entry
    bundle: Bundle
    standing: Standing


class Roster:
    def __init__(self, store: Store, shelf: Shelf, clearance: Clearance) -> None:
        self._store, self._shelf, self._clearance = store, shelf, clearance
        self._members: dict[str, Member] = {}

    def find(self, server: str, tool: str) -> Member:
        """The server that has this tool. Raises UnknownTool, BundleInvalid."""
        member = self._members.get(server) or self._loaded(server, tool)
        try:
            member.bundle.tool(tool)
        except KeyError as error:
            raise UnknownTool(f"{server}.{tool}") from error
        return member

    def update(self, server: str, standing: Standing) -> None:
        """Take over what recording a call said of its server."""
        member = self._members.get(server)
        if member:
            self._members[server] = replace(member, standing=standing)

    def forget(self) -> None:
        """The catalogue changed: load anew what is asked for."""
        self._members.clear()

    def _loaded(self, server: str, tool: str) -> Member:
        try:
            entry = self._store.entry(server)
        except Unknown as error:
            raise UnknownTool(f"{server}.{tool}") from error
        bundle = self._clearance.classified(self._shelf.bundle(entry))
        member = Member(entry, bundle, self._store.standing(server))
        self._members[server] = member
        return member
