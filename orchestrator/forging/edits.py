"""Watches the servers' directories: edited or added bundles are proved and published, refused ones
are reported.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from forge.errors import ForgeError
from orchestrator.errors import CallsInvalid, ForgeFailed, ForgeWaits, OrchestratorError
from orchestrator.forging.secret_scan import SecretScan
from orchestrator.gateway.composition import Find, find_composition_problems
from registry.errors import InstallationUnderWay, RegistryError
from registry.models import CALLABLE, EntryState
from registry.servers.bundles import SUITE, Bundles
from registry.servers.entries import EDIT_REFUSED
from registry.servers.files import TESTS, get_server_directory, hold_settled
from registry.store import Store
from sandbox.bundle import example
from sandbox.bundle.example import Example
from sandbox.bundle.model import FILES, NAME, Bundle, compute_files_digest, read_bundle
from sandbox.errors import NO_ENGINE, BundleInvalid, Frozen, SandboxError
from sandbox.session import recorded_case

if TYPE_CHECKING:
    from orchestrator.forging.forge import Forge

log = structlog.get_logger()

Signature = tuple[tuple[int, int], ...]

WATCHED = (*FILES, *(f"{TESTS}/{name}" for name in (example.FILE, SUITE, recorded_case.FILE)))
LOOKED_AT_ONCE, READ_AT_ONCE = 100, 20
"""Servers whose files' times are compared in one look, and of which the files are then read."""
SETTLED_NS = 50_000_000
GONE_LOOKS = 3
"""So often in a row a directory has to be gone: version control takes some away for a moment."""
SETTLED_LOOKS = 10
"""So long after directories came or went, files and rows are compared."""
BY = "files"
PASSING = (Frozen, *NO_ENGINE, ForgeWaits, CallsInvalid)
"""What keeps an edit from being proved, and says nothing about it."""
REFUSED = (SandboxError, OrchestratorError, RegistryError, ForgeError, OSError)


@dataclass
class EditWatcher:
    """Looks through the servers' directories, some of them at a time where there are many.

    An edit is taken up once its files are at rest, so that a half-saved one is not; one that fails
    is not tried again before it changes. A server whose directory is gone for a while is archived,
    and in use again when it is back. What is wrong with one directory is told, and keeps no other
    from being looked at. `forge` is what proves them, asked for at the first edit.
    """

    home: Path
    store: Store
    shelf: Bundles
    forge: Callable[[], Forge]
    tool_of: Find
    scan: SecretScan = field(default_factory=SecretScan)
    now: Callable[[], float] = time.time
    _seen: dict[str, Signature] = field(default_factory=dict)
    _tried: dict[str, Signature] = field(default_factory=dict)
    _handled: dict[str, Signature] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)
    _absent: dict[str, int] = field(default_factory=dict)
    _present: frozenset[str] = frozenset()
    _looks: int = 0
    _listed: int = -1
    """When the directory of the servers was changed last, as far as `_names` are known."""
    _names: frozenset[str] = frozenset()
    _waiting: dict[str, None] = field(default_factory=dict)
    """Servers whose files are to be looked at again, longest waiting first."""
    _order: Sequence[str] = ()
    _next: int = 0
    """The place in `_order` from which the next look goes on."""

    async def publish_edits(self) -> None:
        """Prove and publish what has changed since the last look and is at rest."""
        present, found = await asyncio.to_thread(self._look_at_files)
        read = 0
        for name, signature in found:
            at_rest = self._seen.get(name) == signature
            self._seen[name] = signature
            self._waiting.pop(name, None)
            if at_rest and self._tried.get(name) == signature:
                continue
            self._waiting[name] = None
            if at_rest and read < READ_AT_ONCE:
                read += 1
                self._tried[name] = signature
                await self._try_edit(name)
        self._looks = self._looks + 1 if present == self._present else 0
        self._present = present
        if self._looks <= SETTLED_LOOKS and (self.home / "servers").is_dir():
            await asyncio.to_thread(self._reconcile_servers, present)

    def _look_at_files(self) -> tuple[frozenset[str], list[tuple[str, Signature]]]:
        """The servers' directories, and the files' times of those that are looked at now."""
        present = self._list_directories()
        chosen = self._choose_directories(present)
        return present, [(name, self._read_files(name)) for name in chosen]

    def _list_directories(self) -> frozenset[str]:
        """The names of the servers' directories; listed anew where any came or went."""
        servers = self.home / "servers"
        changed = servers.stat().st_mtime_ns if servers.is_dir() else 0
        if changed != self._listed:
            with os.scandir(servers) if changed else nullcontext(()) as found:
                names = (each.name for each in found if each.is_dir(follow_symlinks=False))
                self._names = frozenset(filter(NAME.match, names))
            # Of a change in this moment there may be another one with the same time.
            settled = time.time_ns() - changed > SETTLED_NS
            self._listed = changed if settled else -1
        return self._names

    def _choose_directories(self, present: Set[str]) -> Sequence[str]:
        """Those to look at now: what changed and was not taken up yet, and the next of all. So a
        look costs the same however many servers there are.
        """
        if present != self._present:
            self._waiting = {name: None for name in self._waiting if name in present}
            self._order = sorted(present)
        waiting = list(islice(self._waiting, LOOKED_AT_ONCE))
        room = min(max(LOOKED_AT_ONCE - len(waiting), READ_AT_ONCE), len(self._order))
        begin = self._next % max(len(self._order), 1)
        self._next = begin + room
        return tuple(dict.fromkeys([*waiting, *islice(cycle(self._order), begin, begin + room)]))

    def _read_files(self, name: str) -> Signature:
        place = self.home / "servers" / name
        return tuple(_stat_file(place / file) for file in WATCHED)

    async def _try_edit(self, name: str) -> None:
        handled = self._handled.get(name, ())
        try:
            await self._adopt_edit(name)
        except InstallationUnderWay:
            # A version's row is there before its files: compared now, they would look edited.
            self._tried.pop(name, None)
            self._handled[name] = handled
        except PASSING as error:
            # Nothing is wrong with the edit: it is tried again as soon as it may be.
            self._tried.pop(name, None)
            self._report_problem(name, str(error))
        except REFUSED as error:
            self._report_problem(name, str(error))
        else:
            self._told.pop(name, None)

    async def _adopt_edit(self, name: str) -> None:
        before, now = self._handled.get(name, ()), self._seen[name]
        self._handled[name] = now
        edge = len(FILES)
        only_tests = before[:edge] == now[:edge] and before != now
        examples = await asyncio.to_thread(self.shelf.load_edited_examples, name)
        bundle = await asyncio.to_thread(self._read_changed, name)
        if bundle is not None or only_tests:
            place = get_server_directory(self.home, name)
            await asyncio.to_thread(self.scan.check_files, place, WATCHED)
        if bundle is not None:
            if wrong := find_composition_problems(bundle, self.tool_of):
                told = "; ".join(f"{finding.where}: {finding.reason}" for finding in wrong)
                raise CallsInvalid(f"{name} cannot call what it declares to: {told}.")
            forge = await asyncio.to_thread(self.forge)
            forged = await forge.adopt_bundle(bundle, lambda step: None, examples)
            log.info("edit published", server=name, version=forged.entry.version)
        elif only_tests:
            await self._prove_tests(name, examples)

    async def _prove_tests(self, name: str, examples: Sequence[Example]) -> None:
        """Try the tests that were changed on the version that is in use. Raises ForgeFailed."""
        entry = self.store.servers.get(name)
        bundle = await asyncio.to_thread(self.shelf.load_bundle, entry)
        forge = await asyncio.to_thread(self.forge)
        proof = await forge.prove_bundle(bundle, lambda step: None, {}, examples or None)
        if not proof.passed:
            raise ForgeFailed(f"{name} fails its tests as they were changed; it stays as it is.")
        self.store.audit.add_note("tests.passed", name, {"version": entry.version}, self.now())

    def _report_problem(self, name: str, reason: str) -> None:
        """Say what is wrong, once."""
        if self._told.get(name) == reason:
            return
        self._told[name] = reason
        log.warning("edit refused", server=name, reason=reason)
        self.store.audit.add_note(EDIT_REFUSED, name, {"reason": reason[:2000]}, self.now())

    def _reconcile_servers(self, present: Set[str]) -> None:
        """Archive servers whose directories are gone; take those into use whose are back."""
        for name in set(self._absent) & present:
            del self._absent[name]
        for name in {*self._seen} - present:
            for known in (self._seen, self._tried, self._handled, self._told):
                known.pop(name, None)
        for name, state in self.store.servers.find_states().items():
            if name not in present and state != "archived":
                self._absent[name] = self._absent.get(name, 0) + 1
                if self._absent[name] == GONE_LOOKS and self._is_gone(name):
                    self.store.servers.archive(name, self.now(), BY, "its directory is gone")
                    log.warning("server archived: its directory is gone", server=name)
            elif name in present and state == "archived":
                self._revive_server(name)

    def _is_gone(self, name: str) -> bool:
        """Whether a server's directory is gone, and not only on its way: a version that is being
        installed, or whose installation a crash cut short, is put in place by a rename of its own.
        """
        try:
            with hold_settled(self.home, self.store.servers, name):
                return not get_server_directory(self.home, name).exists()
        except InstallationUnderWay:
            # Looked at once more.
            self._absent[name] -= 1
            return False

    def _revive_server(self, name: str) -> None:
        """Take a server into use again whose files are back as they were registered, if it was
        archived for their absence.
        """
        last = self.store.servers.get_last_state(name)
        if (last.get("by"), last.get("state")) != (BY, "archived"):
            return
        try:
            unchanged = (
                compute_files_digest(get_server_directory(self.home, name))
                == self.store.servers.get(name).digest
            )
        except (BundleInvalid, OSError):
            return
        if unchanged:
            states: tuple[EntryState, ...] = (*CALLABLE, "quarantined")
            state = next((each for each in states if each == last.get("before")), states[0])
            self.store.servers.set_state(name, state, self.now(), BY, "its directory is back")

    def _read_changed(self, name: str) -> Bundle | None:
        """The directory's bundle if it is not the registered one. Raises BundleInvalid,
        InstallationUnderWay.
        """
        with hold_settled(self.home, self.store.servers, name):
            return self._compare_files(name)

    def _compare_files(self, name: str) -> Bundle | None:
        registered = self.store.servers.find_current(name)
        place = get_server_directory(self.home, name)
        if registered is None and not (place / "bundle.toml").exists():
            return None
        version, digest = registered or (0, "")
        if registered is not None and compute_files_digest(place) == digest:
            return None
        bundle = read_bundle(place)
        if registered is not None and bundle.compute_digest() == digest:
            return None
        if bundle.name != name:
            raise OrchestratorError(f"{name}: bundle.toml names {bundle.name}; rename one of them.")
        if bundle.launch is not None:
            # What is started and what it may reach was decided by a person, not by a file.
            raise OrchestratorError(f"{name} is no server of ours. `toolwright add` registers it.")
        made = replace(bundle.provenance, author="person", model="", prompt_digest="")
        if registered is not None:
            made = replace(made, parent=f"{name}@{version}:{digest}")
        return replace(bundle, provenance=made)


def _stat_file(path: Path) -> tuple[int, int]:
    try:
        status = path.lstat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
