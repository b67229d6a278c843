"""`toolwright rules`: what people allowed beforehand."""

from __future__ import annotations

import time
from typing import Any

import click

from orchestrator.allowing import rule_json
from orchestrator.clearance import Clearance
from orchestrator.pin import authority
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import json_option, print_json, print_table, reported, say
from registry.store import Store

all_option = click.option("--all", "every", is_flag=True, help="Also those that count no more.")


@click.group("rules", invoke_without_command=True)
@all_option
@json_option
@click.pass_context
def command(context: click.Context, every: bool, as_json: bool) -> None:
    """List and revoke standing rules. `toolwright approve ID --always` adds one."""
    if context.invoked_subcommand is None:
        context.invoke(list_rules, every=every, as_json=as_json)


@command.command("list")
@all_option
@json_option
@reported
def list_rules(every: bool, as_json: bool) -> None:
    """List the rules."""
    settings = load_settings()
    with Store.open(settings.database_url) as store:
        shown = [rule for rule in _told(settings, store) if every or rule["state"] == "live"]
    if as_json:
        print_json(shown)
    elif not shown:
        say("There are none. `toolwright approve ID --always` adds one.")
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


@command.command("revoke")
@click.argument("rule")
@reported
def revoke_rule(rule: str) -> None:
    """End the rule RULE. Needs no PIN: it only makes things stricter."""
    with Store.open(load_settings().database_url) as store:
        ended = store.revoke_rule(rule, "terminal", time.time())
    say(f"{rule} is revoked." if ended else f"{rule} was revoked already.")


def _told(settings: Settings, store: Store) -> list[dict[str, Any]]:
    public = Clearance(store, authority(settings)).key()
    return [rule_json(rule, time.time(), public) for rule in store.rules()]
