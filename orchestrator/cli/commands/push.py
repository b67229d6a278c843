"""`toolwright push`: manage push targets, which are notified of waiting requests."""

from __future__ import annotations

import time
from pathlib import Path

import click

from orchestrator.approvals.signing_key import open_key
from orchestrator.cli.terminal import (
    ask_pin,
    json_option,
    pin_option,
    print_done,
    print_json,
    print_table,
    print_text,
    prompt_hidden,
    read_line,
    report_errors,
)
from orchestrator.control.notify.announcer import deliver_message
from orchestrator.control.notify.messages import PushMessage
from orchestrator.control.notify.targets import (
    VAULT_SECTION,
    PushTarget,
    add_notice_target,
    add_sealed_target,
    check_target_name,
    list_sealed_targets,
    load_notice_targets,
    open_sealed_targets,
    parse_scheme,
    remove_sealed_target,
)
from orchestrator.errors import OrchestratorError, WrongPin
from orchestrator.processes.control_client import ensure_control, spawn_command, stop_control
from orchestrator.settings import Settings, load_settings
from registry.secrets.vault import open_vault
from registry.store import Store


@click.group("push")
def push_command() -> None:
    """Be told of waiting requests through Apprise (ntfy, mail, Slack, Telegram…), and decide them
    by one-time links. Needs the extra: `pip install 'toolwright[push]'`.
    """


@push_command.command("add")
@click.argument("url", required=False)
@click.option("--name", default="", help="What to call it; its kind by default.")
@click.option("--notice", is_flag=True, help="Only tell: no links that decide, and no unlocking.")
@click.option(
    "--url-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Read the URL from a file, or from standard input with `-`: it may hold secrets.",
)
@pin_option
@json_option
@report_errors
def add_target(
    url: str | None,
    name: str,
    notice: bool,
    url_file: Path | None,
    pin_file: Path | None,
    as_json: bool,
) -> None:
    """Send messages to URL, one of Apprise's. Asks for the PIN, which seals it.

    Messages carry one-time links that approve, reject and freeze, so whoever can read them can
    decide. They are sent while the control plane is unlocked: `toolwright push unlock`.
    """
    settings = load_settings()
    given = url or (read_line(url_file) if url_file else prompt_hidden("URL"))
    name = name or parse_scheme(given)
    check_target_name(name)
    if name in _list_names(settings):
        raise OrchestratorError(f"there is a target {name} already. Choose another --name.")
    signer = ask_pin(settings, pin_file)
    if notice:
        add_notice_target(open_vault(settings), name, given)
    else:
        add_sealed_target(settings.push, name, given, signer)
    with Store.open(settings.database_url) as store:
        store.audit.add_note("push.added", name, {"links": not notice}, time.time())
    then = "" if notice else f"\n{_UNTIL_UNLOCKED}"
    print_done(as_json, f"{name} is added.{then}", name=name, links=not notice)


@push_command.command("list")
@json_option
@report_errors
def list_targets(as_json: bool) -> None:
    """List the targets. Their URLs are not shown."""
    names = _list_names(load_settings())
    if as_json:
        print_json([{"name": name, "kind": kind} for name, kind in names.items()])
    elif not names:
        print_text("There are none. `toolwright push add URL` adds one.")
    else:
        print_table(("target", "messages"), names.items())


@push_command.command("remove")
@click.argument("name")
@json_option
@report_errors
def remove_target(name: str, as_json: bool) -> None:
    """Send nothing to NAME any more. Needs no PIN; an unlocked control plane is locked by it."""
    settings = load_settings()
    removed = remove_sealed_target(settings.push, name) or open_vault(settings).delete(
        VAULT_SECTION, name
    )
    if not removed:
        raise OrchestratorError(f"there is no target {name}. `toolwright push list` lists them.")
    if stop_control(settings):
        ensure_control(settings)
    with Store.open(settings.database_url) as store:
        store.audit.add_note("push.removed", name, {}, time.time())
    print_done(as_json, f"{name} is removed.", name=name, removed=True)


@push_command.command("test")
@click.argument("name", default="")
@pin_option
@json_option
@report_errors
def send_test(name: str, pin_file: Path | None, as_json: bool) -> None:
    """Send a message to NAME, or to all targets. Asks for the PIN where one is sealed."""
    settings = load_settings()
    wanted = [
        target for target in _open_targets(settings, name, pin_file) if name in ("", target.name)
    ]
    if not wanted:
        raise OrchestratorError(
            f"there is no target {name or 'yet'}. `toolwright push list` lists them, and "
            "`toolwright push add URL` adds one."
        )
    message = PushMessage("Toolwright", "This is a test. Requests that wait will come here.")
    problems = {target.name: deliver_message(target, message) for target in wanted}
    if as_json:
        print_json([{"name": target, "problem": told} for target, told in problems.items()])
    else:
        for target, problem in problems.items():
            print_text(f"{target}: {problem or 'sent'}", "red" if problem else "")
    if any(problems.values()):
        raise OrchestratorError("not every target took the message.")


@push_command.command("unlock")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 takes a free one.",
)
@pin_option
@json_option
@report_errors
def unlock_targets(host: str, port: int, pin_file: Path | None, as_json: bool) -> None:
    """Start the control plane anew, with links in its messages for a week.

    Asks for the PIN, which goes only to the process that is started.
    """
    settings = load_settings()
    pin = read_line(pin_file) if pin_file else click.prompt("PIN", hide_input=True, err=True)
    opened = open_key(settings, pin, time.time())
    if opened.signer is None:
        raise WrongPin(opened.refused)
    open_sealed_targets(settings.push, opened.signer)
    stop_control(settings)
    words = ("control", "--push", "--pin-file", "-", "--host", host, "--port", str(port))
    spawn_command(settings, *words, told=f"{pin}\n")
    told = "Messages carry links from now on, until the control plane ends or for a week."
    print_done(as_json, told, unlocked=True)


@push_command.command("lock")
@json_option
@report_errors
def lock_targets(as_json: bool) -> None:
    """Send no links any more, and let none of those that were sent decide."""
    settings = load_settings()
    if stop_control(settings):
        ensure_control(settings)
    print_done(as_json, "Locked.", unlocked=False)


_UNTIL_UNLOCKED = (
    "Nothing is sent to it before `toolwright push unlock`, nor after the control plane ended."
)


def _list_names(settings: Settings) -> dict[str, str]:
    """Every target by name, with the kind of its messages."""
    sealed = list_sealed_targets(settings.push)
    notices = (target.name for target in load_notice_targets(open_vault(settings)))
    return {
        name: f"{kind}, with links, while unlocked" for name, kind in sealed.items()
    } | dict.fromkeys(notices, "notices only")


def _open_targets(settings: Settings, name: str, pin_file: Path | None) -> tuple[PushTarget, ...]:
    sealed = list_sealed_targets(settings.push)
    wanted = name in sealed if name else bool(sealed)
    opened = open_sealed_targets(settings.push, ask_pin(settings, pin_file)) if wanted else ()
    return (*opened, *load_notice_targets(open_vault(settings)))
