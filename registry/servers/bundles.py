"""The bundles that may run: read from disk and checked against the registered digest."""

from __future__ import annotations

import time
from pathlib import Path

from orchestrator.errors import DiskUnusable
from registry import catalogue
from registry.records import Entry
from registry.store import Store
from sandbox import recordedcase
from sandbox.bundle import Bundle
from sandbox.errors import BundleInvalid
from sandbox.example import FILE, Example, read, render
from sandbox.recordedcase import RecordedCase
from sandbox.report import StageReport

MAX_KEPT = 64
SUITE = "test_server.py"
"""Where a bundle's tests lie, in its `tests/`."""


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

    def suite(self, name: str) -> str:
        """The tests that lie with a server's files, "" where none do. Raises BundleInvalid."""
        place = catalogue.directory(self._home, name)
        return _text(name, catalogue.test_content(place, SUITE))

    def registered_suite(self, entry: Entry) -> str:
        """The tests that were registered with an entry's bundle. Raises BundleInvalid."""
        content = catalogue.read_test(self._home, entry.name, entry.digest, SUITE)
        return _text(entry.name, content)

    def recorded(self, name: str) -> tuple[RecordedCase, ...]:
        """The recorded cases that lie with a server's files. Raises BundleInvalid."""
        place = catalogue.directory(self._home, name)
        return _recorded(name, catalogue.test_content(place, recordedcase.FILE))

    def registered_recorded(self, entry: Entry) -> tuple[RecordedCase, ...]:
        """The recorded cases that an entry's bundle was registered with. Raises BundleInvalid."""
        file = recordedcase.FILE
        content = catalogue.read_test(self._home, entry.name, entry.digest, file)
        return _recorded(entry.name, content)

    def publish(
        self,
        bundle: Bundle,
        entry: Entry,
        reports: tuple[StageReport, ...],
        fence: tuple[str, int] | None,
        examples: tuple[Example, ...] = (),
        recorded: tuple[RecordedCase, ...] | None = None,
        suite: str | None = None,
    ) -> Entry:
        """Register a proved bundle, files and rows together or neither. Raises DiskUnusable.

        The recorded cases and the tests are by default those that its server has already.
        """
        tests = {FILE: render(examples)} if examples else {}
        written = self.suite(bundle.name) if suite is None else suite
        if written:
            tests[SUITE] = written.encode()
        kept = self.recorded(bundle.name) if recorded is None else recorded
        if kept:
            tests[recordedcase.FILE] = recordedcase.render(kept)
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


def _recorded(name: str, content: bytes | None) -> tuple[RecordedCase, ...]:
    try:
        return recordedcase.read(content) if content is not None else ()
    except ValueError as error:
        raise BundleInvalid(name, f"tests/{recordedcase.FILE}", str(error)) from error


def _text(name: str, content: bytes | None) -> str:
    try:
        return (content or b"").decode()
    except UnicodeDecodeError as error:
        raise BundleInvalid(name, f"tests/{SUITE}", str(error)) from error


def _examples(name: str, content: bytes | None) -> tuple[Example, ...]:
    try:
        return read(content) if content is not None else ()
    except ValueError as error:
        raise BundleInvalid(name, f"tests/{FILE}", str(error)) from error
