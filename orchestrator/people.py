"""What only a person may do, and how we know that it is one: the PIN, and the key that it opens."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestrator.allowing import Always, rule_for
from orchestrator.answers import ago
from orchestrator.settings import Settings
from registry.authority import Authority
from registry.decisions import Delegation, request_of, sign_decision
from registry.errors import KeyChanged, NotaryDamaged, PinUnusable
from registry.notary import Notary
from registry.pin import verify_pin
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


@dataclass(frozen=True)
class Opened:
    """The person's key, or why it stays shut."""

    signer: Signer | None = None
    refused: str = ""


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


def open_key(settings: Settings, pin: str, now: float) -> Opened:
    """The key that this PIN opens, if it is the one that was known before."""
    try:
        checked = verify_pin(settings.pin, pin, now)
        if checked.signer is not None:
            authority(settings).key()
    except (PinUnusable, KeyChanged, NotaryDamaged) as error:
        return Opened(refused=str(error))
    if checked.locked_until is not None:
        seconds = max(1, round(checked.locked_until - now))
        return Opened(refused=f"too many wrong PINs; try again in {seconds} s")
    return Opened(checked.signer, "" if checked.ok else "that is not the PIN; nothing was changed")


def check_pin(settings: Settings, pin: str, now: float) -> str:
    """Why this PIN is not accepted, or nothing where it is."""
    return open_key(settings, pin, now).refused


def authority(settings: Settings) -> Authority:
    """Whose signatures count, beginning with the key that the signed audit heads name."""
    return Authority(settings.pin, lambda: Notary(settings.heads).pinned())
