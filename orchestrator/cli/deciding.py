"""Deciding an approval at the terminal: show the exact request, ask for the PIN, wait."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from orchestrator.approvals.decide import (
    Decision,
    DecisionResult,
    decide_with_pin,
    render_late_decision,
)
from orchestrator.approvals.rules import RuleRequest, render_rule
from orchestrator.approvals.sending import (
    Sending,
    build_send_command,
    render_outcome,
    send_approved,
    wait_for_outcome,
)
from orchestrator.approvals.text import hash_approval, render_approval, render_head
from orchestrator.cli.terminal import (
    FAILED,
    check_pin_set,
    err,
    out,
    print_json,
    print_text,
    read_pin,
)
from orchestrator.settings import load_settings
from orchestrator.views.records import encode_approval
from registry.approvals.approvals import ApprovalTable
from registry.approvals.rules import RuleTable
from registry.errors import ApprovalDamaged
from registry.models import Approval
from registry.store import Store
from sandbox.sanitize import clean_text

LONG_TEXT, LONG_LINES = 2_000, 24
"""What is taken for more than a terminal shows at once."""


@dataclass(frozen=True)
class DecisionRequest:
    """The decision that was typed. `always` is the standing rule to add with it, or None; `digest`
    that of the request as it was looked at before, or "".
    """

    approval: str
    approve: bool
    reason: str = ""
    always: RuleRequest | None = None
    digest: str = ""


def decide_at_terminal(
    asked: DecisionRequest, pin_file: Path | None, wait: float, as_json: bool
) -> None:
    """Decide one approval. Leaves with status 1 where it could not be decided or carried out."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        try:
            approval = store.approvals.get(asked.approval)
        except ApprovalDamaged as error:
            _reject_damaged(store.approvals, asked, error)
            return
        if _tell_late(approval, as_json):
            raise SystemExit(FAILED)
        if not as_json or pin_file is None:
            _print_request(approval, err if as_json else out)
        check_pin_set(settings)
        pin = read_pin(pin_file)
        digest = asked.digest or hash_approval(approval)
        decision = Decision(asked.approval, asked.approve, pin, "terminal", asked.reason, digest)
        decided = decide_with_pin(settings, store, decision, time.time(), asked.always)
        sending = Sending()
        if asked.approve and not decided.refused:
            sending = send_approved(settings, store, asked.approval)
        approval = wait_for_outcome(store.approvals, asked.approval, sending, wait)
        if not as_json:
            _print_decision(store.rules, approval, decided, sending)
    if as_json:
        told = {"refused": decided.refused, "rule": decided.rule}
        print_json({**encode_approval(approval), **told})
    if decided.refused or (asked.approve and approval.state in ("failed", "unknown", "rejected")):
        raise SystemExit(FAILED)


def _tell_late(approval: Approval, as_json: bool) -> bool:
    """Whether nothing can be decided any more, which is told before the PIN is asked for."""
    now = time.time()
    if approval.state == "pending" and now < approval.expires:
        return False
    told = render_late_decision(approval, now)
    if as_json:
        print_json({**encode_approval(approval), "refused": told, "rule": ""})
        return True
    err.print(Text(clean_text(told), style="red"))
    if approval.state == "approved":
        print_text(f"`{build_send_command(approval.id)}` sends it.")
    return True


def _reject_damaged(
    approvals: ApprovalTable, asked: DecisionRequest, error: ApprovalDamaged
) -> None:
    """End what nobody can be shown, which needs no PIN. Raises the error where it was to be
    approved.
    """
    if asked.approve or not approvals.reject_damaged(asked.approval, "terminal", time.time()):
        raise error
    print_text(f"{asked.approval}: rejected; it could not be read")


def _print_request(approval: Approval, console: Console) -> None:
    """The whole of it; of one that fills more than a screen, what comes first stands last again."""
    text = render_approval(approval)
    first, _, rest = text.partition("\n")
    console.print(Text(first, style="bold"))
    click.echo(rest, err=console.stderr)
    if len(text) > LONG_TEXT or text.count("\n") > LONG_LINES:
        console.print(Text("\nThat was long. Once more, without the body:", style="yellow"))
        click.echo("\n".join(render_head(approval)), err=console.stderr)


def _print_decision(
    rules: RuleTable, approval: Approval, decided: DecisionResult, sending: Sending
) -> None:
    if decided.refused:
        err.print(Text(clean_text(decided.refused), style="red"))
        return
    if sending.frozen:
        print_text("Everything is frozen: nothing is sent before `toolwright unfreeze`.", "yellow")
    print_text(f"{approval.id}: {render_outcome(approval, sending.frozen)}")
    if decided.rule:
        rule = rules.get(decided.rule)
        ends = time.strftime("%Y-%m-%d %H:%M", time.localtime(rule.expires))
        print_text(f"Rule {rule.id}, until {ends}: {render_rule(rule)}")
