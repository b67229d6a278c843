"""What each tool of a server counts as, for lists and pages."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.clearance import Clearance
from orchestrator.pin import authority
from orchestrator.settings import Settings
from orchestrator.shelf import Shelf
from registry.overrides import Level, level_of
from registry.records import Entry
from registry.store import Store
from sandbox.errors import BundleInvalid


def levels(settings: Settings, store: Store, entry: Entry) -> Mapping[str, Level]:
    """By tool, what it counts as: as people classified it, else as its server says.

    Where the server's files cannot be read, as they said when they were registered.
    """
    try:
        bundle = Shelf(settings.home, store).bundle(entry)
    except BundleInvalid:
        return {tool.name: _registered(tool.access, tool.destructive) for tool in entry.tools}
    classified = Clearance(store, authority(settings)).classified(bundle)
    return {tool.name: level_of(tool) for tool in classified.tools}


def _registered(access: str, destructive: bool) -> Level:
    if access == "read":
        return "read"
    return "destructive" if destructive else "write"
