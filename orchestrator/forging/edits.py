"""Bundles that people edit or drop in: noticed, proved like any other, published or left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from forge.errors import ForgeError
from orchestrator.composition import Find, composition_findings
from orchestrator.errors import CallsAmiss, ForgeFailed, ForgeWaits, OrchestratorError
from orchestrator.forging import Forge
from orchestrator.shelf import SUITE
from registry.catalogue import TESTS, directory
from registry.errors import RegistryError, Unknown
from registry.records import CALLABLE, EntryState
from registry.store import Store
from sandbox import example, recordedcase
from sandbox.bundle import FILES, NAME, Bundle, files_digest, read_bundle
from sandbox.errors import NO_ENGINE, BundleInvalid, Frozen, SandboxError
from sandbox.example import Example

log = structlog.get_logger()

Signature = tuple[tuple[int, int], ...]

WATCHED = (*FILES, *(f"{TESTS}/{name}" for name in (example.FILE, SUITE, recordedcase.FILE)))
GONE_LOOKS = 3
"""So often in a row a directory has to be gone: version control takes some away for a moment."""
SETTLED_LOOKS = 10
"""So long after directories came or went, files and rows are compared."""
BY, GONE = "files", "its directory is gone"
QUARANTINED: EntryState = "quarantined"
PASSING = (Frozen, *NO_ENGINE, ForgeWaits, CallsAmiss)
"""What keeps an edit from being proved, and says nothing about it."""
REFUSED = (SandboxError, OrchestratorError, RegistryError, ForgeError, OSError)


@dataclass
class Edits:
    """Looks through the servers' directories. An edit is taken up once its files are at rest, so
    that a half-saved one is not; one that fails is not tried again before it changes. A server
    whose directory is gone for a while is archived, and in use again when it is back. What is wrong
    with one directory is told, and keeps no other from being looked at.
    """

    home: Path
    store: Store
    forge: Forge
    tool_of: Find
    _seen: dict[str, Signature] = field(default_factory=dict)
    _tried: dict[str, Signature] = field(default_factory=dict)
    _handled: dict[str, Signature] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)
    _absent: dict[str, int] = field(default_factory=dict)
    _present: frozenset[str] = frozenset()
    _looks: int = 0

    async def take_up(self) -> None:
        """Prove and publish what has changed since the last look and is at rest."""
        found = await asyncio.to_thread(lambda: tuple(self._signatures()))
        for name, signature in found:
            at_rest = self._seen.get(name) == signature
            self._seen[name] = signature
            if at_rest and self._tried.get(name) != signature:
                self._tried[name] = signature
                await self._tried_out(name)
        present = frozenset(name for name, _ in found)
        self._looks = self._looks + 1 if present == self._present else 0
        self._present = present
        if self._looks <= SETTLED_LOOKS and (self.home / "servers").is_dir():
            await asyncio.to_thread(self._reconcile, present)

    def _signatures(self) -> Iterator[tuple[str, Signature]]:
        servers = self.home / "servers"
        for place in sorted(servers.iterdir()) if servers.is_dir() else ():
            if NAME.match(place.name) and not place.is_symlink() and place.is_dir():
                yield place.name, tuple(map(_stamp, (place / file for file in WATCHED)))

    async def _tried_out(self, name: str) -> None:
        try:
            await self._adopted(name)
        except PASSING as error:
            # Nothing is wrong with the edit: it is tried again as soon as it may be.
            self._tried.pop(name, None)
            self._tell(name, str(error))
        except REFUSED as error:
            self._tell(name, str(error))
        else:
            self._told.pop(name, None)

    async def _adopted(self, name: str) -> None:
        before, now = self._handled.get(name, ()), self._seen[name]
        self._handled[name] = now
        edge = len(FILES)
        only_tests = before[:edge] == now[:edge] and before != now
        examples = await asyncio.to_thread(self.forge.shelf.edited_examples, name)
        bundle = await asyncio.to_thread(self._changed, name)
        if bundle is not None:
            if wrong := composition_findings(bundle, self.tool_of):
                told = "; ".join(f"{finding.where}: {finding.reason}" for finding in wrong)
                raise CallsAmiss(f"{name} cannot call what it declares to: {told}.")
            forged = await self.forge.adopt(bundle, lambda step: None, examples)
            log.info("edit published", server=name, version=forged.entry.version)
        elif only_tests:
            await self._proved_again(name, examples)

    async def _proved_again(self, name: str, examples: Sequence[Example]) -> None:
        """Try the tests that were changed on the version that is in use. Raises ForgeFailed."""
        entry = self.store.entry(name)
        bundle = await asyncio.to_thread(self.forge.shelf.bundle, entry)
        proof = await self.forge.proof(bundle, lambda step: None, {}, examples or None)
        if not proof.passed:
            raise ForgeFailed(f"{name} fails its tests as they were changed; it stays as it is.")
        self.store.note("tests.passed", name, {"version": entry.version}, self.forge.now())

    def _tell(self, name: str, reason: str) -> None:
        """Say what is wrong, once."""
        if self._told.get(name) == reason:
            return
        self._told[name] = reason
        log.warning("edit refused", server=name, reason=reason)
        self.store.note("edit.refused", name, {"reason": reason[:2000]}, self.forge.now())

    def _reconcile(self, present: Set[str]) -> None:
        """Archive servers whose directories are gone; take those into use whose are back."""
        for name in set(self._absent) & present:
            del self._absent[name]
        for name in {*self._seen} - present:
            for known in (self._seen, self._tried, self._handled, self._told):
                known.pop(name, None)
        for entry in self.store.summaries():
            if entry.name not in present and entry.state != "archived":
                self._absent[entry.name] = self._absent.get(entry.name, 0) + 1
                if self._absent[entry.name] == GONE_LOOKS:
                    self.store.archive(entry.name, self.forge.now(), BY, f"{GONE} ({entry.state})")
                    log.warning("server archived: its directory is gone", server=entry.name)
            elif entry.name in present and entry.state == "archived":
                self._revive(entry.name)

    def _revive(self, name: str) -> None:
        """Take a server into use again whose files are back as they were registered, if it was
        archived for their absence.
        """
        said = self.store.last_state(name)
        if said.get("by") != BY or not str(said.get("reason", "")).startswith(GONE):
            return
        try:
            unchanged = files_digest(directory(self.home, name)) == self.store.entry(name).digest
        except (BundleInvalid, OSError):
            return
        if unchanged:
            earlier = str(said["reason"]).rpartition("(")[2].rstrip(")")
            state: EntryState = "active"
            for known in (*CALLABLE, QUARANTINED):
                state = known if earlier == known else state
            self.store.set_state(name, state, self.forge.now(), BY, "its directory is back")

    def _changed(self, name: str) -> Bundle | None:
        """The directory's bundle if it is not the registered one. Raises BundleInvalid."""
        try:
            registered = self.store.entry(name)
        except Unknown:
            registered = None
        place = directory(self.home, name)
        if registered is None and not (place / "bundle.toml").exists():
            return None
        if registered is not None and files_digest(place) == registered.digest:
            return None
        bundle = read_bundle(place)
        if registered is not None and bundle.digest() == registered.digest:
            return None
        if bundle.name != name:
            raise OrchestratorError(f"{name}: bundle.toml names {bundle.name}; rename one of them.")
        if bundle.launch is not None:
            # What is started and what it may reach was decided by a person, not by a file.
            raise OrchestratorError(f"{name} is no server of ours. `toolwright add` registers it.")
        made = replace(bundle.provenance, author="person", model="", prompt_digest="")
        if registered is not None:
            before = f"{name}@{registered.version}:{registered.digest}"
            made = replace(made, parent=before)
        return replace(bundle, provenance=made)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.lstat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
