"""Having an approved write sent: by a live process, else by a fresh one made for just that.

Nothing is decided or claimed here. Whoever carries the write out checks freeze, key and signature
again, claims the approval by compare-and-set and spends it before the first byte leaves, so that of
several only one sends it.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.approvals.text import escape_line
from orchestrator.processes.control_client import spawn_command
from orchestrator.processes.liveness import is_alive
from orchestrator.settings import Settings
from registry.approvals.approvals import ApprovalTable
from registry.models import Approval, Freeze
from registry.store import Store
from sandbox.wire.content import join_texts

TAKERS = frozenset({"serve", "work", "run"})
"""The kinds of processes that carry out whatever people approve."""
TAKE_SECONDS = 1.0
"""How long a live process has to claim an approval; it looks every 15 ms."""
START_SECONDS = 30.0
"""How long after a decision a process that sends it may take to begin, on a busy machine."""
UNSENT, UNSETTLED = ("approved",), ("approved", "claimed", "sending")
POLL_SECONDS = 0.03
_LINE_ENDS = re.compile(r"\s*[\r\n]+\s*")
MAX_TOLD = 1_000
"""Characters of an outcome that the decider is told."""


@dataclass(frozen=True)
class Sending:
    """`child` was started to carry the write out, or None; `frozen` if nothing may be sent now."""

    child: subprocess.Popen[bytes] | None = None
    frozen: bool = False

    def is_over(self) -> bool:
        """Whether nobody is known to work on it: then waiting does not help."""
        return self.frozen or (self.child is not None and self.child.poll() is not None)


Send = Callable[[str], Sending]
"""From an approval's id: `send_approved` of an installation."""


def send_approved(settings: Settings, store: Store, identity: str) -> Sending:
    """Have an approved write carried out; returns once somebody has claimed it or a child was
    started. Does nothing about an approval in another state. Raises RowNotFound.

    The child gets neither PIN nor key, and is registered as a process that a freeze ends.
    """
    if any(each.kind in TAKERS and is_alive(each) for each in store.processes.find()):
        _wait_while(store.approvals, identity, UNSENT, TAKE_SECONDS)
    if store.approvals.get(identity).state not in UNSENT:
        return Sending()
    if store.processes.get_freeze().frozen:
        return Sending(frozen=True)
    return Sending(spawn_command(settings, "work", "--approval", identity))


def wait_for_outcome(
    approvals: ApprovalTable, identity: str, sending: Sending, seconds: float
) -> Approval:
    """The approval once its write has ended, nobody works on it, or after so many seconds."""
    return _wait_while(approvals, identity, UNSETTLED, seconds, sending.is_over)


def render_outcome(approval: Approval, frozen: bool = False) -> str:
    """What became of a decided approval, for the person who decided it: its state, what the API
    answered, and the command that helps where it was not sent.
    """
    if approval.state == "approved":
        first = "`toolwright unfreeze`, then " if frozen else ""
        return f"approved, not sent yet; {first}`{build_send_command(approval.id)}` sends it"
    if approval.state in ("claimed", "sending"):
        return f"{approval.state}: it is being sent; `toolwright approvals --all` shows its end"
    told = _read_outcome(approval.outcome)
    if approval.state == "unknown":
        told = told or "the connection ended; ask the API whether it arrived. It is not sent again"
    return f"{approval.state}: {told}" if told else approval.state


def build_send_command(identity: str) -> str:
    """What sends an approved write that nobody has sent."""
    return f"toolwright work --approval {escape_line(identity)}"


def is_on_its_way(approval: Approval, freeze: Freeze, now: float) -> bool:
    """Whether an approved write was approved so lately that whoever sends it may not have begun. A
    freeze, also one that was lifted since, has ended whoever that was.
    """
    decided = approval.decided_at
    return decided is not None and freeze.since < decided and now - decided < START_SECONDS


def render_unsent_line(approval: Approval, freeze: Freeze, now: float) -> str:
    """How an approved write that nobody has begun to send stands."""
    if freeze.frozen:
        return "approved; everything is frozen, and once that is lifted it can be sent"
    if is_on_its_way(approval, freeze, now):
        return "is being sent"
    by = approval.decided_by
    return f"approved by {by} and not sent: `{build_send_command(approval.id)}` sends it"


def render_unsent(count: int, first: str, frozen: bool) -> str:
    """What to do about writes that were approved and that nobody has sent, of which there is one at
    least.
    """
    told = f"{count} approved and not sent"
    if frozen:
        return f"{told}: everything is frozen; `toolwright unfreeze` lets them be sent."
    return f"{told}: `{build_send_command(first)}` sends one, `toolwright work` all."


def _read_outcome(outcome: Any) -> str:
    """The text of a stored outcome: the refusal of ours, or what the tool answered."""
    if not isinstance(outcome, dict):
        return ""
    content = outcome.get("content")
    told = str(outcome.get("error") or "")
    if not told and isinstance(content, list):
        told = join_texts([each for each in content if isinstance(each, dict)])
    told = escape_line(_LINE_ENDS.sub(" ", told).strip())
    return told if len(told) <= MAX_TOLD else f"{told[:MAX_TOLD]}…"


def _wait_while(
    approvals: ApprovalTable,
    identity: str,
    states: tuple[str, ...],
    seconds: float,
    is_over: Callable[[], bool] = lambda: False,
) -> Approval:
    end = time.monotonic() + seconds
    while True:
        # Asked before the state is read: what was done until then is seen.
        over = is_over() or time.monotonic() > end
        approval = approvals.get(identity)
        if over or approval.state not in states:
            return approval
        time.sleep(POLL_SECONDS)
