"""The forge: from an API description to a registered server (find, compile, prove, publish)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace

from forge.compiler.compile import (
    Compilation,
    compile_document,
    remove_operations,
)
from forge.compiler.selection import parse_credential
from forge.documentation.to_openapi import DerivedDocument, compile_derived
from forge.readers.document import Document
from forge.sources import FILE
from forge.text import render_count
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.needs import forge_waits
from orchestrator.errors import ForgeFailed, ForgeWaits, SuccessionUndecided
from orchestrator.forging.carrying import (
    carry_over_credentials,
    carry_over_given,
    carry_over_learned,
    declare_for,
)
from orchestrator.forging.contact.base_offer import offer_base_url
from orchestrator.forging.contact.wanted import find_wanted_credentials
from orchestrator.forging.descriptions import (
    SUBMITTED,
    Descriptions,
    check_hosts,
    find_unnamed,
)
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
from orchestrator.forging.twins import find_twin
from orchestrator.gateway.brokers import (
    RESERVED_NAMES,
    BrokerFactory,
    render_reserved,
)
from orchestrator.gateway.engine import Engine
from registry.errors import RowNotFound, VersionConflict
from registry.models import CALLABLE, Entry, EntryState, build_entry
from registry.needs import OrderNeed
from registry.servers.bundles import Bundles
from registry.servers.entries import ServerTable
from sandbox.bundle.apispec import SecurityScheme
from sandbox.bundle.example import Example
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof
from sandbox.errors import BundleInvalid
from sandbox.killswitch import KillSwitch
from sandbox.session.recorded_case import RecordedCase
from sandbox.stages.probe.budget import ProbeBudget
from sandbox.stages.prove import (
    find_live_obstacle,
    prove_bundle,
    prove_specification,
    prove_widened,
)

MAX_TRIED_AGAIN = 20
"""Operations that failed are tried by themselves where they are no more: more is no accident."""


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
        description is looked for where none is `given`. Where another version of the server is
        registered meanwhile, it is compiled and proved once more as the next one.

        Raises ForgeWaits where a person must first allow a host or give a credential,
        SuccessionUndecided where it would follow a registered server as only a person lets it,
        SourceMissing where no API is named, ProseFound where only people can read its
        documentation, ForgeFailed, DocumentError, SandboxError, RegistryError; nothing is
        registered then.
        """
        try:
            return await self._forge_version(order, report, fence, given)
        except VersionConflict as overtaken:
            report(ForgeStep("register", 0.1, f"{overtaken} It is made again."))
            return await self._forge_version(order, report, fence, given)

    async def _forge_version(
        self,
        order: ForgeOrder,
        report: Report,
        fence: tuple[str, int] | None,
        given: Document | DerivedDocument | None,
    ) -> ForgeResult:
        """Raises as `forge_server`, and VersionConflict where another version came first."""
        timings: dict[str, float] = {}
        with time_stage(timings, "find"):
            document = given or await self.descriptions.find_document(order, report)
        with time_stage(timings, "compile"):
            compilation = await asyncio.to_thread(self._compile_untwinned, document, order)
            bundle = self.assign_version(_mark_submitted(compilation.bundle, order, given))
            self._check_succession(bundle, _find_source(document))
            count = render_count(len(bundle.tools), "tool")
            left = render_count(len(compilation.problems), "problem")
            report(ForgeStep("compile", 0.25, f"{count} of {document.name}; {left}"))
        if given is None and self.descriptions.services is not None:
            self.descriptions.services.check_servers(bundle, order)
        try:
            check_hosts(self.consents, bundle)
        except ForgeWaits as wait:
            raise offer_base_url(wait, bundle, document, order) from wait
        probe = replace(self.probe, requests=0) if order.no_probe else self.probe
        left_out: tuple[str, ...] = ()
        known = await asyncio.to_thread(self._find_proof, bundle, probe)
        if known is not None:
            proof = known
            report(ForgeStep("mock", PROGRESS["live"], "the same as registered: proved already"))
        else:
            bundle, proof, left_out = await self._prove_with_repairs(bundle, report, timings, probe)
            with time_stage(timings, "learn"):
                bundle, proof = await self._learn_from_probe(bundle, proof, report)
        if not proof.passed and not (order.experimental and proof.admissible):
            raise ForgeFailed(render_refusal(proof))
        with time_stage(timings, "register"):
            # A page that an order names beside its document is not what it was made from.
            handed_in = bundle.provenance.source == SUBMITTED
            source = SUBMITTED if handed_in else _find_source(document)
            entry = await self.register_bundle(bundle, proof, (), fence, report, source, suite="")
        problems = (*map(str, compilation.problems), *left_out)
        wanted = find_wanted_credentials(bundle, self.brokers.build_credentials(bundle))
        return ForgeResult(entry, bundle, proof, problems, timings, wanted, known is not None)

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

    async def declare_credential(
        self, name: str, scheme: SecurityScheme, report: Report
    ) -> ForgeResult:
        """A registered server's next version, which takes a credential that its description forgot.
        Proved as any other. Raises as `build_declaring`, and as `adopt_bundle`.
        """
        entry = self.servers.get(name)
        timings: dict[str, float] = {}
        versioned = self.assign_version(await asyncio.to_thread(self.build_declaring, name, scheme))
        examples = await asyncio.to_thread(self.shelf.load_edited_examples, name)
        check_hosts(self.consents, versioned)
        proof = await self.prove_bundle(versioned, report, timings, examples or None)
        if not proof.passed:
            raise ForgeFailed(render_refusal(proof))
        made = await self.register_bundle(
            versioned, proof, examples, None, report, source=entry.source
        )
        return ForgeResult(made, versioned, proof, (), timings)

    def build_declaring(self, name: str, scheme: SecurityScheme) -> Bundle:
        """The bundle of a registered server with one more credential. Raises RowNotFound,
        ForgeFailed for what speaks to no API over HTTP, CredentialTaken.
        """
        bundle = self.shelf.load_bundle(self.servers.get(name))
        return declare_for(bundle, scheme)

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
        earlier = self._load_earlier(entry.name)
        if earlier is not None and earlier.provenance.source == SUBMITTED:
            raise ForgeFailed(
                f"the description of {entry.name} was handed in: no page stands for it. `forge` "
                "again with a source, or hand in the description as it is by now."
            )
        found = await self.descriptions.load_document(entry.source, report)
        if isinstance(found, str):
            raise ForgeFailed(f"its description is not there any more ({found}).")
        order = ForgeOrder(source=entry.source, name=entry.name)
        return (await asyncio.to_thread(self._compile_document, found, order)).bundle

    def _compile_untwinned(
        self, document: Document | DerivedDocument, order: ForgeOrder
    ) -> Compilation:
        """The description compiled under the name of the registered server that does the same, if
        there is one and no name was given.
        """
        made = self._compile_document(document, order)
        twin = None if order.name else find_twin(self.servers.find(CALLABLE), made.bundle)
        if twin is None:
            return made
        return self._compile_document(document, replace(order, name=twin.name))

    def _compile_document(
        self, document: Document | DerivedDocument, order: ForgeOrder
    ) -> Compilation:
        auth = tuple(map(parse_credential, order.auth))
        made = _run_compiler(document, order, auth)
        earlier = self._load_earlier(made.bundle.name)
        if earlier is None:
            return made
        fresh = made.bundle if auth else carry_over_given(made.bundle, earlier)
        written = carry_over_credentials(fresh, earlier.credentials)
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
            if hosts := find_unnamed(self.consents, bundle):
                raise forge_waits(OrderNeed((need, *hosts)))
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

    def _find_proof(self, bundle: Bundle, probe: ProbeBudget) -> Proof | None:
        """The proof that the registered version with the very same files passed. None where there
        is none, or where it left something out that could be tried by now: the API, or the cases of
        calls that failed since.
        """
        try:
            entry = self.servers.get(bundle.name)
        except RowNotFound:
            return None
        if entry.state != "active" or entry.digest != bundle.compute_digest():
            return None
        proof = Proof(entry.digest, self.servers.get_reports(entry.name, entry.version))
        passed = {report.stage for report in proof.reports if report.verdict == "passed"}
        if not proof.passed or not passed >= {"static", "mock"}:
            return None
        if "recorded" not in passed and self.shelf.load_recorded_cases(bundle.name):
            return None
        live, withheld = self.brokers.build_read_broker(bundle), self._find_withheld(bundle)
        if "live" in passed or find_live_obstacle(bundle, live, probe, withheld):
            return proof
        return None

    def _find_withheld(self, bundle: Bundle) -> set[str]:
        """The tools that people say write."""
        return {tool.name for tool in self.classify(bundle).tools if tool.access != "read"}

    async def _prove_with_repairs(
        self, bundle: Bundle, report: Report, timings: dict[str, float], probe: ProbeBudget
    ) -> tuple[Bundle, Proof, tuple[str, ...]]:
        """Prove; at most three times leave out the operations that failed, and prove again.

        The bundle as it was proved last, and why the operations were left out.
        """
        left_out: list[str] = []
        spared: set[str] = set()
        for repair in range(1, MAX_REPAIRS + 2):
            proof = await self.prove_bundle(bundle, report, timings, suite="", probe=probe)
            failures = [case for stage in proof.reports for case in stage.list_failures()]
            failed = {case.operation for case in failures}
            if failed and repair <= MAX_REPAIRS:
                passing = await self._find_passing(bundle, proof, failed - spared)
                spared |= passing
                if failed == passing:
                    report(ForgeStep("repair", 0.5, f"round {repair}: what failed passes"))
                    continue
                failed -= passing
            mended = await asyncio.to_thread(remove_operations, bundle, failed)
            if proof.passed or mended is None or repair > MAX_REPAIRS:
                break
            first = {c.operation: c for c in reversed(failures) if c.operation in failed}
            left_out += [f"{c.operation}: {c.case} failed: {c.evidence}" for c in first.values()]
            report(
                ForgeStep("repair", 0.5, f"round {repair}: left out {', '.join(sorted(failed))}")
            )
            bundle = mended
        return bundle, proof, tuple(left_out)

    async def _find_passing(self, bundle: Bundle, proof: Proof, failed: Set[str]) -> set[str]:
        """Those of a few operations that failed which pass when they are tried again by themselves:
        a cell fails by its clock too, on a machine that is busy. Only the mock stage is tried
        again, which asks no API; the whole has to be proved after it all the same.
        """
        known = {operation.id for operation in bundle.spec.operations} if bundle.spec else set()
        stages = {stage.stage for stage in proof.reports if stage.list_failures()}
        if stages != {"mock"} or not 0 < len(failed) <= MAX_TRIED_AGAIN or not failed <= known:
            return set()
        alone = await asyncio.to_thread(remove_operations, bundle, known - failed) or bundle
        again = await prove_bundle(alone, self.engine, available=self.engine.modules, lanes=1)
        if again.passed:
            return set(failed)
        cells = [case for stage in again.reports for case in stage.list_failures()]
        return {*failed} - {case.operation for case in cells} if cells else set()

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
        withheld = await asyncio.to_thread(self._find_withheld, bundle)
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
