"""`toolwright rules`: list and revoke standing rules."""

from __future__ import annotations

import time
from typing import Any

import click

from orchestrator.approvals.rules import encode_rule
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, sign_audit
from orchestrator.cli.identifiers import StoredId
from orchestrator.cli.terminal import (
    json_option,
    print_done,
    print_json,
    print_table,
    print_text,
    report_errors,
)
from orchestrator.settings import Settings, load_settings
from registry.store import Store

all_option = click.option("--all", "every", is_flag=True, help="Also those that have ended.")


@click.group("rules", invoke_without_command=True)
@all_option
@json_option
@click.pass_context
def rules_command(context: click.Context, every: bool, as_json: bool) -> None:
    """List and revoke standing rules. `toolwright approve ID --always` adds one."""
    if context.invoked_subcommand is None:
        context.invoke(list_rules, every=every, as_json=as_json)


@rules_command.command("list")
@all_option
@json_option
@report_errors
def list_rules(every: bool, as_json: bool) -> None:
    """List the rules."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        known = _load_rules(settings, store)
        shown = [rule for rule in known if every or rule["state"] == "live"]
    if as_json:
        print_json(shown)
    elif not shown:
        ended = f", but {len(known)} that ended: `toolwright rules --all`" if known else ""
        print_text(f"There are none{ended}. `toolwright approve ID --always` adds one.")
    else:
        print_table(
            ("rule", "state", "says", "until", "used"),
            (
                (
                    rule["rule"],
                    rule["state"],
                    rule["says"],
                    time.strftime("%Y-%m-%d %H:%M", time.localtime(rule["expires"])),
                    f"{rule['uses']} of {rule['max']}" if rule["max"] else rule["uses"],
                )
                for rule in shown
            ),
        )


@rules_command.command("revoke")
@click.argument("rule", type=StoredId("rule"))
@json_option
@report_errors
def revoke_rule(rule: str, as_json: bool) -> None:
    """End the rule RULE. Needs no PIN: it only makes things stricter."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        ended = store.rules.revoke(rule, "terminal", time.time())
        sign_audit(settings, store.audit)
    told = f"{rule} is revoked." if ended else f"{rule} was revoked already."
    print_done(as_json, told, rule=rule, revoked=ended)


def _load_rules(settings: Settings, store: Store) -> list[dict[str, Any]]:
    public = SignedPolicy(store, build_authority(settings)).find_key()
    return [encode_rule(rule, time.time(), public) for rule in store.rules.find()]
