"""Daily check of the API descriptions that servers were compiled from; a changed one opens a
repair.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from forge.sources import ApiSource as Place
from orchestrator.forging.forge import Forge
from orchestrator.healing.monitor import Healing
from orchestrator.jobs.runner import KNOWN_FAILURES
from registry.health.repairs import DAY, WatchedDescription
from registry.models import Entry
from registry.store import Store
from sandbox.bundle.model import Bundle, read_regular_file
from sandbox.errors import Frozen
from sandbox.wire.exchange import Headers, find_header

MAX_VALIDATOR = 500
DUE_AT_ONCE = 200
LANES = 8
"""How many descriptions are looked at at the same time."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Drift:
    """Watches the descriptions that servers were compiled from. One look costs one request, which
    names the validators of the last answer.
    """

    store: Store
    forge: Forge
    healing: Healing
    now: Callable[[], float] = time.time

    async def check_due(self, interval: float = DAY) -> int:
        """Look at the descriptions whose last look is longer ago than `interval` seconds, some at a
        time and at most DUE_AT_ONCE, and open repairs where their servers would be others. Returns
        how many were due.
        """
        names = await asyncio.to_thread(
            self.store.descriptions.find_due_servers, self.now(), interval, DUE_AT_ONCE
        )
        waiting = iter(names)

        async def check() -> None:
            for name in waiting:
                entry = await asyncio.to_thread(self.store.servers.get, name)
                await self.check_description(entry, interval)

        async with asyncio.TaskGroup() as lanes:
            for _ in range(LANES):
                lanes.create_task(check())
        return len(names)

    async def check_description(self, entry: Entry, interval: float = DAY) -> None:
        """Look at a server's description, unless that was done within `interval` seconds."""
        claimed = await asyncio.to_thread(
            self.store.descriptions.claim_check, entry.source, self.now(), interval
        )
        if claimed is None:
            return
        try:
            await self._store_check(entry, claimed)
        except (Frozen, asyncio.CancelledError):
            # Else nobody would look for a day.
            self.store.descriptions.release_check(entry.source)
            raise

    async def _store_check(self, entry: Entry, known: WatchedDescription) -> None:
        """Store what the description is now, and act where it says something else."""
        try:
            seen = await self._fetch_state(entry, known)
            if seen.digest in ("", known.digest):
                # To read a bundle is the larger part of a look.
                await self._store(seen, entry, False)
                return
            bundle = await asyncio.to_thread(self.forge.shelf.load_bundle, entry)
            changed = seen.digest != (known.digest or bundle.provenance.source_digest)
            await self._store(seen, entry, changed)
            if changed and await self._has_changed(entry, bundle):
                reason = "its API's description changed"
                self.healing.queue_description_repair(entry.name, reason)
        except Frozen:
            raise
        except KNOWN_FAILURES as error:
            log.info("a description cannot be looked at", server=entry.name, reason=str(error))
            await self._store(replace(known, problem=str(error)[:2000]), entry, False)

    async def _store(self, seen: WatchedDescription, entry: Entry, changed: bool) -> None:
        await asyncio.to_thread(
            self.store.descriptions.store_check, seen, self.now(), entry.name, changed
        )

    async def _fetch_state(self, entry: Entry, known: WatchedDescription) -> WatchedDescription:
        """The description's validators and digest; those known where it was not modified."""
        place = self.forge.descriptions.find_place(entry.source)
        if place.path is not None:
            content = await asyncio.to_thread(read_regular_file, place.path)
            return WatchedDescription(entry.source, known.checked, digest=_hash_content(content))
        if not place.urls:
            return replace(known, problem="it was handed in, and is nowhere to look at")
        fetched = await self.forge.descriptions.fetch_place(_add_validators(place, known))
        if fetched.status == 304 and known.digest:
            return replace(known, problem="")
        if fetched.status != 200:
            return replace(known, problem=f"it is answered with {fetched.status}")
        return WatchedDescription(
            entry.source,
            known.checked,
            (find_header(fetched.headers, "etag") or "")[:MAX_VALIDATOR],
            (find_header(fetched.headers, "last-modified") or "")[:MAX_VALIDATOR],
            _hash_content(fetched.body),
        )

    async def _has_changed(self, entry: Entry, bundle: Bundle) -> bool:
        """Whether the server would be another if it were compiled now."""
        fresh = await self.forge.compile_again(entry, lambda step: None)
        return (fresh.tools, fresh.source_code) != (bundle.tools, bundle.source_code)


def _add_validators(place: Place, known: WatchedDescription) -> Place:
    """The place, asked whether it was modified (RFC 9110, section 13.1)."""
    asked: Headers = ()
    if known.digest and known.etag:
        asked += (("If-None-Match", known.etag),)
    if known.digest and known.modified:
        asked += (("If-Modified-Since", known.modified),)
    return replace(place, headers=(*place.headers, *asked))


def _hash_content(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
