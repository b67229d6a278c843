"""Bundles that people edit or drop in: noticed, proved like any other, published or left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from orchestrator.errors import OrchestratorError
from orchestrator.forging import Forge
from registry.catalogue import directory
from registry.errors import RegistryError, Unknown
from registry.store import Store
from sandbox.bundle import FILES, NAME, Bundle, files_digest, read_bundle
from sandbox.errors import SandboxError

log = structlog.get_logger()

Signature = tuple[tuple[int, int], ...]


@dataclass
class Edits:
    """Looks through the servers' directories. An edit is taken up once its files are at rest, so
    that a half-saved one is not; one that fails is not tried again before it changes.
    """

    home: Path
    store: Store
    forge: Forge
    _seen: dict[str, Signature] = field(default_factory=dict)
    _tried: dict[str, Signature] = field(default_factory=dict)

    async def take_up(self) -> None:
        """Prove and publish what has changed since the last look and is at rest."""
        for name, signature in await asyncio.to_thread(lambda: tuple(self._signatures())):
            at_rest = self._seen.get(name) == signature
            self._seen[name] = signature
            if at_rest and self._tried.get(name) != signature:
                self._tried[name] = signature
                await self._tried_out(name)

    def _signatures(self) -> Iterator[tuple[str, Signature]]:
        servers = self.home / "servers"
        for place in sorted(servers.iterdir()) if servers.is_dir() else ():
            if NAME.match(place.name) and not place.is_symlink():
                yield place.name, tuple(map(_stamp, (place / file for file in FILES)))

    async def _tried_out(self, name: str) -> None:
        try:
            bundle = await asyncio.to_thread(self._changed, name)
            if bundle is not None:
                examples = await asyncio.to_thread(self.forge.shelf.edited_examples, name)
                forged = await self.forge.adopt(bundle, lambda step: None, examples)
                log.info("edit published", server=name, version=forged.entry.version)
        except (SandboxError, OrchestratorError, RegistryError) as error:
            log.warning("edit refused", server=name, reason=str(error))
            payload = {"reason": str(error)[:2000]}
            self.store.note("edit.refused", name, payload, self.forge.now())

    def _changed(self, name: str) -> Bundle | None:
        """The directory's bundle if it is not the registered one. Raises BundleInvalid."""
        try:
            registered = self.store.entry(name)
        except Unknown:
            registered = None
        place = directory(self.home, name)
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
    except FileNotFoundError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
