"""From a task to a registered server: find the document, compile, prove, publish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from forge.challenge import NeedsCredential
from forge.compile import Compilation, compile_document
from forge.discover import Found, NotFound, discover
from forge.document import Document, load, parse
from forge.omission import without_operations
from forge.prosedocs.derived import Derived, compiled
from forge.prosedocs.gathering import gather, within
from forge.prosedocs.page import Page, page_of
from forge.recorded import curl
from forge.selection import credential
from forge.sources import Fetched, choose
from forge.sources import Source as Place
from orchestrator.authorship import Wanted
from orchestrator.brokers import SOURCES, Brokers, origins
from orchestrator.consents import Consents
from orchestrator.engines import Engine
from orchestrator.errors import ForgeFailed, ForgeWaits, ProseFound, SourceMissing
from orchestrator.fetching import GuardedFetch
from orchestrator.packages import check_packages
from orchestrator.remembering import given_schemes, with_learned, with_written
from orchestrator.shelf import Shelf
from registry.errors import Unknown
from registry.records import Entry, EntryState, Source, entry_from
from registry.store import Store
from registry.vault import Vault
from sandbox.apispec import SecurityScheme
from sandbox.brake import Brake
from sandbox.bundle import Bundle
from sandbox.errors import BundleInvalid
from sandbox.example import Example
from sandbox.exchange import Upstream
from sandbox.launch import AUTHOR
from sandbox.policy import Origin, origin_of
from sandbox.prove import OnStage, prove, prove_specification
from sandbox.recordedcase import RecordedCase
from sandbox.report import Proof, StageReport

MAX_REPAIRS = 3
NO_SOURCE = "none"
"""The source of what needs no API."""


@dataclass(frozen=True)
class Order:
    """What is to be forged. `source` is a path, URL or host, or NO_SOURCE; `document` an API
    description given as text instead. `base_url` replaces the servers that the document names.
    `auth` are credentials that the description forgot (`forge.selection.credential`); without any,
    those of the server's earlier version count. `parent` is the server that the client's code is to
    change. `author` is who writes the code, "" for whoever can (`orchestrator.authorship`).
    `failing` is a call of the parent whose recording has to come out; with `alike` so do the last
    calls that succeeded, as they did.
    """

    task: str = ""
    source: str = ""
    document: str = ""
    name: str = ""
    base_url: str = ""
    auth: tuple[str, ...] = ()
    parent: str = ""
    author: Wanted = ""
    failing: str = ""
    alike: bool = False
    experimental: bool = False

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Order:
        known = {key: data[key] for key in Order.__dataclass_fields__ if data.get(key)}
        return Order(**{**known, "auth": tuple(known.get("auth", ()))})


@dataclass(frozen=True)
class Step:
    """Progress of a forge: the stage's name, how far the whole is (0..1), and what happened."""

    stage: str
    progress: float
    message: str


Report = Callable[[Step], None]


@dataclass(frozen=True)
class Forged:
    """A forge's result. `left_out` are the document's problems, located, or what the task of code
    that somebody wrote leaves open.
    """

    entry: Entry
    bundle: Bundle
    proof: Proof
    left_out: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Forge:
    """Forges servers. `upstream` is the live network with these origins' private addresses."""

    store: Store
    consents: Consents
    vault: Vault
    shelf: Shelf
    engine: Engine
    brokers: Brokers
    brake: Brake
    upstream: Callable[[frozenset[Origin]], Upstream]
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
        with _timed(timings, "find"):
            document = given or await self.find(order, report)
        with _timed(timings, "compile"):
            compilation = await asyncio.to_thread(self._compiled, document, order)
            bundle = self.versioned(compilation.bundle)
            count = len(bundle.tools)
            left = len(compilation.problems)
            report(Step("compile", 0.25, f"{count} tools of {document.name}; {left} problems"))
        self._granted(origins(bundle))
        bundle, proof, left_out = await self._proved(bundle, report, timings)
        if not proof.passed and not (order.experimental and proof.admissible):
            raise ForgeFailed(_verdict(proof))
        with _timed(timings, "register"):
            source = _source_of(document)
            entry = await asyncio.to_thread(
                self._published, bundle, proof, fence, source, (), None, ""
            )
            report(Step("register", 1.0, f"{entry.name} version {entry.version} is registered"))
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
        self._granted(origins(versioned))
        check_packages(self.consents, versioned.packages)
        proof = await self.proof(versioned, report, timings, examples or None)
        if not proof.passed:
            raise ForgeFailed(_verdict(proof))
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
        found = await self._found(self.place_of(entry.source), report)
        if isinstance(found, str):
            raise ForgeFailed(f"its description is not there any more ({found}).")
        order = Order(source=entry.source, name=entry.name)
        return (await asyncio.to_thread(self._compiled, found, order)).bundle

    def check_hosts(self, bundle: Bundle, permissions: Iterable[str]) -> None:
        """Raises ForgeWaits for the first host that no person has named, of those that a bundle
        asks for and of those among permissions.
        """
        named = (p.removeprefix("network:") for p in permissions if p.startswith("network:"))
        hosts = filter(None, (origin_of(f"https://{host}") for host in named))
        self._granted(origins(bundle) | frozenset(hosts))

    async def find(self, order: Order, report: Report) -> Document:
        """The machine-readable description, from the order itself or from where it points. Raises
        as `forge`.
        """
        report(Step("find", 0.05, "looking for an API description"))
        if order.source == NO_SOURCE and not order.document:
            raise SourceMissing
        if order.document:
            return await asyncio.to_thread(
                parse, order.document.encode(), "the submitted document", url=order.source or None
            )
        places = choose(order.task, order.source or None, map(self._place, self.consents.sources()))
        reasons = []
        for place in places:
            found = await self._look(place)
            if isinstance(found, Found):
                page = await asyncio.to_thread(_prose_of, found)
                if page is not None:
                    raise ProseFound(place, (page,))
                return await self._opened(found, place, report)
            if found.documentation:
                raise ProseFound(place, found.documentation)
            reasons.append(f"{place.location}: {found.reason}")
        if not reasons:
            raise SourceMissing
        raise ForgeFailed(
            f"no API description was found ({'; '.join(reasons)}). Give the path or URL of an "
            "OpenAPI document as the source."
        )

    async def _found(self, place: Place, report: Report) -> Document | str:
        """The description at a place, or why there is none."""
        found = await self._look(place)
        if isinstance(found, Found):
            return await self._opened(found, place, report)
        if found.documentation:
            return f"{place.location}: {ProseFound(place, found.documentation)}"
        return f"{place.location}: {found.reason}"

    async def _opened(self, found: Found, place: Place, report: Report) -> Document:
        report(Step("find", 0.15, f"found {found.dialect} at {found.location}"))
        if place.path is not None:
            return await asyncio.to_thread(load, place.path)
        return await asyncio.to_thread(parse, found.content, found.location, url=found.location)

    async def _look(self, place: Place) -> Found | NotFound:
        if place.path is None:
            self._granted(place.origins)
        fetch = GuardedFetch(self.upstream(self._allowed(place.origins)), self.brake)
        found = await discover(place, fetch)
        if isinstance(found, NeedsCredential):
            raise ForgeWaits("credential", found.url, found.question())
        return found

    async def documentation(self, place: Place, pages: tuple[Page, ...]) -> tuple[Page, ...]:
        """The pages with those of the same origin that they lead to. Raises as `_look`."""
        if place.path is not None:
            return within(pages)
        self._granted(place.origins)
        fetch = GuardedFetch(self.upstream(self._allowed(place.origins)), self.brake)
        return await gather(pages, fetch, place.headers)

    def place_of(self, location: str) -> Place:
        """Where a description is, with the credential that is registered for it."""
        return choose("", location, map(self._place, self.consents.sources()))[0]

    async def fetched(self, place: Place) -> Fetched:
        """What a place answers. Raises ForgeWaits where nobody allowed its host, SandboxError."""
        self._granted(place.origins)
        fetch = GuardedFetch(self.upstream(self._allowed(place.origins)), self.brake)
        return await fetch(place.urls[0], place.headers)

    def _place(self, source: Source) -> Place:
        secret = self.vault.get(SOURCES, source.secret) if source.secret else None
        headers = ((source.header, secret.reveal()),) if secret else ()
        return Place(source.url, headers)

    def _granted(self, wanted: frozenset[Origin]) -> None:
        """Raises ForgeWaits for the first origin that no person has named yet."""
        named = self.consents.hosts()
        for origin in sorted(wanted, key=str):
            host = f"{origin.host}:{origin.port}"
            if host not in named:
                raise ForgeWaits("host", host, f"toolwright source allow {host}")

    def _allowed(self, wanted: frozenset[Origin]) -> frozenset[Origin]:
        return frozenset(filter(self.consents.is_private, wanted))

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
            on_stage=_watched(report, timings),
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
        told = _watched(report, timings)
        return await prove_specification(bundle, self.engine, suite, examples, on_stage=told)

    def _published(
        self,
        bundle: Bundle,
        proof: Proof,
        fence: tuple[str, int] | None,
        source: str,
        examples: tuple[Example, ...] = (),
        recorded: tuple[RecordedCase, ...] | None = None,
        suite: str | None = None,
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


def _prose_of(found: Found) -> Page | None:
    """The page that curl commands stand in; None where it is all commands, or no such document."""
    if found.dialect != curl.KEY:
        return None
    page = page_of(found.location, found.content)
    return page if page and not curl.starts_with_curl(page.text) else None


_PROGRESS = {
    "static": 0.4,
    "suite": 0.5,
    "cases": 0.6,
    "adequacy": 0.65,
    "mock": 0.7,
    "recorded": 0.8,
    "live": 0.9,
    "redteam": 0.95,
    "acceptance": 0.98,
}


def _watched(report: Report, timings: dict[str, float]) -> OnStage:
    """Tells of stages as they end, and adds up their times."""

    def on_stage(stage: StageReport | str) -> None:
        if isinstance(stage, StageReport):
            timings[stage.stage] = timings.get(stage.stage, 0) + stage.elapsed_ms
            report(Step(stage.stage, _PROGRESS[stage.stage], _told(stage)))

    return on_stage


def _told(report: StageReport) -> str:
    """A stage's verdict in a line."""
    ran = sum(case.verdict != "skipped" for case in report.cases)
    parts = [report.verdict, f"{ran} checks" if ran else "", report.note]
    parts += [f"{f.file}:{f.where} {f.reason}" for f in report.findings[:1]]
    parts += [f"{c.operation} {c.case}: {c.evidence}" for c in report.failures()[:1]]
    return ", ".join(part[:200] for part in parts if part)


def _verdict(proof: Proof) -> str:
    """Why a bundle is not registered."""
    failed = next(report for report in proof.reports if not report.passed)
    return (
        f"stage {failed.stage} failed: {_told(failed)}. Nothing was registered; "
        "`toolwright jobs` keeps the report."
    )


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    """Add the milliseconds that the block took."""
    started = time.perf_counter()
    try:
        yield
    finally:
        timings[stage] = timings.get(stage, 0.0) + (time.perf_counter() - started) * 1000
