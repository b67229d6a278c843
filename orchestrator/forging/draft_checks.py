"""What a draft needs of a person: permissions before it runs, its tests before it is registered."""

from __future__ import annotations

from collections.abc import Sequence

from forge.draft import ASKED_LOCALLY
from forge.suite import altered
from orchestrator.acceptance import READ_BY
from orchestrator.composing import is_told_of_nothing
from orchestrator.consents import Consents
from orchestrator.errors import Unasked
from orchestrator.hosts import NETWORK, check_hosts
from orchestrator.needs import are_allowed, permission_needs, tests_needs, ungranted
from orchestrator.proposals import Proposal
from registry.records import DraftRow
from sandbox.asked import METHODS
from sandbox.bundle import Bundle
from sandbox.meaning import meaning

REACHING = tuple(f"{kind}:" for kind in METHODS)
ASKED_BY_PERSON = (NETWORK, *REACHING)
"""Permissions that a person can grant: what a server may reach."""


def check_permissions(consents: Consents, proposal: Proposal, bundle: Bundle) -> None:
    """What a model asks for beyond the parent's permissions is a person's to allow, and what
    reaches this machine or further whoever asks. Raises Unasked, ForgeWaits.
    """
    before = proposal.brief.parent.permissions if proposal.brief.parent else ()
    wanted = [p for p in bundle.permissions if p not in before]
    missing = ungranted(consents, bundle.name, _asked(proposal, wanted))
    if missing:
        needs = permission_needs(proposal.job.id, bundle.name, missing)
        what = "\n  and for ".join(f"{p}, {meaning(p)}" for p in missing)
        how = f"Allow that: {needs['how']}; or hand in a draft that asks for less"
        raise Unasked(f"{bundle.name} asks for {what}.\n{how}", needs)
    if proposal.row.author != "client":
        check_hosts(consents, bundle, wanted)


def check_tests(consents: Consents, proposal: Proposal) -> None:
    """Code that passes other tests than were written before it is a person's to take: what
    changed may be a mistake of the tests, or the one that they found. Raises Unasked.
    """
    job, draft, parent = proposal.job, proposal.draft, proposal.parent
    before = {tool.name for tool in parent.bundle.tools} if parent else set()
    gone = before - {tool.name for tool in draft.tools}
    suites = _binding(proposal)
    changed = [name for suite in suites for name in altered(draft.tests, suite, gone)]
    if changed and not are_allowed(consents, job.id, draft.tests):
        needs = tests_needs(job.id, dict.fromkeys(changed), draft.tests)
        raise Unasked(
            f"the draft passes, with other tests than before ({needs['what']}). Look at them, "
            f"and take it: {needs['how']}; or hand in a draft that passes the earlier ones",
            needs,
        )


def _asked(proposal: Proposal, wanted: Sequence[str]) -> list[str]:
    """Those permissions that somebody has to grant the server by name; hosts are allowed by
    themselves.
    """
    asked = [p for p in wanted if not p.startswith(NETWORK)]
    if proposal.row.author == "client":
        asked = [p for p in asked if p.partition(":")[0] in (*ASKED_LOCALLY, *METHODS)]
    if proposal.brief.parent is not None:
        asked = [p for p in asked if p.startswith(REACHING)]
    return asked


def _binding(proposal: Proposal) -> list[str]:
    """The suites that the code has to pass: of the earlier drafts, and of the parent."""
    kept = proposal.drafts[_overturned(proposal.drafts) : -1]
    suites = [str(row.content.get("tests", "")) for row in kept if _is_proved(row)]
    return [*suites, proposal.parent.suite] if proposal.parent else suites


def _overturned(drafts: Sequence[DraftRow]) -> int:
    """How many of the drafts agreed with a mistake that a second reading of the task found: their
    tests have to change, and bind nobody.
    """
    at = [number for number, row in enumerate(drafts, 1) if _is_overturned(row)]
    return at[-1] if at else 0


def _is_overturned(row: DraftRow) -> bool:
    found = (report for report in row.reports if report.get("stage") == "acceptance")
    return any(r.get("verdict") == "failed" and READ_BY in str(r.get("note")) for r in found)


def _is_proved(row: DraftRow) -> bool:
    """Whether the stages said of a draft's tests that they prove something."""
    suites = [report for report in row.reports if report.get("stage") == "suite"]
    cells = [cell for report in suites for cell in report.get("cases", ())]
    stubbed = any(map(is_told_of_nothing, cells))
    return bool(suites) and not stubbed and not any(r.get("findings") for r in suites)
