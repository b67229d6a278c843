"""Registered bundles and their tests, read from disk and checked against the registered digest."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from registry.errors import DiskUnusable
from registry.models import Entry
from registry.servers import files
from registry.servers.entries import ServerTable
from sandbox.bundle.example import FILE, Example, parse_examples, render_examples
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import StageReport
from sandbox.errors import BundleInvalid
from sandbox.session import recorded_case
from sandbox.session.recorded_case import RecordedCase

MAX_KEPT = 64
SUITE = "test_server.py"
"""Name of the file with a bundle's tests, in its `tests/`."""


class Bundles:
    def __init__(self, home: Path, servers: ServerTable) -> None:
        self._home, self._servers = home, servers
        self._bundles: dict[tuple[str, int, str], Bundle] = {}

    def load_bundle(self, entry: Entry) -> Bundle:
        """The registered bundle of an entry, exactly as the audit says that it was published.

        Raises BundleInvalid.
        """
        key = (entry.name, entry.version, entry.digest)
        found = self._bundles.get(key)
        if found is None:
            self._check_published(entry)
            found = files.load_bundle(self._home, entry.name, entry.digest)
            if found.version != entry.version:
                reason = f"its files say that it is version {found.version}"
                raise BundleInvalid(entry.name, f"version {entry.version}", reason)
            found = replace(found, registered=entry.digest)
            # Other threads load bundles too, and may take the same ones out.
            for oldest in [*self._bundles][: 1 - MAX_KEPT]:
                self._bundles.pop(oldest, None)
            self._bundles[key] = found
        return found

    def _check_published(self, entry: Entry) -> None:
        published = self._servers.get_published_digest(entry.name, entry.version)
        if published != entry.digest:
            reason = "its digest in the registry is not the one that was published"
            raise BundleInvalid(entry.name, f"version {entry.version}", reason)

    def load_examples(self, entry: Entry) -> tuple[Example, ...]:
        """The examples that were registered with an entry's bundle. Raises BundleInvalid."""
        return _parse_examples(
            entry.name, files.read_test(self._home, entry.name, entry.digest, FILE)
        )

    def load_edited_examples(self, name: str) -> tuple[Example, ...]:
        """The examples in a server's directory, as edited. Raises BundleInvalid."""
        place = files.get_server_directory(self._home, name)
        return _parse_examples(name, files.read_test_content(place, FILE))

    def load_suite(self, name: str) -> str:
        """The tests in a server's directory, "" where there are none. Raises BundleInvalid."""
        place = files.get_server_directory(self._home, name)
        return _decode_text(name, files.read_test_content(place, SUITE))

    def load_registered_suite(self, entry: Entry) -> str:
        """The tests that were registered with an entry's bundle. Raises BundleInvalid."""
        content = files.read_test(self._home, entry.name, entry.digest, SUITE)
        return _decode_text(entry.name, content)

    def load_recorded_cases(self, name: str) -> tuple[RecordedCase, ...]:
        """The recorded cases in a server's directory. Raises BundleInvalid."""
        place = files.get_server_directory(self._home, name)
        return _parse_recorded_cases(name, files.read_test_content(place, recorded_case.FILE))

    def load_registered_cases(self, entry: Entry) -> tuple[RecordedCase, ...]:
        """The recorded cases that an entry's bundle was registered with. Raises BundleInvalid."""
        file = recorded_case.FILE
        content = files.read_test(self._home, entry.name, entry.digest, file)
        return _parse_recorded_cases(entry.name, content)

    def publish_bundle(
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
        tests = {FILE: render_examples(examples)} if examples else {}
        written = self.load_suite(bundle.name) if suite is None else suite
        if written:
            tests[SUITE] = written.encode()
        kept = self.load_recorded_cases(bundle.name) if recorded is None else recorded
        if kept:
            tests[recorded_case.FILE] = recorded_case.render_cases(kept)
        try:
            return files.install_bundle(
                self._home,
                self._servers,
                bundle,
                entry,
                reports,
                now=time.time(),
                tests=tests,
                job=fence,
            )
        except OSError as error:
            raise DiskUnusable(error) from error

    def recover_files(self) -> tuple[str, ...]:
        """Finish or undo installations that a crash interrupted; the names of their servers."""
        return files.recover_installations(self._home, self._servers)


def _parse_recorded_cases(name: str, content: bytes | None) -> tuple[RecordedCase, ...]:
    try:
        return recorded_case.parse_cases(content) if content is not None else ()
    except ValueError as error:
        raise BundleInvalid(name, f"tests/{recorded_case.FILE}", str(error)) from error


def _decode_text(name: str, content: bytes | None) -> str:
    try:
        return (content or b"").decode()
    except UnicodeDecodeError as error:
        raise BundleInvalid(name, f"tests/{SUITE}", str(error)) from error


def _parse_examples(name: str, content: bytes | None) -> tuple[Example, ...]:
    try:
        return parse_examples(content) if content is not None else ()
    except ValueError as error:
        raise BundleInvalid(name, f"tests/{FILE}", str(error)) from error
