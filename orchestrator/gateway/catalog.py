"""In-memory catalog of the registered servers, reloaded when the registry changes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.errors import UnknownTool
from orchestrator.gateway.composition import raise_classes
from registry.errors import RowNotFound
from registry.models import Entry
from registry.servers.bundles import Bundles
from registry.store import Store
from registry.trust import Standing
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.errors import BundleInvalid
from sandbox.schemas.validator import SchemaChecker


@dataclass(frozen=True)
class RegisteredServer:
    """A server with its bundle, its tools as people classified them, which `tools` has by name.

    `standing` may be one group of records behind; states never are. `earlier` is the version
    before where this one is on trial: it answers reads that this one fails. `checkers` are those of
    the tools' input schemas that were called, `secrets` those tools' arguments that are a secret.
    """

    entry: Entry
    bundle: Bundle
    standing: Standing
    tools: Mapping[str, ToolDefinition]
    earlier: Bundle | None = None
    checkers: dict[str, SchemaChecker] = field(default_factory=dict, compare=False, repr=False)
    secrets: dict[str, Mapping[tuple[str, ...], str]] = field(
        default_factory=dict, compare=False, repr=False
    )


class _LoadPath(threading.local):
    """The servers that this thread is at loading: each calls tools of the next."""

    def __init__(self) -> None:
        self.servers: set[str] = set()


class Catalog:
    """Servers by name. In any thread: tasks look servers up beside the event loop."""

    def __init__(self, store: Store, shelf: Bundles, signed_policy: SignedPolicy) -> None:
        self._store, self._shelf, self._signed_policy = store, shelf, signed_policy
        self._members: dict[str, RegisteredServer] = {}
        """Replaced when the catalogue changes, so that what was begun before is not kept after."""
        self._loading = _LoadPath()

    def find_server(self, server: str, tool: str) -> RegisteredServer:
        """The server that has this tool. Raises UnknownTool, BundleInvalid."""
        try:
            member = self._members.get(server) or self._load_server(server)
        except RowNotFound as error:
            raise UnknownTool(f"{server}.{tool}") from error
        if tool not in member.tools:
            raise UnknownTool(f"{server}.{tool}")
        return member

    def find_tool(self, server: str, tool: str) -> ToolDefinition:
        """A tool as it counts. Raises UnknownTool, BundleInvalid."""
        return self.find_server(server, tool).tools[tool]

    def get_server(self, server: str) -> RegisteredServer:
        """The server of that name. Raises Unknown, BundleInvalid."""
        return self._members.get(server) or self._load_server(server)

    def update_standing(self, server: str, standing: Standing) -> None:
        """Take over what recording a call said of its server."""
        members = self._members
        member = members.get(server)
        if member:
            members[server] = replace(member, standing=standing)

    def forget_servers(self) -> None:
        """The catalogue changed: load anew what is asked for."""
        self._members = {}

    def is_on_trial(self, server: str) -> bool:
        """Whether the server's version, as it is called here, is on trial."""
        member = self._members.get(server)
        return member is not None and member.earlier is not None

    def _load_earlier(self, entry: Entry) -> Bundle | None:
        trial = self._store.canaries.get(entry.name)
        if trial is None or trial.ended is not None or trial.version != entry.version:
            return None
        for version in self._store.servers.find_versions(entry.name):
            if version.version == trial.previous:
                try:
                    self._signed_policy.check_version(version)
                    return self._signed_policy.classify_bundle(self._shelf.load_bundle(version))
                except BundleInvalid:
                    return None
        return None

    def _load_entry(self, server: str) -> Entry:
        """The current version, as the audit has it. Raises RowNotFound, BundleInvalid."""
        try:
            return self._signed_policy.check_entry(self._store.servers.get(server))
        except BundleInvalid:
            # A version may have been published between the two looks.
            return self._signed_policy.check_entry(self._store.servers.get(server))

    def _load_server(self, server: str) -> RegisteredServer:
        members, path = self._members, self._loading.servers
        entry = self._load_entry(server)
        bundle = self._signed_policy.classify_bundle(self._shelf.load_bundle(entry))
        is_whole = server not in path  # Those that call each other in a circle do not run.
        if is_whole:
            path.add(server)
            try:
                bundle = raise_classes(bundle, self.find_tool)
            finally:
                path.discard(server)
        tools = {tool.name: tool for tool in bundle.tools}
        standing = self._store.standings.get(server)
        member = RegisteredServer(entry, bundle, standing, tools, self._load_earlier(entry))
        if is_whole:
            members[server] = member
        return member
