"""`toolwright push`: be told of waiting requests, and decide by links."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.announcer import deliver
from orchestrator.control_process import ensure_control, spawn, stop_control
from orchestrator.errors import OrchestratorError, WrongPin
from orchestrator.messages import Message
from orchestrator.pin import open_key
from orchestrator.pinprompt import ask_pin, pin_option
from orchestrator.push import (
    VAULT_SECTION,
    Target,
    add_notice,
    add_sealed,
    check_name,
    notice_targets,
    open_sealed,
    remove_sealed,
    scheme_of,
    sealed_names,
)
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import json_option, print_json, print_table, read_line, reported, say
from orchestrator.vaults import open_vault
from registry.store import Store


@click.group("push")
def command() -> None:
    """Be told of waiting requests through Apprise (ntfy, mail, Slack, Telegram…), and decide them
    by one-time links. Needs the extra: `pip install 'toolwright[push]'`.
    """


@command.command("add")
@click.argument("url", required=False)
@click.option("--name", default="", help="What to call it; its kind by default.")
@click.option("--notice", is_flag=True, help="Only tell: no links that decide, and no unlocking.")
@click.option(
    "--url-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Read the URL from a file, or from standard input with `-`: it may hold secrets.",
)
@pin_option
@reported
def add(
    url: str | None, name: str, notice: bool, url_file: Path | None, pin_file: Path | None
) -> None:
    """Send messages to URL, one of Apprise's. Asks for the PIN, which seals it.

    Messages carry one-time links that approve, reject and freeze, so whoever can read them can
    decide. They are sent while the control plane is unlocked: `toolwright push unlock`.
    """
    settings = load_settings()
    given = url or (read_line(url_file) if url_file else click.prompt("URL", hide_input=True))
    name = name or scheme_of(given)
    check_name(name)
    if name in _names(settings):
        raise OrchestratorError(f"there is a target {name} already. Choose another --name.")
    signer = ask_pin(settings, pin_file)
    if notice:
        add_notice(open_vault(settings), name, given)
    else:
        add_sealed(settings.push, name, given, signer)
    with Store.open(settings.database_url) as store:
        store.note("push.added", name, {"links": not notice}, time.time())
    say(f"{name} is added.")
    if not notice:
        say("`toolwright push unlock` begins to send links.")


@command.command("list")
@json_option
@reported
def list_targets(as_json: bool) -> None:
    """List the targets. Their URLs are not shown."""
    names = _names(load_settings())
    if as_json:
        print_json([{"name": name, "kind": kind} for name, kind in names.items()])
    elif not names:
        say("There are none. `toolwright push add URL` adds one.")
    else:
        print_table(("target", "messages"), names.items())


@command.command("remove")
@click.argument("name")
@reported
def remove(name: str) -> None:
    """Send nothing to NAME any more. Needs no PIN; an unlocked control plane is locked by it."""
    settings = load_settings()
    removed = remove_sealed(settings.push, name) or open_vault(settings).delete(VAULT_SECTION, name)
    if not removed:
        raise OrchestratorError(f"there is no target {name}. `toolwright push list` lists them.")
    if stop_control(settings):
        ensure_control(settings)
    with Store.open(settings.database_url) as store:
        store.note("push.removed", name, {}, time.time())
    say(f"{name} is removed.")


@command.command("test")
@click.argument("name", default="")
@pin_option
@reported
def test(name: str, pin_file: Path | None) -> None:
    """Send a message to NAME, or to all targets. Asks for the PIN where one is sealed."""
    settings = load_settings()
    wanted = [target for target in _targets(settings, name, pin_file) if name in ("", target.name)]
    if not wanted:
        raise OrchestratorError("there is no such target. `toolwright push list` lists them.")
    message = Message("Toolwright", "This is a test. Requests that wait will come here.")
    problems = {target.name: deliver(target, message) for target in wanted}
    for target, problem in problems.items():
        say(f"{target}: {problem or 'sent'}", "red" if problem else "")
    if any(problems.values()):
        raise OrchestratorError("not every target took the message.")


@command.command("unlock")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, help="Port to listen on; 0 takes a free one.")
@pin_option
@reported
def unlock(host: str, port: int, pin_file: Path | None) -> None:
    """Start the control plane anew, with links in its messages for a week. Asks for the PIN.

    The PIN goes only to the process that is started, never to one that merely says it is ours.
    """
    settings = load_settings()
    pin = read_line(pin_file) if pin_file else click.prompt("PIN", hide_input=True, err=True)
    opened = open_key(settings, pin, time.time())
    if opened.signer is None:
        raise WrongPin(opened.refused)
    open_sealed(settings.push, opened.signer)
    stop_control(settings)
    words = ("control", "--push", "--pin-file", "-", "--host", host, "--port", str(port))
    spawn(settings, *words, told=f"{pin}\n")
    say("Messages carry links from now on, until the control plane ends or for a week.")


@command.command("lock")
@reported
def lock() -> None:
    """Send no links any more, and let none of those that were sent decide."""
    settings = load_settings()
    if stop_control(settings):
        ensure_control(settings)
    say("Locked.")


def _names(settings: Settings) -> dict[str, str]:
    """Every target and what its messages are."""
    sealed = sealed_names(settings.push)
    notices = (target.name for target in notice_targets(open_vault(settings)))
    return {name: f"{kind}, with links" for name, kind in sealed.items()} | dict.fromkeys(
        notices, "notices only"
    )


def _targets(settings: Settings, name: str, pin_file: Path | None) -> tuple[Target, ...]:
    sealed = sealed_names(settings.push)
    wanted = name in sealed if name else bool(sealed)
    opened = open_sealed(settings.push, ask_pin(settings, pin_file)) if wanted else ()
    return (*opened, *notice_targets(open_vault(settings)))
