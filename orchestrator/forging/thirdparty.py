"""Registering somebody else's MCP server: fetched, caged, listed, pinned, published."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.app import App
from orchestrator.consents import secret_of
from orchestrator.errors import AddFailed
from orchestrator.granting import grant, revoke_permissions
from orchestrator.preparing import Prepared, Progress, prepared
from orchestrator.sources import Source
from registry.errors import Unknown
from registry.records import Entry, EntryState, entry_from
from registry.signing import Signer
from sandbox.broker import Broker
from sandbox.bundle import NAME, Bundle, Provenance
from sandbox.cleantext import clean_text
from sandbox.launch import AUTHOR
from sandbox.livehttp import LiveHttp
from sandbox.mcp_session import McpSession
from sandbox.offer import Listed, offer_changes, read_offer, texts
from sandbox.permissions import Permission, check_nesting, check_path
from sandbox.policy import Policy
from sandbox.remotetools import Listing, changes, definition_digest, read_listing
from sandbox.report import CaseResult, Finding, StageReport
from sandbox.static.definitions import hidden_characters, hidden_text, invalid_schema
from sandbox.static.orders import orders, orders_in

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
class Added:
    entry: Entry
    bundle: Bundle
    left_out: tuple[Finding, ...]
    unchanged: bool = False


async def add(app: App, addition: Addition, signer: Signer, progress: Progress) -> Added:
    """Register a server, its grants signed. Raises AddFailed, and what fetching, starting and
    publishing raise.
    """
    current = _current(app, addition.name)
    check_nesting(addition.permissions)
    for permission in addition.permissions:
        if permission.kind == "fs":
            check_path(permission.name, app.settings.of_engine.private)
    became = await asyncio.to_thread(prepared, addition.name, addition.source, progress)
    draft = _draft(addition, became, current.version + 1 if current else 1)
    progress("starting it twice, to see what it lists")
    started = time.perf_counter()
    with app.outfit.trial(addition.name):
        first, second = await _listed(app, draft), await _listed(app, draft)
    elapsed = (time.perf_counter() - started) * 1000
    bundle, listing = _pinned(draft, addition, first[0], second[0])
    bundle, unusable = _offering(bundle, first[1], second[1])
    listing = replace(listing, problems=(*listing.problems, *unusable))
    reports = (_judged(draft, *first), _seen(listing, elapsed))
    failed = [finding for report in reports for finding in report.findings]
    if failed and not addition.experimental:
        raise AddFailed(_told(failed))
    added = _published(app, bundle, current, reports, listing, bool(failed))
    _grant(app, addition, added.bundle, signer)
    return added


def _current(app: App, name: str) -> Entry | None:
    """The registered server of that name. Raises AddFailed where we made it."""
    if not NAME.match(name):
        raise AddFailed(f"{name!r} is no name for a server: use small letters, digits and _.")
    try:
        current = app.store.entry(name)
    except Unknown:
        return None
    if current.created_by != AUTHOR:
        raise AddFailed(f"{name} is a server that Toolwright made. Choose another name.")
    return current


def _draft(addition: Addition, became: Prepared, version: int) -> Bundle:
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


async def _listed(app: App, draft: Bundle) -> tuple[Tools, Listed]:
    """The tools of a server as sent, and what else it lists."""
    async with (
        LiveHttp() as nowhere,
        app.dispatch.execution.engine.open(draft, Broker(Policy(()), nowhere)) as session,
    ):
        assert isinstance(session, McpSession)
        return await session.list_tools(), await session.listed()


def _pinned(
    draft: Bundle, addition: Addition, first: Tools, second: Tools
) -> tuple[Bundle, Listing]:
    """The bundle with its definitions and their pins. Raises AddFailed."""
    differing = changes({str(t.get("name")): definition_digest(t) for t in first}, second)
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
        raise AddFailed(f"it lists no tool that can be used. {_told(listing.problems)}")
    assert draft.launch is not None
    launch = replace(draft.launch, tools=listing.remote, pins=listing.pins)
    return replace(draft, tools=listing.tools, launch=launch), listing


def _offering(bundle: Bundle, first: Listed, second: Listed) -> tuple[Bundle, tuple[Finding, ...]]:
    """The bundle with what else the server lists, pinned, and what of that cannot be used. Raises
    AddFailed.
    """
    offer, problems = read_offer(first, second)
    differing = offer_changes(offer.pins, second)
    if differing:
        told = "; ".join(differing[:5])
        raise AddFailed(f"it lists other prompts or resources each time it starts ({told}).")
    if not bundle.tools and not offer.pins and "resources" not in offer.abilities:
        raise AddFailed("it lists no tool, no prompt and no resource.")
    assert bundle.launch is not None
    return replace(bundle, launch=replace(bundle.launch, offer=offer)), problems[:50]


def _judged(draft: Bundle, listed: Tools, more: Listed) -> StageReport:
    """The definitions as they were sent, by the rules that need no code of ours."""
    started = time.perf_counter()
    raw = replace(draft, tools=read_listing(listed, clean=False).tools)
    findings = tuple(
        Finding("tools/list", where[:200], rule.__name__.replace("_", "-"), reason[:300])
        for rule in RULES
        for where, reason in rule(raw)
    )
    findings = (*findings, *_suspicious(more))[:200]
    elapsed = (time.perf_counter() - started) * 1000
    return StageReport("static", "failed" if findings else "passed", elapsed, findings=findings)


def _suspicious(listed: Listed) -> Iterator[Finding]:
    """What is wrong with the texts of prompts and resources, by the rules for those of tools."""
    for where, text in texts(listed):
        for rule, problem in (
            ("hidden-text", hidden_characters(text)),
            ("orders", orders_in(text)),
        ):
            if problem:
                yield Finding("prompts and resources", where[:200], rule, problem[:300])


def _seen(listing: Listing, elapsed: float) -> StageReport:
    cases = tuple(CaseResult(tool.name, "listed twice", "passed") for tool in listing.tools)
    note = f"{len(listing.problems)} definitions cannot be used" if listing.problems else ""
    return StageReport("live", "passed", elapsed, cases=cases, note=note)


def _grant(app: App, addition: Addition, bundle: Bundle, signer: Signer) -> None:
    store, name = app.store, addition.name
    wanted = {str(permission): secret_of(permission, bundle) for permission in addition.permissions}
    gone = app.consents.permissions(name).keys() - wanted.keys()
    revoke_permissions(store, name, sorted(gone), "terminal", time.time())
    for permission, secret in sorted(wanted.items()):
        grant(store, f"{name} {permission}", "permission", "terminal", signer, secret)
    for host in addition.private:
        grant(store, host, "private_host", "terminal", signer)


def _published(
    app: App,
    bundle: Bundle,
    current: Entry | None,
    reports: tuple[StageReport, ...],
    listing: Listing,
    failed: bool,
) -> Added:
    state: EntryState = "experimental" if failed else "active"
    if current is not None:
        again = replace(bundle, version=current.version)
        if again.digest() == current.digest:
            app.store.set_state(bundle.name, state, time.time(), "terminal", "added again")
            entry = replace(current, state=state)
            return Added(entry, again, listing.problems, unchanged=True)
    entry = entry_from(bundle, time.time(), state, AUTHOR)
    return Added(app.forge.shelf.publish(bundle, entry, reports, None), bundle, listing.problems)


def _told(findings: tuple[Finding, ...] | list[Finding]) -> str:
    lines = [f"{finding.where}: {finding.rule}: {finding.reason}" for finding in findings[:20]]
    advice = "\nLook at them; --experimental registers it all the same, asking before every call."
    return "its tool definitions are not fit to be shown to a model:\n" + "\n".join(lines) + advice
