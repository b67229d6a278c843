"""Deciding at the terminal: show the exact request, ask for the PIN, wait a while."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import click

from orchestrator.allowing import Always, rule_text
from orchestrator.answers import approval_json, change_lines, request_text
from orchestrator.freeze import PASSIVE, is_alive
from orchestrator.people import Decided, Decision, decide
from orchestrator.settings import load_settings
from orchestrator.terminal import FAILED, print_json, read_line, say
from registry.records import Approval
from registry.store import Store

OPEN_STATES = ("approved", "claimed")
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Asked:
    """What was typed. `always` is the rule that is to come of an approval, if any."""

    approval: str
    approve: bool
    reason: str = ""
    always: Always | None = None


def decide_at_terminal(asked: Asked, pin_file: Path | None, wait: float, as_json: bool) -> None:
    """Decide one approval. Leaves with status 1 where it could not be decided or carried out."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        approval = store.approval(asked.approval)
        if not as_json:
            _show(approval)
        pin = read_line(pin_file) if pin_file else click.prompt("PIN", hide_input=True, err=True)
        digest = approval.wire_digest
        decision = Decision(asked.approval, asked.approve, pin, "terminal", asked.reason, digest)
        decided = decide(settings, store, decision, time.time(), asked.always)
        if asked.approve and not decided.refused and _someone_serves(store):
            approval = _settled(store, asked.approval, wait)
        else:
            approval = store.approval(asked.approval)
        if not as_json:
            _tell(store, approval, decided)
    if as_json:
        told = {"refused": decided.refused, "rule": decided.rule}
        print_json({**approval_json(approval), **told})
    if decided.refused or approval.state in ("failed", "unknown"):
        raise SystemExit(FAILED)


def _show(approval: Approval) -> None:
    say(f"{approval.entry}.{approval.tool} (version {approval.version})", "bold")
    say(request_text(approval.wire))
    for line in change_lines(approval):
        say(f"changes {line}", "yellow")


def _tell(store: Store, approval: Approval, decided: Decided) -> None:
    if decided.refused:
        say(decided.refused, "red")
        return
    told: str = approval.state
    if told == "approved":
        told = "approved; it is carried out when a `toolwright serve` runs"
    say(f"{approval.id}: {told}")
    if decided.rule:
        rule = store.rule(decided.rule)
        ends = time.strftime("%Y-%m-%d %H:%M", time.localtime(rule.expires))
        say(f"Rule {rule.id}, until {ends}: {rule_text(rule)}")


def _someone_serves(store: Store) -> bool:
    return any(p.kind not in PASSIVE and is_alive(p) for p in store.processes())


def _settled(store: Store, identity: str, seconds: float) -> Approval:
    end = time.monotonic() + seconds
    while True:
        approval = store.approval(identity)
        if approval.state not in OPEN_STATES or time.monotonic() > end:
            return approval
        time.sleep(POLL_SECONDS)
