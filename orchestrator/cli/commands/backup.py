"""`toolwright backup` and `restore`: a home in one file, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from forge.text import render_count
from orchestrator.approvals.dates import format_age
from orchestrator.backup.create import BackupReport, create_backup
from orchestrator.backup.restore import (
    PreparedRestore,
    Restored,
    RestorePlan,
    apply_restore,
    prepare_restore,
)
from orchestrator.backup.sealed_vault import export_vault_key
from orchestrator.cli.terminal import (
    ask_pin,
    err,
    is_terminal,
    json_option,
    pin_option,
    print_json,
    print_text,
    read_line,
    report_errors,
)
from orchestrator.settings import Settings, load_settings
from registry.backup.archive import describe_member, write_private_file
from registry.backup.manifest import DATABASE
from registry.errors import BackupFailed, BackupRefused
from registry.secrets.key_export import open_vault_key
from sandbox.sanitize import clean_text

MAX_SHOWN = 40
SHOWN_SERVERS = 8
MAX_KEY_FILE = 4096

passphrase_option = click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Read the key file's passphrase from a file, or from standard input with `-`.",
)


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE.")
@click.option(
    "--with-key",
    "key_file",
    type=click.Path(path_type=Path),
    help="Also write the vault's key to this file, sealed under a passphrase; asks for the PIN.",
)
@passphrase_option
@pin_option
@json_option
@report_errors
def backup_command(
    file: Path,
    force: bool,
    key_file: Path | None,
    passphrase_file: Path | None,
    pin_file: Path | None,
    as_json: bool,
) -> None:
    """Write a backup of this home to FILE: database, servers, signed audit, PIN and sealed secrets.

    The key that opens the secrets is not in it.
    """
    settings = load_settings()
    sealed = _seal_key(settings, key_file, force, passphrase_file, pin_file) if key_file else None
    report = create_backup(settings, file, replace=force, tell=_tell)
    if key_file and sealed:
        write_private_file(key_file, sealed, replace=force)
    kept = str(key_file) if sealed else ""
    if as_json:
        print_json({**asdict(report), "key_file": kept})
    else:
        _print_backup(report, kept)
        if key_file and not sealed:
            print_text(f"This home has no secrets, so {key_file} was not written.", "yellow")


def _seal_key(
    settings: Settings,
    key_file: Path,
    force: bool,
    passphrase_file: Path | None,
    pin_file: Path | None,
) -> bytes | None:
    """The vault's key, sealed. An explicit act of the person: who has this file and its passphrase
    reads every secret of the backup.
    """
    if key_file.exists() and not force:
        raise BackupFailed(f"{key_file} is there already; --force replaces it")
    ask_pin(settings, pin_file)
    return export_vault_key(settings, _ask_passphrase(passphrase_file, fresh=True))


def _ask_passphrase(passphrase_file: Path | None, *, fresh: bool) -> str:
    if passphrase_file is not None:
        return read_line(passphrase_file)
    asked: str = click.prompt(
        "Passphrase of the key file", hide_input=True, confirmation_prompt=fresh, err=True
    )
    return asked


def _print_backup(report: BackupReport, key_file: str) -> None:
    print_text(f"{report.file}: {render_count(report.files, 'file')}, {report.bytes / 1e6:.1f} MB")
    print_text(f"sha256 {report.sha256}")
    print_text("It holds the PIN's file and the audit's signing key: keep it as you keep the home.")
    for name in report.left_out:
        print_text(f"left out, since it is no regular file: {name}", "yellow")
    if not report.vault_key:
        return
    print_text(f"The key of its secrets is not in it. It is here: {report.vault_key}")
    if key_file:
        print_text(f"Another machine needs {key_file} and its passphrase: `restore --key`.")
    else:
        print_text(
            "A restore on another machine needs it: `toolwright backup FILE --with-key KEYFILE` "
            "writes it sealed under a passphrase."
        )


@click.command("restore")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--check", is_flag=True, help="Verify FILE and show what it would do; change nothing."
)
@click.option("--sha256", default="", help="Refuse FILE unless this is its SHA-256.")
@click.option(
    "--key",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The vault's key, as `backup --with-key` wrote it.",
)
@passphrase_option
@click.option("--without-secrets", is_flag=True, help="Leave the sealed secrets out.")
@click.option("--yes", is_flag=True, help="Do not ask whether to replace this home.")
@pin_option
@json_option
@report_errors
def restore_command(
    file: Path,
    check: bool,
    sha256: str,
    key_file: Path | None,
    passphrase_file: Path | None,
    without_secrets: bool,
    yes: bool,
    pin_file: Path | None,
    as_json: bool,
) -> None:
    """Put the backup FILE in the place of this home. Shows what is lost; at a terminal it asks
    whether to go on, and everywhere for the PIN.

    Everything in it is verified before anything is replaced. What was taken away since the backup
    stays taken away, requests that waited expire, and all stays frozen until `toolwright unfreeze`.
    """
    settings = load_settings()
    if sha256 and describe_member(file.name, file).sha256 != sha256.strip().lower():
        raise BackupRefused(str(file), "its SHA-256 is another one")
    key = _read_key(key_file, passphrase_file) if key_file else None
    with prepare_restore(settings, file, _tell, key, not without_secrets) as prepared:
        if not as_json:
            _print_plan(prepared.plan)
        meant = check or yes or _confirm(prepared, as_json)
        restored = _decide(prepared, pin_file) if meant and not check else None
    if as_json:
        print_json(_encode(prepared.plan, restored))
    elif restored:
        _print_restored(restored)
    elif not check:
        print_text("Nothing was replaced.")


def _read_key(key_file: Path, passphrase_file: Path | None) -> bytes:
    with key_file.open("rb") as opened:
        content = opened.read(MAX_KEY_FILE)
    return open_vault_key(str(key_file), content, _ask_passphrase(passphrase_file, fresh=False))


def _confirm(prepared: PreparedRestore, as_json: bool) -> bool:
    """Whether the person at the terminal means it. Elsewhere, and where nothing is replaced, giving
    the PIN says so.
    """
    database = prepared.settings.home / DATABASE
    if not is_terminal(as_json) or not database.exists():
        return True
    return click.confirm(f"Replace {prepared.settings.home} with the backup?", err=True)


def _decide(prepared: PreparedRestore, pin_file: Path | None) -> Restored:
    whose = "this home" if prepared.pin == prepared.settings.pin else "the backup"
    err.print(f"The PIN of {whose} decides.")
    return apply_restore(prepared, ask_pin(prepared.signing, pin_file))


def _print_plan(plan: RestorePlan) -> None:
    made = plan.manifest.made
    print_text(f"a backup of {format_age(made)}, made by Toolwright {plan.manifest.toolwright}")
    if plan.blind:
        print_text(
            f"{plan.blind}: what was taken away since the backup is not known and comes back.",
            "yellow",
        )
    if not plan.blind:
        shown = list(plan.servers[:SHOWN_SERVERS])
        more = ["…"] if len(plan.servers) > SHOWN_SERVERS else []
        named = f" ({', '.join(shown + more)})" if shown else ""
        print_text(
            f"it replaces this home: {render_count(len(plan.servers), 'server')}{named}, "
            f"{render_count(plan.calls, 'call')} since the backup"
        )
    _print_lines("allows again, once the freeze is lifted", plan.brings_back)
    _print_lines("stays taken away", plan.keeps)
    _print_lines("is lost", plan.loses)
    if plan.secrets:
        print_text(f"secrets: {plan.secrets}")


def _print_lines(head: str, lines: Iterable[str]) -> None:
    found = tuple(lines)
    for line in found[:MAX_SHOWN]:
        print_text(f"{head}: {line}")
    if len(found) > MAX_SHOWN:
        print_text(f"{head}: {len(found) - MAX_SHOWN} more, with --json")


def _print_restored(restored: Restored) -> None:
    unsettled = restored.unsettled
    print_text(
        f"Restored. {len(unsettled.expired)} waiting requests expired, {len(unsettled.unknown)} "
        f"that were approved or on their way are unknown and never sent again, "
        f"{len(restored.jobs)} jobs were cancelled."
    )
    if restored.approved_since:
        print_text(
            f"{len(restored.approved_since)} that were approved since the backup went with the "
            "replaced home; the audit keeps that they are never sent again."
        )
    print_text(
        "Everything is frozen. Look at `toolwright grant` and `rules`, take away what should "
        "not count, then `toolwright unfreeze`."
    )


def _encode(plan: RestorePlan, restored: Restored | None) -> dict[str, Any]:
    manifest = plan.manifest
    done = restored and {
        "epoch": restored.epoch,
        "expired": restored.unsettled.expired,
        "unknown": restored.unsettled.unknown,
        "approved_since": restored.approved_since,
        "cancelled_jobs": restored.jobs,
    }
    return {
        "restored": done or None,
        "made": manifest.made,
        "toolwright": manifest.toolwright,
        "files": len(manifest.members),
        "brings_back": plan.brings_back,
        "keeps": plan.keeps,
        "loses": plan.loses,
        "blind": plan.blind,
        "servers": plan.servers,
        "calls_since": plan.calls,
        "secrets": plan.secrets,
    }


def _tell(line: str) -> None:
    """Progress goes to stderr, so that --json prints JSON only."""
    err.print(clean_text(line), style="dim", markup=False)
