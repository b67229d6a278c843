"""Checks of drafts: permissions that a person has to grant before they run, and changed tests
before they are registered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forge.documentation.claims import is_api_claims
from forge.drafts.draft import ASKED_LOCALLY, Draft
from forge.drafts.held_out import find_repeated_cases
from forge.drafts.literals import find_unasked_literals
from forge.drafts.review import parse_claims
from forge.drafts.suite import MAX_CHANGED_LINES, find_altered_tests, list_test_changes
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.needs import (
    are_tests_allowed,
    find_ungranted,
    list_need_items,
    render_need,
    render_way,
    suite_need,
)
from orchestrator.errors import ModelNotAsked
from orchestrator.forging.descriptions import NETWORK, check_hosts, find_unnamed
from orchestrator.forging.drafts.proposal import Proposal
from orchestrator.forging.order import ForgeOrder
from orchestrator.forging.packages import find_unallowed
from registry.models import DraftRow
from registry.needs import OrderNeed, PermissionNeed, join_needs
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import (
    METHODS,
    explain_permission,
    find_place_problem,
    parse_permissions,
)
from sandbox.schemas.validator import SchemaViolation
from sandbox.stages.static.stage import prove_static

REACHING = tuple(f"{kind}:" for kind in METHODS)
ASKED_BY_PERSON = (NETWORK, *REACHING)
"""Permissions that a person can grant: what a server may reach."""


def check_permissions(consents: Grants, proposal: Proposal, bundle: Bundle) -> None:
    """What a model asks for beyond the parent's permissions is a person's to allow, and what
    reaches this machine or further whoever asks. Raises Unasked, ForgeWaits.
    """
    before = proposal.brief.parent.permissions if proposal.brief.parent else ()
    wanted = [p for p in bundle.permissions if p not in before]
    missing = find_ungranted(consents, bundle.name, _find_asked(proposal, wanted))
    if missing:
        need = PermissionNeed(bundle.name, missing)
        what = "\n  and for ".join(f"{p}, {explain_permission(p)}" for p in missing)
        way = render_way(need, proposal.job.id)
        how = f"Allow that: {way}; or hand in a draft that asks for less"
        raise ModelNotAsked(f"{bundle.name} asks for {what}.\n{how}", need)
    if proposal.row.author != "client":
        check_hosts(consents, bundle, wanted)


def check_order(consents: Grants, proposal: Proposal, bundle: Bundle) -> None:
    """What a person has to allow before a draft is proved, as one question where it is several
    things: packages, permissions and hosts. Raises ModelNotAsked.
    """
    before = proposal.brief.parent.permissions if proposal.brief.parent else ()
    wanted = [p for p in bundle.permissions if p not in before]
    missing = find_ungranted(consents, bundle.name, _find_asked(proposal, wanted))
    packages = find_unallowed(consents, proposal.draft.packages)
    # What the static stage refuses asks nobody for a host; what imports packages it can judge only
    # once they are locked.
    fit = bool(proposal.draft.packages) or prove_static(bundle).passed
    parts = (
        *((packages,) if packages else ()),
        *((PermissionNeed(bundle.name, missing),) if missing else ()),
        *(find_unnamed(consents, bundle, wanted) if fit else ()),
    )
    need = join_needs(parts)
    if isinstance(need, OrderNeed):
        asked = "\n  and for ".join(list_need_items(need))
        way = render_way(need, proposal.job.id)
        raise ModelNotAsked(
            f"{bundle.name} asks for {asked}.\nAllow all of that: {way}; or hand in a draft that "
            "asks for less",
            need,
        )


def check_tests(consents: Grants, proposal: Proposal) -> None:
    """Code that passes other tests than were written before it is a person's to take: what
    changed may be a mistake of the tests, or the one that they found. Raises Unasked.
    """
    job, draft, parent = proposal.job, proposal.draft, proposal.parent
    before = {tool.name for tool in parent.bundle.tools} if parent else set()
    gone = before - {tool.name for tool in draft.tools}
    suites = _find_binding_suites(proposal)
    changed: dict[str, str] = {}
    for suite in suites:
        for name in find_altered_tests(draft.tests, suite, gone):
            changed.setdefault(name, suite)
    if changed and not are_tests_allowed(consents, job.id, draft.tests):
        lines = [
            line
            for name, suite in changed.items()
            for line in list_test_changes(draft.tests, suite, (name,))
        ]
        need = suite_need(changed, draft.tests, lines[:MAX_CHANGED_LINES])
        way = render_way(need, job.id)
        raise ModelNotAsked(
            f"nothing is registered yet: the draft passes, with other tests than before "
            f"({render_need(need)}), and a person has to look at what changed of them. Tell the "
            f"user to run `{way}`. Where the earlier tests were right, hand in a draft that passes "
            "them instead",
            need,
        )


def _find_asked(proposal: Proposal, wanted: Sequence[str]) -> list[str]:
    """Those permissions that somebody has to grant the server by name; hosts are allowed by
    themselves.
    """
    asked = [p for p in wanted if not p.startswith(NETWORK)]
    if proposal.row.author == "client":
        asked = [p for p in asked if p.partition(":")[0] in (*ASKED_LOCALLY, *METHODS)]
    if proposal.brief.parent is not None:
        asked = [p for p in asked if p.startswith(REACHING)]
    return asked


def _find_binding_suites(proposal: Proposal) -> list[str]:
    """The suites that the code has to pass: of the earlier drafts, and of the parent."""
    kept = proposal.drafts[_count_overturned(proposal.drafts) : -1]
    suites = [str(row.content.get("tests", "")) for row in kept if _is_proved(row)]
    return [*suites, proposal.parent.suite] if proposal.parent else suites


def _count_overturned(drafts: Sequence[DraftRow]) -> int:
    """How many of the drafts agreed with a mistake that a second reading of the task found: their
    tests have to change, and bind nobody.
    """
    at = [number for number, row in enumerate(drafts, 1) if _is_overturned(row)]
    return at[-1] if at else 0


def _is_overturned(row: DraftRow) -> bool:
    found = (report for report in row.reports if report.stage == "acceptance")
    return any(r.verdict == "failed" and r.code == "read_independently" for r in found)


def _is_proved(row: DraftRow) -> bool:
    """Whether the stages said of a draft's tests that they prove something."""
    suites = [report for report in row.reports if report.stage == "suite"]
    stubbed = any(cell.code == "proves_nothing" for report in suites for cell in report.cases)
    return bool(suites) and not stubbed and not any(report.findings for report in suites)


def check_model_draft(
    order: ForgeOrder, draft: Draft, private: tuple[Path, ...]
) -> tuple[SchemaViolation, ...]:
    """What is wrong with a draft that a model wrote; `private` is where our own files are."""
    return (
        *find_repeated_cases(draft),
        *_find_unasked(order, draft),
        *_find_unnamed_exceptions(draft),
        *_find_private_paths(draft, private),
    )


def check_client_draft(
    order: ForgeOrder, content: Mapping[str, Any], draft: Draft, private: tuple[Path, ...]
) -> tuple[SchemaViolation, ...]:
    """What is wrong with a draft that was handed in as `content`, its second reading included."""
    claims = _check_acceptance(order, content, draft)
    if content.get("api") and not is_api_claims(content["api"]):
        claims = (*claims, SchemaViolation("/api", "is no object with `operations`"))
    unnamed = _find_unnamed_exceptions(draft)
    return (*_find_unasked(order, draft), *_find_private_paths(draft, private), *unnamed, *claims)


def _find_unasked(order: ForgeOrder, draft: Draft) -> tuple[SchemaViolation, ...]:
    """What the task names and nothing asks for. The task of a repair is ours, and names places."""
    return () if order.failing else find_unasked_literals(order.task, draft)


def _find_unnamed_exceptions(draft: Draft) -> tuple[SchemaViolation, ...]:
    """What fails in a case that has a result all the same, and is not named in `why`."""
    failing = {
        answer.tool.partition("?")[0]
        for example in draft.examples
        if not example.failure
        for answer in example.answers
        if answer.failure or (answer.is_http and (answer.status >= 500 or answer.status == 429))
    }
    missing = ", ".join(sorted(name for name in failing if name not in draft.why))
    if not missing:
        return ()
    reason = f"a case has a result although {missing} fails: name it in `why`, with the reason"
    return (SchemaViolation("/why", reason),)


def _find_private_paths(draft: Draft, private: tuple[Path, ...]) -> tuple[SchemaViolation, ...]:
    """The paths that a draft asks for and that lie where our own files are."""
    asked = (each for each in parse_permissions(draft.permissions) if each.kind == "fs")
    refused = ((each, find_place_problem(Path(each.name), private)) for each in asked)
    return tuple(
        SchemaViolation("/tools", f"{each} is granted to no server: {why}")
        for each, why in refused
        if why
    )


def _check_acceptance(
    order: ForgeOrder, content: Mapping[str, Any], draft: Draft
) -> tuple[SchemaViolation, ...]:
    """What is wrong with the second reading that was handed in."""
    if not isinstance(content.get("acceptance", []), list):
        return (SchemaViolation("/acceptance", "is not an array of claims"),)
    return parse_claims(content.get("acceptance"), order.task, draft.tools)[1]
