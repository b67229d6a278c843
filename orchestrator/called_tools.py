"""The definitions of tools at the times of their calls, by which a failure's cause is told."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from registry.errors import RowNotFound
from registry.health.causes import Cause, find_cause
from registry.models import Invocation
from registry.servers.bundles import Bundles
from registry.servers.entries import ServerTable
from sandbox.bundle.model import ToolDefinition
from sandbox.errors import BundleInvalid


class CalledTools:
    """Reads each version that was called once, of a `shelf` where there is one. For one list or one
    answer.
    """

    def __init__(self, servers: ServerTable, shelf: Bundles | None) -> None:
        self._servers, self._shelf = servers, shelf
        self._versions: dict[tuple[str, int], Mapping[str, ToolDefinition]] = {}

    def find_cause(self, call: Invocation) -> Cause | None:
        """The cause of a call's failure (`registry.health.causes.find_cause`); by what is stored of
        it alone where its version is gone or its files cannot be read.
        """
        return find_cause(call, self.find_tool(call) if call.failure else None)

    def find_tool(self, call: Invocation) -> ToolDefinition | None:
        """The definition by which a call was made; None where its version is gone, or its files
        cannot be read.
        """
        version = (call.entry, call.version)
        if self._shelf is None:
            return None
        if version not in self._versions:
            tools: Mapping[str, ToolDefinition] = {}
            with suppress(RowNotFound, BundleInvalid):
                for entry in self._servers.find_versions(call.entry):
                    if entry.version == call.version:
                        tools = {each.name: each for each in self._shelf.load_bundle(entry).tools}
            self._versions[version] = tools
        return self._versions[version].get(call.tool)
