"""The bundles that may run: read from disk and checked against the registered digest."""

from __future__ import annotations

import time
from pathlib import Path

from orchestrator.errors import DiskUnusable
from registry import catalogue
from registry.records import Entry
from registry.store import Store
from sandbox.bundle import Bundle
from sandbox.report import StageReport

MAX_KEPT = 64


class Shelf:
    def __init__(self, home: Path, store: Store) -> None:
        self._home, self._store = home, store
        self._bundles: dict[tuple[str, str], Bundle] = {}

    def bundle(self, entry: Entry) -> Bundle:
        """The registered bundle of an entry, exactly. Raises BundleInvalid."""
        key = (entry.name, entry.digest)
        found = self._bundles.get(key)
        if found is None:
            found = catalogue.load(self._home, entry.name, entry.digest)
            while len(self._bundles) >= MAX_KEPT:
                del self._bundles[next(iter(self._bundles))]
            self._bundles[key] = found
        return found

    def publish(
        self,
        bundle: Bundle,
        entry: Entry,
        reports: tuple[StageReport, ...],
        fence: tuple[str, int] | None,
    ) -> Entry:
        """Register a proved bundle, files and rows together or neither. Raises DiskUnusable."""
        try:
            return catalogue.install(
                self._home, self._store, bundle, entry, reports, now=time.time(), job=fence
            )
        except OSError as error:
            raise DiskUnusable(error) from error

    def recover(self) -> tuple[str, ...]:
        """Settle what crashes left half-done; the names of the servers concerned."""
        return catalogue.recover(self._home, self._store)
