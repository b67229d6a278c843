"""Decisions on waiting writes: approve or reject, with the PIN or a delegated signature."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestrator.approvals.dates import format_age
from orchestrator.approvals.rules import RuleRequest, create_rule
from orchestrator.approvals.signing_key import open_key
from orchestrator.approvals.text import hash_approval, render_approval
from orchestrator.settings import Settings
from registry.approvals.approvals import ApprovalTable
from registry.approvals.decisions import Delegation, sign_decision
from registry.models import Approval
from registry.secrets.signing import Signer
from registry.store import Store

LOOK_AGAIN = "the request was changed while it was shown; look at it again"


@dataclass(frozen=True)
class Decision:
    """A person's decision. `digest` is that of the approval as it was shown
    (`orchestrator.approvals.text.hash_approval`), or of its request, "" where not known.
    """

    approval: str
    approve: bool
    pin: str = field(repr=False)
    by: str
    reason: str = ""
    digest: str = ""


@dataclass(frozen=True)
class DecisionResult:
    """The result of a decision. `state` is the approval's state after it.

    A non-empty `refused` is the reason why nothing was changed. `rule` is the id of the standing
    rule that was added, or "".
    """

    state: str
    refused: str = ""
    pin_wrong: bool = False
    rule: str = ""


def decide_with_pin(
    settings: Settings,
    store: Store,
    decision: Decision,
    now: float,
    always: RuleRequest | None = None,
) -> DecisionResult:
    """Approve or reject with the PIN, once, and with `always` add the rule that it asks for.

    Raises Unknown for the approval, OrchestratorError where such a rule cannot be.
    """
    shown = store.approvals.get(decision.approval)
    known = decision.digest in ("", shown.wire_digest) or decision.digest == hash_approval(shown)
    if not known:
        return DecisionResult(shown.state, LOOK_AGAIN)
    opened = open_key(settings, decision.pin, now, decision.by)
    if opened.signer is None:
        return DecisionResult(shown.state, opened.refused, pin_wrong=True)
    rule = create_rule(store, shown, always, opened.signer, decision.by, now) if always else None
    decided = decide_signed(store.approvals, shown, decision, opened.signer, now)
    if rule is None or decided.refused:
        return decided
    store.rules.add(rule)
    return replace(decided, rule=rule.id)


def decide_signed(
    approvals: ApprovalTable,
    shown: Approval,
    decision: Decision,
    signer: Signer,
    now: float,
    delegation: Delegation | None = None,
) -> DecisionResult:
    """Store a decision, signed over all of the approval as shown. The first of several decisions
    wins.
    """
    text = render_approval(shown)
    signed = sign_decision(shown, decision.approve, decision.by, now, signer, delegation, text)
    return _store_decision(approvals, decision, signed, now, shown)


def reject_unsigned(approvals: ApprovalTable, decision: Decision, now: float) -> DecisionResult:
    """Reject without a signature: a rejection sends nothing, so it needs none. Raises Unknown."""
    assert not decision.approve
    return _store_decision(approvals, decision, "", now)


def _store_decision(
    approvals: ApprovalTable,
    decision: Decision,
    signed: str,
    now: float,
    shown: Approval | None = None,
) -> DecisionResult:
    decided = approvals.decide(
        decision.approval,
        decision.approve,
        by=decision.by,
        now=now,
        reason=decision.reason,
        signed=signed,
        shown=shown,
    )
    if decided is not None:
        return DecisionResult(decided.state)
    current = approvals.get(decision.approval)
    if current.state == "pending" and now < current.expires:
        return DecisionResult(current.state, LOOK_AGAIN)
    return DecisionResult(current.state, render_late_decision(current, now))


def render_late_decision(approval: Approval, now: float) -> str:
    """The message for a decision that came too late: what was decided, by whom and when."""
    if approval.decided_at is None:
        if approval.state in ("pending", "expired"):
            return "it has expired; nothing is sent. Call the tool again to be asked anew"
        return f"it has expired, or is {approval.state} already; nothing was changed"
    return (
        f"it was decided already: {approval.decided_by} decided it "
        f"{format_age(approval.decided_at, now)} and it is {approval.state}; nothing was changed"
    )
