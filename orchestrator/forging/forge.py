"""From a description to a registered server: find it, compile, prove, publish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from forge.compile import Compilation, compile_document
from forge.document import Document
from forge.omission import without_operations
from forge.prosedocs.derived import Derived, compiled
from forge.selection import credential
from orchestrator.brokers import Brokers
from orchestrator.consents import Consents
from orchestrator.descriptions import Descriptions
from orchestrator.engines import Engine
from orchestrator.errors import ForgeFailed
from orchestrator.hosts import check_hosts
from orchestrator.orders import MAX_REPAIRS, Forged, Order, Report, Step
from orchestrator.packages import check_packages
from orchestrator.remembering import given_schemes, with_learned, with_written
from orchestrator.shelf import Shelf
from orchestrator.stages import refusal, timed, watched
from registry.errors import Unknown
from registry.records import Entry, EntryState, entry_from
from registry.store import Store
from sandbox.apispec import SecurityScheme
from sandbox.brake import Brake
from sandbox.bundle import Bundle
from sandbox.errors import BundleInvalid
from sandbox.example import Example
from sandbox.launch import AUTHOR
from sandbox.prove import prove, prove_specification
from sandbox.recordedcase import RecordedCase
from sandbox.report import Proof


@dataclass(frozen=True)
class Forge:
    """Forges servers of the descriptions that it finds."""

    store: Store
    consents: Consents
    shelf: Shelf
    engine: Engine
    brokers: Brokers
    brake: Brake
    descriptions: Descriptions
    now: Callable[[], float] = time.time

    async def forge(
        self,
        order: Order,
        report: Report,
        fence: tuple[str, int] | None = None,
        given: Document | Derived | None = None,
    ) -> Forged:
        """The server that an order asks for, registered. `fence` is the job and its attempt; the
        description is looked for where none is `given`.

        Raises ForgeWaits where a person must first allow a host or give a credential, SourceMissing
        where no API is named, ProseFound where only people can read its documentation, ForgeFailed,
        DocumentError, SandboxError, RegistryError; nothing is registered then.
        """
        timings: dict[str, float] = {}
        with timed(timings, "find"):
            document = given or await self.descriptions.find(order, report)
        with timed(timings, "compile"):
            compilation = await asyncio.to_thread(self._compiled, document, order)
            bundle = self.versioned(compilation.bundle)
            count = len(bundle.tools)
            left = len(compilation.problems)
            report(Step("compile", 0.25, f"{count} tools of {document.name}; {left} problems"))
        check_hosts(self.consents, bundle)
        bundle, proof, left_out = await self._proved(bundle, report, timings)
        if not proof.passed and not (order.experimental and proof.admissible):
            raise ForgeFailed(refusal(proof))
        with timed(timings, "register"):
            source = _source_of(document)
            entry = await self.registered(bundle, proof, (), fence, report, source, suite="")
        problems = (*map(str, compilation.problems), *left_out)
        return Forged(entry, bundle, proof, problems, timings)

    async def adopt(
        self, bundle: Bundle, report: Report, examples: Sequence[Example] = ()
    ) -> Forged:
        """Prove and register a bundle as a person wrote it, as its server's next version.

        Raises as `forge`. Nothing of the code is mended. Its examples are tried where it has some.
        """
        timings: dict[str, float] = {}
        versioned = self.versioned(bundle)
        check_hosts(self.consents, versioned)
        check_packages(self.consents, versioned.packages)
        proof = await self.proof(versioned, report, timings, examples or None)
        if not proof.passed:
            raise ForgeFailed(refusal(proof))
        entry = await self.registered(versioned, proof, examples, None, report)
        return Forged(entry, versioned, proof, (), timings)

    async def registered(
        self,
        bundle: Bundle,
        proof: Proof,
        examples: Sequence[Example],
        fence: tuple[str, int] | None,
        report: Report,
        source: str = "",
        recorded: tuple[RecordedCase, ...] | None = None,
        suite: str | None = None,
    ) -> Entry:
        """The entry of a proved bundle, registered with its examples, recorded cases and tests (the
        last two by default those that it has), and where its document is on this machine. Raises
        RegistryError.
        """
        source = source or bundle.provenance.source
        entry = await asyncio.to_thread(
            self._published, bundle, proof, fence, source, tuple(examples), recorded, suite
        )
        report(Step("register", 1.0, f"{entry.name} version {entry.version} is registered"))
        return entry

    async def compiled_again(self, entry: Entry, report: Report) -> Bundle:
        """What the description that a server was compiled from comes to now; none but that one is
        looked at. Raises as `forge`.
        """
        found = await self.descriptions.at(entry.source, report)
        if isinstance(found, str):
            raise ForgeFailed(f"its description is not there any more ({found}).")
        order = Order(source=entry.source, name=entry.name)
        return (await asyncio.to_thread(self._compiled, found, order)).bundle

    def _compiled(self, document: Document | Derived, order: Order) -> Compilation:
        auth = tuple(map(credential, order.auth))
        made = _compilation(document, order, auth)
        earlier = self._earlier(made.bundle.name)
        if earlier is None:
            return made
        remembered = given_schemes(earlier.credentials)
        if remembered and not auth:
            made = _compilation(document, order, remembered)
        written = with_written(made.bundle, earlier.credentials)
        return replace(made, bundle=with_learned(written, earlier))

    def _earlier(self, name: str) -> Bundle | None:
        """The registered version; None where there is none that can be read."""
        try:
            return self.shelf.bundle(self.store.entry(name))
        except (Unknown, BundleInvalid):
            return None

    def versioned(self, bundle: Bundle) -> Bundle:
        """The bundle as the next version of its server, or as it is registered already."""
        made = replace(bundle.provenance, base_image=self.engine.base)
        try:
            entry = self.store.entry(bundle.name)
        except Unknown:
            return replace(bundle, version=1, provenance=made)
        if entry.created_by == AUTHOR:
            raise ForgeFailed(f"{entry.name} is a third-party server. Give another --name.")
        same = replace(bundle, version=entry.version, provenance=made)
        if same.digest() == entry.digest:
            return same
        return replace(same, version=entry.version + 1)

    async def _proved(
        self, bundle: Bundle, report: Report, timings: dict[str, float]
    ) -> tuple[Bundle, Proof, tuple[str, ...]]:
        """Prove; at most three times leave out the operations that failed, and prove again.

        The bundle as it was proved last, and why the operations were left out.
        """
        left_out: list[str] = []
        for repair in range(1, MAX_REPAIRS + 2):
            proof = await self.proof(bundle, report, timings, suite="")
            failures = [case for stage in proof.reports for case in stage.failures()]
            failed = {case.operation for case in failures}
            mended = await asyncio.to_thread(without_operations, bundle, failed)
            if proof.passed or mended is None or repair > MAX_REPAIRS:
                break
            first = {case.operation: case for case in reversed(failures)}
            left_out += [f"{c.operation}: {c.case} failed: {c.evidence}" for c in first.values()]
            report(Step("repair", 0.5, f"round {repair}: left out {', '.join(sorted(failed))}"))
            bundle = mended
        return bundle, proof, tuple(left_out)

    async def proof(
        self,
        bundle: Bundle,
        report: Report,
        timings: dict[str, float],
        examples: Sequence[Example] | None = None,
        recorded: Sequence[RecordedCase] | None = None,
        suite: str | None = None,
    ) -> Proof:
        """What the stages say of a bundle; with `examples`, those of code that somebody wrote; on
        the `recorded` cases and the tests of its `suite`, by default those of its server.
        """
        live = self.brokers.reading(bundle)
        if recorded is None:
            recorded = await asyncio.to_thread(self.shelf.recorded, bundle.name)
        if suite is None:
            suite = await asyncio.to_thread(self.shelf.suite, bundle.name)
        return await prove(
            bundle,
            self.engine,
            live=live,
            examples=examples,
            suite=suite,
            recorded=recorded,
            available=self.engine.modules,
            on_stage=watched(report, timings),
        )

    async def specified(
        self,
        bundle: Bundle,
        report: Report,
        timings: dict[str, float],
        examples: Sequence[Example],
        suite: str,
    ) -> Proof:
        """What the stages say of a bundle whose code is yet to be written."""
        on_stage = watched(report, timings)
        return await prove_specification(bundle, self.engine, suite, examples, on_stage=on_stage)

    def _published(
        self,
        bundle: Bundle,
        proof: Proof,
        fence: tuple[str, int] | None,
        source: str,
        examples: tuple[Example, ...],
        recorded: tuple[RecordedCase, ...] | None,
        suite: str | None,
    ) -> Entry:
        """Register it. The row keeps where the document is on this machine; the bundle does not."""
        state: EntryState = "active" if proof.passed else "experimental"
        entry = replace(entry_from(bundle, self.now(), state=state), source=source)
        return self.shelf.publish(bundle, entry, proof.reports, fence, examples, recorded, suite)


def _compilation(
    document: Document | Derived, order: Order, auth: tuple[SecurityScheme, ...]
) -> Compilation:
    name, base_url = order.name or None, order.base_url or None
    if isinstance(document, Derived):
        return compiled(document, name=name, base_url=base_url, auth=auth)
    return compile_document(document, name=name, base_url=base_url, auth=auth)


def _source_of(document: Document | Derived) -> str:
    """Where a document is on this machine or the network."""
    if isinstance(document, Derived):
        return document.source
    return str(document.path or document.url or document.name)
