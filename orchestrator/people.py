"""What only a person may do, and how we know that it is one: the PIN."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.settings import Settings
from registry.errors import PinUnusable
from registry.pin import verify_pin
from registry.store import Store


@dataclass(frozen=True)
class Decision:
    approval: str
    approve: bool
    pin: str
    by: str
    reason: str = ""


@dataclass(frozen=True)
class Decided:
    """`state` is the approval's new one; where `refused` says why not, nothing was changed."""

    state: str
    refused: str = ""
    pin_wrong: bool = False


def decide(settings: Settings, store: Store, decision: Decision, now: float) -> Decided:
    """Approve or reject, once. Raises Unknown for the approval."""
    current = store.approval(decision.approval)
    refused = check_pin(settings, decision.pin, now)
    if refused:
        return Decided(current.state, refused, pin_wrong=True)
    decided = store.decide(
        decision.approval, decision.approve, by=decision.by, now=now, reason=decision.reason
    )
    if decided is None:
        state = store.approval(decision.approval).state
        return Decided(state, f"it was decided or has expired already ({state})")
    return Decided(decided.state)


def check_pin(settings: Settings, pin: str, now: float) -> str:
    """Why this PIN is not accepted, or nothing where it is."""
    try:
        checked = verify_pin(settings.pin, pin, now)
    except PinUnusable as error:
        return str(error)
    if checked.ok:
        return ""
    if checked.locked_until is not None:
        return f"too many wrong PINs; try again in {max(1, round(checked.locked_until - now))} s"
    return "that is not the PIN; nothing was changed"
