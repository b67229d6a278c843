"""Deciding at the terminal: show the exact request, ask for the PIN, wait a while."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.answers import approval_json, request_text
from orchestrator.freeze import PASSIVE, is_alive
from orchestrator.people import Decision, decide
from orchestrator.settings import load_settings
from orchestrator.terminal import FAILED, print_json, read_line, say
from registry.records import Approval
from registry.store import Store

OPEN_STATES = ("approved", "claimed")
POLL_SECONDS = 0.05


def decide_at_terminal(
    identity: str, approve: bool, pin_file: Path | None, reason: str, wait: float, as_json: bool
) -> None:
    """Decide one approval. Leaves with status 1 where it could not be decided or carried out."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        approval = store.approval(identity)
        if not as_json:
            _show(approval)
        pin = read_line(pin_file) if pin_file else click.prompt("PIN", hide_input=True, err=True)
        decision = Decision(identity, approve, pin, by="terminal", reason=reason)
        decided = decide(settings, store, decision, time.time())
        if approve and not decided.refused and _someone_serves(store):
            approval = _settled(store, identity, wait)
        else:
            approval = store.approval(identity)
    if as_json:
        print_json({**approval_json(approval), "refused": decided.refused})
    elif decided.refused:
        say(decided.refused, "red")
    else:
        say(f"{identity}: {_told(approval)}")
    if decided.refused or approval.state in ("failed", "unknown"):
        raise SystemExit(FAILED)


def _show(approval: Approval) -> None:
    say(f"{approval.entry}.{approval.tool} (version {approval.version})", "bold")
    say(request_text(approval.wire))


def _told(approval: Approval) -> str:
    if approval.state == "approved":
        return "approved; it is carried out when a `toolwright serve` runs"
    return approval.state


def _someone_serves(store: Store) -> bool:
    return any(p.kind not in PASSIVE and is_alive(p) for p in store.processes())


def _settled(store: Store, identity: str, seconds: float) -> Approval:
    end = time.monotonic() + seconds
    while True:
        approval = store.approval(identity)
        if approval.state not in OPEN_STATES or time.monotonic() > end:
            return approval
        time.sleep(POLL_SECONDS)
