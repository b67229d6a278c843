"""What only a person decides: a write that waits, by the PIN or by a signed decision."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestrator.allowing import Always, rule_for
from orchestrator.moments import ago
from orchestrator.pin import open_key
from orchestrator.settings import Settings
from registry.decisions import Delegation, request_of, sign_decision
from registry.records import Approval
from registry.signing import Signer
from registry.store import Store


@dataclass(frozen=True)
class Decision:
    """`digest` is that of the request as it was shown, where the channel knows it."""

    approval: str
    approve: bool
    pin: str = field(repr=False)
    by: str
    reason: str = ""
    digest: str = ""


@dataclass(frozen=True)
class Decided:
    """`state` is the approval's new one; where `refused` says why not, nothing was changed.

    `rule` is the id of the standing rule that came of it.
    """

    state: str
    refused: str = ""
    pin_wrong: bool = False
    rule: str = ""


def decide(
    settings: Settings,
    store: Store,
    decision: Decision,
    now: float,
    always: Always | None = None,
) -> Decided:
    """Approve or reject with the PIN, once, and with `always` add the rule that it asks for.

    Raises Unknown for the approval, OrchestratorError where such a rule cannot be.
    """
    shown = store.approval(decision.approval)
    if decision.digest and decision.digest != shown.wire_digest:
        return Decided(shown.state, "it is not the request that was shown; look at it again")
    opened = open_key(settings, decision.pin, now)
    if opened.signer is None:
        return Decided(shown.state, opened.refused, pin_wrong=True)
    rule = rule_for(store, shown, always, opened.signer, decision.by, now) if always else None
    decided = decide_signed(store, shown, decision, opened.signer, now)
    if rule is None or decided.refused:
        return decided
    store.add_rule(rule)
    return replace(decided, rule=rule.id)


def decide_signed(
    store: Store,
    shown: Approval,
    decision: Decision,
    signer: Signer,
    now: float,
    delegation: Delegation | None = None,
) -> Decided:
    """Store a decision, signed over the request as it was shown. Who comes second hears who won."""
    signed = sign_decision(shown, decision.approve, decision.by, now, signer, delegation)
    if request_of(store.approval(shown.id)) != request_of(shown):
        return Decided(shown.state, "the request was changed while it was shown; look at it again")
    return _stored(store, decision, signed, now)


def reject_unsigned(store: Store, decision: Decision, now: float) -> Decided:
    """Reject without any proof of who does it: that lets nothing happen. Raises Unknown."""
    assert not decision.approve
    return _stored(store, decision, "", now)


def _stored(store: Store, decision: Decision, signed: str, now: float) -> Decided:
    decided = store.decide(
        decision.approval,
        decision.approve,
        by=decision.by,
        now=now,
        reason=decision.reason,
        signed=signed,
    )
    if decided is not None:
        return Decided(decided.state)
    current = store.approval(decision.approval)
    return Decided(current.state, already_decided(current, now))


def already_decided(approval: Approval, now: float) -> str:
    """What whoever comes too late is told: what happened, by whom, when."""
    if approval.decided_at is None:
        return f"it has expired, or is {approval.state} already; nothing was changed"
    return (
        f"it was decided already: {approval.decided_by} decided it {ago(approval.decided_at, now)} "
        f"and it is {approval.state}; nothing was changed"
    )
