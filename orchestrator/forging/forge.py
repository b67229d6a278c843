"""The forge: from an API description to a registered server (find, compile, prove, publish)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from forge.compiler.compile import Compilation, compile_document, remove_operations
from forge.compiler.selection import parse_credential
from forge.compiler.widening import WideningRefused, apply_widenings
from forge.documentation.to_openapi import DerivedDocument, compile_derived
from forge.readers.document import Document
from forge.sources import FILE
from orchestrator.approvals.grants import Grants
from orchestrator.errors import ForgeFailed, SuccessionUndecided
from orchestrator.forging.descriptions import SUBMITTED, Descriptions, check_hosts
from orchestrator.forging.learning import learn_from_probe
from orchestrator.forging.order import MAX_REPAIRS, ForgeOrder, ForgeResult, ForgeStep, Report
from orchestrator.forging.packages import check_packages
from orchestrator.forging.progress import (
    PROGRESS,
    build_stage_listener,
    render_refusal,
    time_stage,
)
from orchestrator.forging.succession import find_undecided
from orchestrator.gateway.brokers import RESERVED_NAMES, BrokerFactory, render_reserved
from orchestrator.gateway.engine import Engine
from registry.errors import RowNotFound
from registry.models import Entry, EntryState, build_entry
from registry.servers.bundles import Bundles
from registry.servers.entries import ServerTable
from sandbox.bundle.apispec import SecurityScheme
from sandbox.bundle.credential import Credential
from sandbox.bundle.example import Example
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.model import Bundle
from sandbox.bundle.ratelimit import add_slower_pace
from sandbox.bundle.report import Proof
from sandbox.errors import BundleInvalid
from sandbox.killswitch import KillSwitch
from sandbox.session.recorded_case import RecordedCase
from sandbox.stages.probe.budget import ProbeBudget
from sandbox.stages.prove import prove_bundle, prove_specification, prove_widened
from sandbox.wire.policy import list_granted_hosts

_PLAIN = ("apiKey", "bearer", "basic", "digest")


def collect_given_schemes(earlier: Iterable[Credential]) -> tuple[SecurityScheme, ...]:
    """The credentials that a person declared for the earlier version, because the API's description
    forgot them.
    """
    return tuple(
        SecurityScheme(
            old.name, cast(Any, old.kind), cast(Any, old.location), old.parameter, given=True
        )
        for old in earlier
        if old.given and old.kind in _PLAIN
    )


def carry_over_credentials(bundle: Bundle, earlier: Iterable[Credential]) -> Bundle:
    """The bundle with what a person wrote into the earlier version's: templates, AWS signatures and
    token endpoints that the description does not name.
    """
    by_name = {old.name: old for old in earlier}
    kept = (_carry_over_credential(new, by_name.get(new.name)) for new in bundle.credentials)
    return replace(bundle, credentials=tuple(kept))


def carry_over_learned(bundle: Bundle, earlier: Bundle) -> Bundle:
    """The bundle with the earlier version's paces, for the hosts that it still may ask, where they
    are slower than its own, and what of its widenings still has a place.
    """
    hosts, paces = list_granted_hosts(bundle), bundle.paces
    for pace in earlier.paces:
        paces = add_slower_pace(paces, pace) if pace.host in hosts else paces
    paced = replace(bundle, paces=paces)
    try:
        return apply_widenings(paced, earlier.widened)
    except WideningRefused:
        return paced


def _carry_over_credential(new: Credential, old: Credential | None) -> Credential:
    if old is None:
        return new
    if old.kind in ("template", "aws-sigv4"):
        return old
    return replace(new, tokens=old.tokens) if new.tokens is None and old.kind == new.kind else new


@dataclass(frozen=True)
class Forge:
    """Forges servers of the descriptions that it finds."""

    servers: ServerTable
    consents: Grants
    shelf: Bundles
    engine: Engine
    brokers: BrokerFactory
    kill_switch: KillSwitch
    descriptions: Descriptions
    now: Callable[[], float] = time.time
    probe: ProbeBudget = field(default_factory=ProbeBudget)
    classify: Callable[[Bundle], Bundle] = lambda bundle: bundle
    """A bundle with its tools' access as people classified them."""

    async def forge_server(
        self,
        order: ForgeOrder,
        report: Report,
        fence: tuple[str, int] | None = None,
        given: Document | DerivedDocument | None = None,
    ) -> ForgeResult:
        """The server that an order asks for, registered. `fence` is the job and its attempt; the
        description is looked for where none is `given`.

        Raises ForgeWaits where a person must first allow a host or give a credential,
        SuccessionUndecided where it would follow a registered server as only a person lets it,
        SourceMissing where no API is named, ProseFound where only people can read its
        documentation, ForgeFailed, DocumentError, SandboxError, RegistryError; nothing is
        registered then.
        """
        timings: dict[str, float] = {}
        with time_stage(timings, "find"):
            document = given or await self.descriptions.find_document(order, report)
        with time_stage(timings, "compile"):
            compilation = await asyncio.to_thread(self._compile_document, document, order)
            bundle = self.assign_version(_mark_submitted(compilation.bundle, order, given))
            self._check_succession(bundle, _find_source(document))
            count = len(bundle.tools)
            left = len(compilation.problems)
            report(ForgeStep("compile", 0.25, f"{count} tools of {document.name}; {left} problems"))
        check_hosts(self.consents, bundle)
        probe = replace(self.probe, requests=0) if order.no_probe else self.probe
        bundle, proof, left_out = await self._prove_with_repairs(bundle, report, timings, probe)
        with time_stage(timings, "learn"):
            bundle, proof = await self._learn_from_probe(bundle, proof, report)
        if not proof.passed and not (order.experimental and proof.admissible):
            raise ForgeFailed(render_refusal(proof))
        with time_stage(timings, "register"):
            source = _find_source(document)
            entry = await self.register_bundle(bundle, proof, (), fence, report, source, suite="")
        problems = (*map(str, compilation.problems), *left_out)
        return ForgeResult(entry, bundle, proof, problems, timings)

    async def adopt_bundle(
        self, bundle: Bundle, report: Report, examples: Sequence[Example] = ()
    ) -> ForgeResult:
        """Prove and register a bundle as a person wrote it, as its server's next version.

        Raises as `forge`. Nothing of the code is mended. Its examples are tried where it has some.
        """
        timings: dict[str, float] = {}
        versioned = self.assign_version(bundle)
        check_hosts(self.consents, versioned)
        check_packages(self.consents, versioned.packages)
        proof = await self.prove_bundle(versioned, report, timings, examples or None)
        if not proof.passed:
            raise ForgeFailed(render_refusal(proof))
        entry = await self.register_bundle(versioned, proof, examples, None, report)
        return ForgeResult(entry, versioned, proof, (), timings)

    async def register_bundle(
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
            self._publish_bundle, bundle, proof, fence, source, tuple(examples), recorded, suite
        )
        report(ForgeStep("register", 1.0, f"{entry.name} version {entry.version} is registered"))
        return entry

    async def compile_again(self, entry: Entry, report: Report) -> Bundle:
        """What the description that a server was compiled from comes to now; none but that one is
        looked at. Raises as `forge`.
        """
        found = await self.descriptions.load_document(entry.source, report)
        if isinstance(found, str):
            raise ForgeFailed(f"its description is not there any more ({found}).")
        order = ForgeOrder(source=entry.source, name=entry.name)
        return (await asyncio.to_thread(self._compile_document, found, order)).bundle

    def _compile_document(
        self, document: Document | DerivedDocument, order: ForgeOrder
    ) -> Compilation:
        auth = tuple(map(parse_credential, order.auth))
        made = _run_compiler(document, order, auth)
        earlier = self._load_earlier(made.bundle.name)
        if earlier is None:
            return made
        remembered = collect_given_schemes(earlier.credentials)
        if remembered and not auth:
            made = _run_compiler(document, order, remembered)
        written = carry_over_credentials(made.bundle, earlier.credentials)
        return replace(made, bundle=carry_over_learned(written, earlier))

    def _load_earlier(self, name: str) -> Bundle | None:
        """The registered version; None where there is none that can be read."""
        try:
            return self.shelf.load_bundle(self.servers.get(name))
        except (RowNotFound, BundleInvalid):
            return None

    def assign_version(self, bundle: Bundle) -> Bundle:
        """The bundle as the next version of its server, or as it is registered already. Raises
        ForgeFailed for a name that it cannot have.
        """
        if bundle.name in RESERVED_NAMES:
            raise ForgeFailed(render_reserved(bundle.name))
        made = replace(bundle.provenance, base_image=self.engine.base)
        try:
            entry = self.servers.get(bundle.name)
        except RowNotFound:
            return replace(bundle, version=1, provenance=made)
        if entry.created_by == AUTHOR:
            raise ForgeFailed(f"{entry.name} is a third-party server. Give another --name.")
        same = replace(bundle, version=entry.version, provenance=made)
        if same.compute_digest() == entry.digest:
            return same
        return replace(same, version=entry.version + 1)

    def _check_succession(self, bundle: Bundle, source: str) -> None:
        """Raises SuccessionUndecided where a compiled bundle has a registered server's name, and is
        made from something else or may do more. Nothing of it is run before.
        """
        try:
            versions = self.servers.find_versions(bundle.name)
        except RowNotFound:
            return
        need = find_undecided(versions, self._load_earlier(bundle.name), bundle, source)
        if need and not self.consents.is_succession_allowed(need.server, need.digest):
            raise SuccessionUndecided(need)

    async def _learn_from_probe(
        self, bundle: Bundle, proof: Proof, report: Report
    ) -> tuple[Bundle, Proof]:
        """The bundle with what its live stage learned, and its proof; as they are where nothing
        was, or where it would not pass so.
        """
        wider = await asyncio.to_thread(learn_from_probe, bundle, proof)
        if wider == bundle:
            return bundle, proof
        wider = self.assign_version(wider)
        recorded = await asyncio.to_thread(self.shelf.load_recorded_cases, bundle.name)
        modules = self.engine.modules
        made = await prove_widened(
            proof, bundle, wider, self.engine, recorded=recorded, available=modules, lanes=1
        )
        if not made.passed:
            report(ForgeStep("live", PROGRESS["live"], f"not learned: {render_refusal(made)}"))
            return bundle, proof
        new = len(wider.widened) - len(bundle.widened)
        told = f"the answer schemas take what came in practice at {new} more places"
        report(ForgeStep("live", PROGRESS["live"], told))
        return wider, made

    async def _prove_with_repairs(
        self, bundle: Bundle, report: Report, timings: dict[str, float], probe: ProbeBudget
    ) -> tuple[Bundle, Proof, tuple[str, ...]]:
        """Prove; at most three times leave out the operations that failed, and prove again.

        The bundle as it was proved last, and why the operations were left out.
        """
        left_out: list[str] = []
        for repair in range(1, MAX_REPAIRS + 2):
            proof = await self.prove_bundle(bundle, report, timings, suite="", probe=probe)
            failures = [case for stage in proof.reports for case in stage.list_failures()]
            failed = {case.operation for case in failures}
            mended = await asyncio.to_thread(remove_operations, bundle, failed)
            if proof.passed or mended is None or repair > MAX_REPAIRS:
                break
            first = {case.operation: case for case in reversed(failures)}
            left_out += [f"{c.operation}: {c.case} failed: {c.evidence}" for c in first.values()]
            report(
                ForgeStep("repair", 0.5, f"round {repair}: left out {', '.join(sorted(failed))}")
            )
            bundle = mended
        return bundle, proof, tuple(left_out)

    async def prove_bundle(
        self,
        bundle: Bundle,
        report: Report,
        timings: dict[str, float],
        examples: Sequence[Example] | None = None,
        recorded: Sequence[RecordedCase] | None = None,
        suite: str | None = None,
        probe: ProbeBudget | None = None,
    ) -> Proof:
        """What the stages say of a bundle; with `examples`, those of code that somebody wrote; on
        the `recorded` cases and the tests of its `suite`, by default those of its server. With a
        `probe` the live stage learns.
        """
        live = self.brokers.build_read_broker(bundle)
        classified = await asyncio.to_thread(self.classify, bundle)
        withheld = {tool.name for tool in classified.tools if tool.access != "read"}
        if recorded is None:
            recorded = await asyncio.to_thread(self.shelf.load_recorded_cases, bundle.name)
        if suite is None:
            suite = await asyncio.to_thread(self.shelf.load_suite, bundle.name)
        proof = await prove_bundle(
            bundle,
            self.engine,
            live=live,
            examples=examples,
            suite=suite,
            recorded=recorded,
            available=self.engine.modules,
            on_stage=build_stage_listener(report, timings),
            probe=probe,
            withheld=withheld,
        )
        self._note_probe(bundle, proof)
        return proof

    def _note_probe(self, bundle: Bundle, proof: Proof) -> None:
        """Keep in the audit what the live stage asked of the API, by URL template and status."""
        asked = [
            case.evidence for each in proof.reports if each.stage == "live" for case in each.cases
        ]
        if asked and self.brokers.footnotes is not None:
            payload = {"version": bundle.version, "asked": asked}
            self.brokers.footnotes.add_row("probe", bundle.name, payload)

    async def prove_spec(
        self,
        bundle: Bundle,
        report: Report,
        timings: dict[str, float],
        examples: Sequence[Example],
        suite: str,
    ) -> Proof:
        """What the stages say of a bundle whose code is yet to be written."""
        on_stage = build_stage_listener(report, timings)
        return await prove_specification(bundle, self.engine, suite, examples, on_stage=on_stage)

    def _publish_bundle(
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
        entry = replace(build_entry(bundle, self.now(), state=state), source=source)
        return self.shelf.publish_bundle(
            bundle, entry, proof.reports, fence, examples, recorded, suite
        )


def _run_compiler(
    document: Document | DerivedDocument, order: ForgeOrder, auth: tuple[SecurityScheme, ...]
) -> Compilation:
    name, base_url = order.name or None, order.base_url or None
    if isinstance(document, DerivedDocument):
        return compile_derived(document, name=name, base_url=base_url, auth=auth)
    return compile_document(document, name=name, base_url=base_url, auth=auth)


def _mark_submitted(
    bundle: Bundle, order: ForgeOrder, given: Document | DerivedDocument | None
) -> Bundle:
    """The bundle with the order as its source where its description came with that, whatever place
    the order names beside it.
    """
    if given is not None or not order.document:
        return bundle
    return replace(bundle, provenance=replace(bundle.provenance, source=SUBMITTED))


def _find_source(document: Document | DerivedDocument) -> str:
    """Where a document is on this machine or the network; a URL for a file that was read alone,
    because a person granted no more.
    """
    if isinstance(document, DerivedDocument):
        return document.source
    if document.path is not None and document.directory is None:
        return f"{FILE}{document.path}"
    return str(document.path or document.url or document.name)
