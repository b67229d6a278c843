"""The API that a draft declares for itself: claims that are checked against the documentation which
the order names, or against the task's own words, and compiled like any description.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from forge.documentation.checking import LocatedClaims
from forge.documentation.claims import is_api_claims, parse_api_claims
from forge.documentation.to_openapi import compile_derived, derive_document
from forge.drafts.calls import resolve_calls
from forge.drafts.diagnosis import Diagnosis
from forge.drafts.draft import Draft
from forge.errors import ForgeError
from forge.readers.document import DocumentProblem
from forge.readers.page import Page, parse_page
from orchestrator.errors import ForgeFailed, ProseFound, SourceMissing
from orchestrator.forging.descriptions import Descriptions
from orchestrator.forging.drafts.proposal import Proposal
from orchestrator.forging.order import NO_SOURCE, ForgeOrder, Report
from orchestrator.forging.secret_scan import SecretScan
from sandbox.bundle.model import Bundle

TASK = "the task"
"""The location of the page that the task's own words are."""
MAX_TOLD = 8


@dataclass(frozen=True)
class DeclaredApis:
    """Compiles what drafts declare of their APIs."""

    descriptions: Descriptions
    scan: SecretScan = field(default_factory=SecretScan)

    async def resolve_api(self, proposal: Proposal) -> Proposal | tuple[Diagnosis, ...]:
        """The proposal with its API, and each tool's `calls` as requests; or what is wrong. Raises
        ForgeWaits and what finding the documentation raises.
        """
        claims = proposal.row.content.get("api")
        parent = proposal.brief.parent
        if not claims and not proposal.draft.calls:
            return proposal
        api: Bundle | None = None
        if claims:
            if parent is not None:
                reason = "a changed server keeps its parent's API: leave `api` out"
                return (Diagnosis("draft", "/api", "", reason),)
            pages = await self._load_pages(proposal.order, proposal.report)
            shown = await asyncio.to_thread(self._find_shown_credentials, proposal, pages)
            if shown:
                return shown
            found = await asyncio.to_thread(_compile_api, pages, claims, proposal.brief.name)
            if not isinstance(found, Bundle):
                return found
            api = found
        base = api or parent
        draft = resolve_calls(
            proposal.draft, base.spec if base else None, base.base_url if base else ""
        )
        if not isinstance(draft, Draft):
            return tuple(Diagnosis("draft", p.where, "", p.reason) for p in draft)
        return replace(proposal, draft=draft, api=api)

    def _find_shown_credentials(
        self, proposal: Proposal, pages: Iterable[Page]
    ) -> tuple[Diagnosis, ...]:
        """The credentials of the documentation's examples that the draft took over."""
        found = self.scan.find_problems(proposal.row.content, (page.text for page in pages))
        return tuple(Diagnosis("draft", each.where, "", each.reason) for each in found[:MAX_TOLD])

    async def _load_pages(self, order: ForgeOrder, report: Report) -> tuple[Page, ...]:
        """The documentation that an order names; without one, the task itself."""
        if order.source and order.source != NO_SOURCE:
            try:
                await self.descriptions.find_document(replace(order, document=""), report)
            except ProseFound as found:
                return await self.descriptions.gather_pages(found.place, found.pages)
            except SourceMissing:
                pass
            else:
                raise ForgeFailed(
                    f"{order.source} has a machine-readable description: `forge` without code "
                    "makes a server of it, and code changes that one (parent=SERVER)."
                )
        page = parse_page(TASK, order.task.encode("utf-8", "replace"))
        return (page,) if page is not None else (Page(TASK, b"", ""),)


def _compile_api(
    pages: tuple[Page, ...], claims: Mapping[str, Any], name: str
) -> Bundle | tuple[Diagnosis, ...]:
    """Every claim has to be quoted: here nothing is left out quietly, the code depends on it."""
    if not is_api_claims(claims):
        return (Diagnosis("draft", "/api", "", "is no object with `operations`"),)
    answers = (LocatedClaims(pages[0].location, "/api", parse_api_claims(claims)),)
    try:
        made = derive_document(pages, answers, "client", (json.dumps(claims, sort_keys=True),))
        wrong = [p for p in made.problems if p.pointer.startswith("/api")]
        if wrong:
            return _diagnose_claims(wrong)
        compilation = compile_derived(made, name=name, base_url=None)
    except ForgeError as error:
        problems = getattr(error, "problems", ())
        return _diagnose_claims(problems) or (Diagnosis("draft", "/api", "", str(error)),)
    return compilation.bundle


def _diagnose_claims(problems: Any) -> tuple[Diagnosis, ...]:
    told = [p for p in problems if isinstance(p, DocumentProblem)][:MAX_TOLD]
    return tuple(
        Diagnosis("draft", p.pointer or "/api", "", f"{p.reason} ({p.file})"[:600]) for p in told
    )
