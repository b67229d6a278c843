"""Descriptions that change: looked at once a day, and compiled again before anybody notices."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from forge.errors import ForgeError
from forge.sources import Source as Place
from orchestrator.errors import OrchestratorError
from orchestrator.forging import Forge
from orchestrator.healing import Healing
from registry.errors import RegistryError
from registry.health import DAY, Watched
from registry.records import Entry
from registry.store import Store
from sandbox.bundle import Bundle, read_regular
from sandbox.errors import Frozen, SandboxError
from sandbox.exchange import Headers, first

UNUSABLE = (OrchestratorError, ForgeError, RegistryError, SandboxError, OSError)
MAX_VALIDATOR = 500

log = structlog.get_logger()


@dataclass(frozen=True)
class Drift:
    """Watches the descriptions that servers were compiled from. One look costs one request."""

    store: Store
    forge: Forge
    healing: Healing
    now: Callable[[], float] = time.time

    async def look(self, interval: float = DAY) -> str:
        """Look at one description whose last look is longer ago than `interval` seconds, and open
        a repair where its server would be another. The server's name, "" where none is due.
        """
        name = await asyncio.to_thread(self.store.due_watch, self.now(), interval)
        entry = await asyncio.to_thread(self.store.entry, name) if name else None
        if entry is None:
            return ""
        await self.look_at(entry, interval)
        return entry.name

    async def look_at(self, entry: Entry, interval: float = DAY) -> None:
        """Look at a server's description, unless that was done within `interval` seconds."""
        claimed = await asyncio.to_thread(
            self.store.claim_watch, entry.source, self.now(), interval
        )
        if claimed is not None:
            await self._looked(entry, claimed)

    async def _looked(self, entry: Entry, known: Watched) -> None:
        """Store what the description is now, and act where it says something else."""
        try:
            bundle = await asyncio.to_thread(self.forge.shelf.bundle, entry)
            seen = await self._seen(entry, known)
            before = known.digest or bundle.provenance.source_digest
            changed = seen.digest not in ("", before)
            self.store.keep_watch(seen, self.now(), entry.name, changed)
            if changed and await self._differs(entry, bundle):
                reason = "its API's description changed"
                self.healing.look_again(entry.name, reason)
        except Frozen:
            raise
        except UNUSABLE as error:
            log.info("a description cannot be looked at", server=entry.name, reason=str(error))
            trouble = replace(known, problem=str(error)[:2000])
            self.store.keep_watch(trouble, self.now(), entry.name, False)

    async def _seen(self, entry: Entry, known: Watched) -> Watched:
        """The description's validators and digest; those known where it was not modified."""
        place = self.forge.descriptions.place_of(entry.source)
        if place.path is not None:
            content = await asyncio.to_thread(read_regular, place.path)
            return Watched(entry.source, known.checked, digest=_digest(content))
        if not place.urls:
            return replace(known, problem="it was handed in, and is nowhere to look at")
        fetched = await self.forge.descriptions.fetched(_asking(place, known))
        if fetched.status == 304 and known.digest:
            return replace(known, problem="")
        if fetched.status != 200:
            return replace(known, problem=f"it is answered with {fetched.status}")
        return Watched(
            entry.source,
            known.checked,
            (first(fetched.headers, "etag") or "")[:MAX_VALIDATOR],
            (first(fetched.headers, "last-modified") or "")[:MAX_VALIDATOR],
            _digest(fetched.body),
        )

    async def _differs(self, entry: Entry, bundle: Bundle) -> bool:
        """Whether the server would be another if it were compiled now."""
        fresh = await self.forge.compiled_again(entry, lambda step: None)
        return (fresh.tools, fresh.source_code) != (bundle.tools, bundle.source_code)


def _asking(place: Place, known: Watched) -> Place:
    """The place, asked whether it was modified (RFC 9110, section 13.1)."""
    asked: Headers = ()
    if known.digest and known.etag:
        asked += (("If-None-Match", known.etag),)
    if known.digest and known.modified:
        asked += (("If-Modified-Since", known.modified),)
    return replace(place, headers=(*place.headers, *asked))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
