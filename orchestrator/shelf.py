"""The bundles that may run: read from disk and checked against the registered digest."""

from __future__ import annotations

import time
from pathlib import Path

from orchestrator.errors import DiskUnusable
from registry import catalogue
from registry.records import Entry
from registry.store import Store
from sandbox.bundle import Bundle
from sandbox.errors import BundleInvalid
from sandbox.example import FILE, Example, read, render
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

    def examples(self, entry: Entry) -> tuple[Example, ...]:
        """The examples that were registered with an entry's bundle. Raises BundleInvalid."""
        return _examples(
            entry.name, catalogue.read_test(self._home, entry.name, entry.digest, FILE)
        )

    def edited_examples(self, name: str) -> tuple[Example, ...]:
        """The examples that lie with a server's files as they are. Raises BundleInvalid."""
        place = catalogue.directory(self._home, name)
        return _examples(name, catalogue.test_content(place, FILE))

    def publish(
        self,
        bundle: Bundle,
        entry: Entry,
        reports: tuple[StageReport, ...],
        fence: tuple[str, int] | None,
        examples: tuple[Example, ...] = (),
    ) -> Entry:
        """Register a proved bundle, files and rows together or neither. Raises DiskUnusable."""
        tests = {FILE: render(examples)} if examples else {}
        try:
            return catalogue.install(
                self._home,
                self._store,
                bundle,
                entry,
                reports,
                now=time.time(),
                tests=tests,
                job=fence,
            )
        except OSError as error:
            raise DiskUnusable(error) from error

    def recover(self) -> tuple[str, ...]:
        """Settle what crashes left half-done; the names of the servers concerned."""
        return catalogue.recover(self._home, self._store)


def _examples(name: str, content: bytes | None) -> tuple[Example, ...]:
    try:
        return read(content) if content is not None else ()
    except ValueError as error:
        raise BundleInvalid(name, f"tests/{FILE}", str(error)) from error
