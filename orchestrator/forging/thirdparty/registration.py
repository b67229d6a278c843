"""Registering a third-party MCP server: fetched, caged, listed, pinned, published."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator.approvals.granting import add_grant, revoke_permissions
from orchestrator.approvals.grants import Grants, find_secret_name
from orchestrator.errors import AddFailed
from orchestrator.forging.secret_scan import check_source
from orchestrator.forging.thirdparty.image import (
    PreparedSource,
    Progress,
    prepare_program,
    prepare_source,
)
from orchestrator.forging.thirdparty.source import ProgramSource, Source
from orchestrator.gateway.brokers import RESERVED_NAMES, render_reserved
from orchestrator.gateway.engine import Engine
from orchestrator.gateway.thirdparty import GrantedEnvironmentProvider
from registry.approvals.grants import GrantTable
from registry.errors import RowNotFound
from registry.models import Entry, EntryState, build_entry
from registry.secrets.signing import Signer
from registry.servers.bundles import Bundles
from registry.servers.entries import ServerTable
from sandbox.broker.broker import Broker
from sandbox.broker.live import LiveHttp
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.model import NAME, Bundle, Provenance
from sandbox.bundle.offer import ListedDefinitions
from sandbox.bundle.permissions import Permission, check_nesting, check_path
from sandbox.bundle.report import CaseResult, Finding, StageReport
from sandbox.engines.docker.engine import connect_engine
from sandbox.engines.docker.layers import remove_layer
from sandbox.errors import SandboxError
from sandbox.sanitize import clean_text
from sandbox.stages.static.definitions import (
    find_hidden_characters,
    find_orders,
    hidden_text,
    invalid_schema,
    orders,
)
from sandbox.thirdparty.offers import list_offer_changes, list_texts, read_offer
from sandbox.thirdparty.session import McpSession
from sandbox.thirdparty.tools import ToolListing, digest_definition, list_changes, read_listing
from sandbox.wire.policy import Policy

RULES = (invalid_schema, hidden_text, orders)

Tools = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Addition:
    """What a person wants: a source under a name, with permissions, and `secrets` (names in the
    vault, by variable). `reads` and `writes` are tools, by the server's names, that the person
    classified; `private` the hosts whose address may be private.
    """

    name: str
    source: Source
    permissions: tuple[Permission, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    experimental: bool = False


@dataclass(frozen=True)
class AddedServer:
    entry: Entry
    bundle: Bundle
    left_out: tuple[Finding, ...]
    unchanged: bool = False


@dataclass(frozen=True)
class Additions:
    """Registers servers that somebody else wrote. `private` are places that none of them gets."""

    servers: ServerTable
    grants: GrantTable
    consents: Grants
    shelf: Bundles
    engine: Engine
    outfit: GrantedEnvironmentProvider
    private: tuple[Path, ...] = ()

    async def add(self, addition: Addition, signer: Signer, progress: Progress) -> AddedServer:
        """Register a server, its grants signed. Raises AddFailed, and what fetching, starting and
        publishing raise.
        """
        current = self._current(addition.name)
        check_source(addition.source)
        check_nesting(addition.permissions)
        for permission in addition.permissions:
            if permission.kind == "fs":
                check_path(permission.name, self.private)
        became = await self._prepare(addition, progress)
        try:
            return await self._register(addition, became, current, signer, progress)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self._remove_image, became, current))
            raise

    async def _register(
        self,
        addition: Addition,
        became: PreparedSource,
        current: Entry | None,
        signer: Signer,
        progress: Progress,
    ) -> AddedServer:
        draft = _build_draft(addition, became, current.version + 1 if current else 1)
        progress("starting it twice, to see what it lists")
        started = time.perf_counter()
        with self.outfit.allow_declared(addition.name):
            first, second = await self._listed(draft), await self._listed(draft)
        elapsed = (time.perf_counter() - started) * 1000
        bundle, listing = _pin_definitions(draft, addition, first[0], second[0])
        bundle, unusable = _pin_offer(bundle, first[1], second[1])
        listing = replace(listing, problems=(*listing.problems, *unusable))
        reports = (_judge_definitions(draft, *first), _build_live_report(listing, elapsed))
        failed = [finding for report in reports for finding in report.findings]
        if failed and not addition.experimental:
            raise AddFailed(_render_findings(failed))
        added = self._published(bundle, current, reports, listing, bool(failed))
        self._grant(addition, added.bundle, signer)
        return added

    async def _prepare(self, addition: Addition, progress: Progress) -> PreparedSource:
        """Fetch the source, where it can run in a cage: else nothing is asked for it."""
        name, source = addition.name, addition.source
        if isinstance(source, ProgramSource):
            return prepare_program(source)
        self.engine.check_caged(name)
        return await self.engine.fetch(
            lambda labels: prepare_source(name, source, progress, labels)
        )

    def _remove_image(self, became: PreparedSource, current: Entry | None) -> None:
        """Remove the image that was built for a server which was not registered, unless the
        registered version runs on it.
        """
        if became.launch.way != "image":
            return
        with suppress(SandboxError):
            launch = self.shelf.load_bundle(current).launch if current else None
            if launch is None or launch.image != became.launch.image:
                remove_built_image(became.launch.image)

    def _current(self, name: str) -> Entry | None:
        """The registered server of that name. Raises AddFailed where we made it."""
        if not NAME.match(name):
            raise AddFailed(f"{name!r} is no name for a server: use small letters, digits and _.")
        if name in RESERVED_NAMES:
            raise AddFailed(render_reserved(name))
        try:
            current = self.servers.get(name)
        except RowNotFound:
            return None
        if current.created_by != AUTHOR:
            raise AddFailed(f"{name} is a server that Toolwright made. Choose another name.")
        return current

    async def _listed(self, draft: Bundle) -> tuple[Tools, ListedDefinitions]:
        """The tools of a server as sent, and what else it lists."""
        async with (
            LiveHttp() as nowhere,
            self.engine.open(draft, Broker(Policy(()), nowhere)) as session,
        ):
            assert isinstance(session, McpSession)
            return await session.list_tools(), await session.list_offers()

    def _published(
        self,
        bundle: Bundle,
        current: Entry | None,
        reports: tuple[StageReport, ...],
        listing: ToolListing,
        failed: bool,
    ) -> AddedServer:
        state: EntryState = "experimental" if failed else "active"
        if current is not None:
            again = replace(bundle, version=current.version)
            if again.compute_digest() == current.digest:
                self.servers.set_state(bundle.name, state, time.time(), "terminal", "added again")
                entry = replace(current, state=state)
                return AddedServer(entry, again, listing.problems, unchanged=True)
        entry = build_entry(bundle, time.time(), state, AUTHOR)
        return AddedServer(
            self.shelf.publish_bundle(bundle, entry, reports, None), bundle, listing.problems
        )

    def _grant(self, addition: Addition, bundle: Bundle, signer: Signer) -> None:
        name = addition.name
        wanted = {str(each): find_secret_name(each, bundle) for each in addition.permissions}
        gone = self.consents.find_permissions(name).keys() - wanted.keys()
        revoke_permissions(self.grants, name, sorted(gone), "terminal", time.time())
        for permission, secret in sorted(wanted.items()):
            add_grant(self.grants, f"{name} {permission}", "permission", "terminal", signer, secret)
        for host in addition.private:
            add_grant(self.grants, host, "private_host", "terminal", signer)


def remove_built_image(image: str) -> None:
    """Remove an image that was built for a server; others stay. Raises EngineUnavailable."""
    with closing(connect_engine()) as client:
        remove_layer(client, image)


def _build_draft(addition: Addition, became: PreparedSource, version: int) -> Bundle:
    made = Provenance(became.origin, became.digest, author=AUTHOR)
    return Bundle(
        name=addition.name,
        version=version,
        title=clean_text(became.title)[:200] or addition.name,
        base_url="",
        source_code=became.script or "# A third-party server: launch.json says how it starts.\n",
        tools=(),
        provenance=made,
        permissions=tuple(map(str, addition.permissions)),
        launch=replace(became.launch, secrets=dict(addition.secrets)),
    )


def _pin_definitions(
    draft: Bundle, addition: Addition, first: Tools, second: Tools
) -> tuple[Bundle, ToolListing]:
    """The bundle with its definitions and their pins. Raises AddFailed."""
    differing = list_changes({str(t.get("name")): digest_definition(t) for t in first}, second)
    if differing:
        told = "; ".join(differing[:5])
        raise AddFailed(
            f"it lists other tools each time it starts ({told}): they cannot be pinned."
        )
    listing = read_listing(first, reads=addition.reads, writes=addition.writes)
    unknown = {*addition.reads, *addition.writes} - {tool.original for tool in listing.remote}
    if unknown:
        raise AddFailed(f"it has no tool {', '.join(sorted(unknown))[:200]}.")
    if not listing.tools and listing.problems:
        raise AddFailed(f"it lists no tool that can be used. {_render_findings(listing.problems)}")
    assert draft.launch is not None
    launch = replace(draft.launch, tools=listing.remote, pins=listing.pins)
    return replace(draft, tools=listing.tools, launch=launch), listing


def _pin_offer(
    bundle: Bundle, first: ListedDefinitions, second: ListedDefinitions
) -> tuple[Bundle, tuple[Finding, ...]]:
    """The bundle with what else the server lists, pinned, and what of that cannot be used. Raises
    AddFailed.
    """
    offer, problems = read_offer(first, second)
    differing = list_offer_changes(offer.pins, second)
    if differing:
        told = "; ".join(differing[:5])
        raise AddFailed(f"it lists other prompts or resources each time it starts ({told}).")
    if not bundle.tools and not offer.pins and "resources" not in offer.abilities:
        raise AddFailed("it lists no tool, no prompt and no resource.")
    assert bundle.launch is not None
    return replace(bundle, launch=replace(bundle.launch, offer=offer)), problems[:50]


def _judge_definitions(draft: Bundle, listed: Tools, more: ListedDefinitions) -> StageReport:
    """The definitions as they were sent, by the rules that need no code of ours."""
    started = time.perf_counter()
    raw = replace(draft, tools=read_listing(listed, clean=False).tools)
    findings = tuple(
        Finding("tools/list", where[:200], rule.__name__.replace("_", "-"), reason[:300])
        for rule in RULES
        for where, reason in rule(raw)
    )
    findings = (*findings, *_find_suspicious(more))[:200]
    elapsed = (time.perf_counter() - started) * 1000
    return StageReport("static", "failed" if findings else "passed", elapsed, findings=findings)


def _find_suspicious(listed: ListedDefinitions) -> Iterator[Finding]:
    """What is wrong with the texts of prompts and resources, by the rules for those of tools."""
    for where, text in list_texts(listed):
        for rule, problem in (
            ("hidden-text", find_hidden_characters(text)),
            ("orders", find_orders(text)),
        ):
            if problem:
                yield Finding("prompts and resources", where[:200], rule, problem[:300])


def _build_live_report(listing: ToolListing, elapsed: float) -> StageReport:
    cases = tuple(CaseResult(tool.name, "listed twice", "passed") for tool in listing.tools)
    note = f"{len(listing.problems)} definitions cannot be used" if listing.problems else ""
    return StageReport("live", "passed", elapsed, cases=cases, note=note)


def _render_findings(findings: tuple[Finding, ...] | list[Finding]) -> str:
    lines = [f"{finding.where}: {finding.rule}: {finding.reason}" for finding in findings[:20]]
    advice = "\nLook at them; --experimental registers it all the same, asking before every call."
    return "its tool definitions are not fit to be shown to a model:\n" + "\n".join(lines) + advice
