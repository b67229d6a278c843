"""Restoring a home from a backup: verified as a whole, then decided by a person, then replaced.

A restore is an act of the person: signed, in the audit of the restored home, and frozen afterwards.
What was taken away since the backup stays taken away, as far as the present home knows of it, and
nothing that was under way goes on.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from orchestrator.approvals.differences import find_differences
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.backup.sealed_vault import open_restored_vault
from orchestrator.backup.taken_back import TakenBack, find_taken_back, keep_taken_back
from orchestrator.errors import RestoreRefused
from orchestrator.processes.liveness import is_alive
from orchestrator.processes.resident import stop_resident
from orchestrator.settings import Settings
from registry.audit.heads import HeadSigner
from registry.backup.archive import ROOM, Tell, read_backup
from registry.backup.manifest import AUDIT, DATABASE, SERVERS, VAULT, Manifest
from registry.backup.settling import BY, RestoredState, Unsettled, check_database
from registry.backup.swap import (
    commit_swap,
    discard_staging,
    hold_restore_lock,
    prepare_staging,
)
from registry.database.engine import Database
from registry.errors import (
    BackupRefused,
    DatabaseUnusable,
    RegistryError,
    SchemaTooNew,
    SchemaUnknown,
)
from registry.secrets.pin import find_successors, read_public_key
from registry.secrets.signing import Signer, compute_fingerprint
from registry.servers import files
from registry.store import Store

RESTORED = "home.restored"
"""The audit row of a restore, with the person's signature over what it brought back."""


UNREADABLE = (DatabaseUnusable, SchemaTooNew, SchemaUnknown)
"""Errors of a database that cannot be asked for anything."""


@dataclass(frozen=True)
class RestorePlan:
    """What a restore would do. `loses` is what the present home has and the backup has not,
    `keeps` what was taken away since and stays so, `brings_back` what counts again. `blind` says
    why the present home could not be asked, "" where it could. `servers` and `calls` are what the
    present home has: registered servers, and calls since the backup.
    """

    manifest: Manifest
    brings_back: tuple[str, ...]
    keeps: tuple[str, ...]
    loses: tuple[str, ...]
    blind: str = ""
    secrets: str = ""
    servers: tuple[str, ...] = ()
    calls: int = 0
    taken: TakenBack = field(default_factory=TakenBack, repr=False)


@dataclass(frozen=True)
class Restored:
    """What a restore did. `epoch` is the freeze that only the person lifts. `approved_since` are
    requests that were approved since the backup, which has not even the request.
    """

    epoch: int
    unsettled: Unsettled
    jobs: tuple[str, ...]
    approved_since: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedRestore:
    """A verified backup in the staging directory. `pin` is the file of the PIN that decides: the
    present home's, unless it has none or its key's successor is in the backup.
    """

    settings: Settings
    staged: Settings
    plan: RestorePlan
    pin: Path
    newest: int

    @property
    def signing(self) -> Settings:
        """The settings under which the PIN that decides is asked for."""
        return self.settings if self.pin == self.settings.pin else self.staged


@contextmanager
def prepare_restore(
    settings: Settings, file: Path, tell: Tell, key: bytes | None, with_secrets: bool
) -> Iterator[PreparedRestore]:
    """Unpack a backup beside the home and verify it; nothing is replaced. Whatever is not applied
    when the block ends is removed.

    `key` is the vault's from an exported file. Raises BackupRefused, RestoreRefused, OSError.
    """
    if settings.database_url != f"sqlite:///{settings.home / DATABASE}":
        raise RestoreRefused("TOOLWRIGHT_DATABASE_URL leads out of the home; unset it")
    with hold_restore_lock(settings.home):
        _check_nothing_runs(settings)
        staging = prepare_staging(settings.home)
        try:
            yield _prepare(settings, file, staging, tell, key, with_secrets)
        finally:
            discard_staging(settings.home)


def _prepare(
    settings: Settings, file: Path, staging: Path, tell: Tell, key: bytes | None, secrets: bool
) -> PreparedRestore:
    manifest = read_backup(file, staging, lambda found: _check_room(file, found, staging), tell)
    (staging / AUDIT).mkdir(mode=0o700, exist_ok=True)
    (staging / SERVERS).mkdir(mode=0o700, exist_ok=True)
    staged = replace(settings, home=staging, database_url=f"sqlite:///{staging / DATABASE}")
    name = str(file)
    check_database(name, staging / DATABASE)
    pin = _choose_pin(settings, staged, name)
    told = ""
    if manifest.has(VAULT):
        if secrets:
            told = open_restored_vault(settings, staging / VAULT, manifest, key)
        else:
            (staging / VAULT).unlink()
            told = "left out; enter them again with `toolwright secret set`"
    tell("verifying the audit")
    # Where the present home's PIN decides, the staged files are judged by its key as well.
    if pin == settings.pin:
        _copy_pin(settings.pin, staged.pin)
    with Store.open(staged.database_url) as backup:
        _verify(name, staged, backup)
        plan, newest = _compare(settings, staged, manifest, backup)
    return PreparedRestore(settings, staged, replace(plan, secrets=told), pin, newest)


def _check_room(file: Path, manifest: Manifest, staging: Path) -> None:
    free = shutil.disk_usage(staging).free
    if manifest.total + ROOM > free:
        raise BackupRefused(
            str(file),
            f"it needs {(manifest.total + ROOM) / 1e6:.0f} MB and the home's disk has "
            f"{free / 1e6:.0f} MB free",
        )


def _check_nothing_runs(settings: Settings) -> None:
    """Raises RestoreRefused where processes of this home run: by its own table, and by who holds
    its database open, which also tells where the table cannot be read. The resident process, which
    nobody waits for, is ended.
    """
    stop_resident(settings.home)
    running = {}
    with suppress(RegistryError, OSError):
        if (settings.home / DATABASE).exists():
            with Store.open(settings.database_url) as store:
                running = {p.pid: p.kind for p in store.processes.find() if is_alive(p)}
    running |= {pid: name for pid, name in _find_holders(settings.home) if pid not in running}
    running.pop(os.getpid(), None)
    if running:
        told = ", ".join(f"{kind} ({pid})" for pid, kind in sorted(running.items()))
        raise RestoreRefused(
            f"processes of this home run: {told}. Close the clients that started them; "
            "`toolwright control --stop` ends the control plane"
        )


def _find_holders(home: Path) -> Iterator[tuple[int, str]]:
    database = str((home / DATABASE).resolve())
    for process in psutil.process_iter(("pid", "name")):
        with suppress(psutil.Error, OSError):
            if any(opened.path == database for opened in process.open_files()):
                yield process.pid, process.name()


def _choose_pin(settings: Settings, staged: Settings, file: str) -> Path:
    """The PIN's file that decides. A backup of another person's home is refused, and one cannot
    bring back an earlier PIN.
    """
    present, former = _read_key(settings.pin), _read_key(staged.pin)
    if not present and HeadSigner(settings.heads).find_pinned_fingerprint():
        raise RestoreRefused(
            f"this home had a PIN, and its file {settings.pin.name} is gone. Put it back, or "
            "restore into a new home (TOOLWRIGHT_HOME=DIRECTORY)"
        )
    if not present and not former:
        raise RestoreRefused(
            "neither this home nor the backup has a PIN, and a restore is signed: "
            "`toolwright setup` first"
        )
    if not present:
        return staged.pin
    if not former or former == present or present in find_successors(settings.pin, former):
        return settings.pin
    if former in find_successors(staged.pin, present):
        return staged.pin
    raise BackupRefused(
        file,
        f"its decisions are signed by the key {compute_fingerprint(former)}, this home's by "
        f"{compute_fingerprint(present)}. Restore it into a home of its own "
        "(TOOLWRIGHT_HOME=DIRECTORY)",
    )


def _read_key(pin: Path) -> str:
    return read_public_key(pin) if pin.exists() else ""


def _copy_pin(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(source.read_bytes())
        opened.flush()
        os.fsync(opened.fileno())


def _verify(file: str, staged: Settings, backup: Store) -> None:
    """Raises BackupRefused unless the audit is whole, the registry's tables agree with it, and the
    servers' files with them.
    """
    broken, _ = HeadSigner(staged.heads).verify_and_count(backup.audit)
    if broken is not None:
        told = f"chain {broken.chain}, row {broken.sequence}: {broken.reason}"
        raise BackupRefused(file, f"its audit is not whole ({told})")
    policy = SignedPolicy(backup, build_authority(staged))
    obstacle = policy.find_obstacle() if staged.pin.exists() else ""
    if obstacle:
        raise BackupRefused(file, f"its decisions do not count: {obstacle}")
    different = find_differences(policy)
    if different:
        raise BackupRefused(file, f"its tables differ from its audit: {'; '.join(different[:3])}")
    damaged = [
        f"{one.name}: {one.detail}"
        for one in files.check_consistency(staged.home, backup.servers)
        if one.kind in ("missing", "unreadable")
    ]
    if damaged:
        raise BackupRefused(file, f"files of its servers are damaged: {'; '.join(damaged[:3])}")


def _compare(
    settings: Settings, staged: Settings, manifest: Manifest, backup: Store
) -> tuple[RestorePlan, int]:
    then = SignedPolicy(backup, build_authority(staged))
    known = then.trail.read()
    now = time.time()
    lost: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    taken, blind, newest, calls = TakenBack(), "", 0, 0
    if not (settings.home / DATABASE).exists() or not settings.pin.exists():
        blind = "there is no earlier state of this home here"
    else:
        try:
            with Store.open(settings.database_url) as present:
                policy = SignedPolicy(present, build_authority(settings))
                taken = find_taken_back(present, policy.trail.read(), backup, known, now)
                lost = tuple(_find_lost(present, backup))
                newest = _find_newest(present)
                servers = tuple(each.name for each in present.servers.find_summaries())
                calls = present.calls.count_since(manifest.made)
        except UNREADABLE as error:
            blind = f"the present database cannot be read ({error})"
    brought = tuple(_describe_loosening(backup, taken, now))
    kept = tuple(taken.describe())
    plan = RestorePlan(manifest, brought, kept, lost, blind, "", servers, calls, taken)
    return plan, newest


def _find_newest(store: Store) -> int:
    return max((row.id for row in store.audit.find(limit=1)), default=0)


def _find_lost(present: Store, backup: Store) -> Iterator[str]:
    then = {entry.name: entry for entry in backup.servers.find()}
    for entry in present.servers.find():
        before = then.get(entry.name)
        if before is None:
            yield f"the server {entry.name}"
        elif before.version < entry.version:
            yield f"{entry.name} version {entry.version}; it goes back to {before.version}"
        elif (before.version, before.digest) != (entry.version, entry.digest):
            yield f"{entry.name} as it is here; the backup has another version {before.version}"
    known = {rule.id for rule in backup.rules.find()}
    yield from (f"the rule {rule.id}" for rule in present.rules.find() if rule.id not in known)


def _describe_loosening(backup: Store, taken: TakenBack, now: float) -> Iterator[str]:
    """What of the backup lets something happen once the freeze is lifted."""
    for grant in backup.grants.find_grants():
        if grant.serial > grant.revoked and (grant.origin, grant.kind) not in taken.grants:
            yield f"the grant {grant.origin} ({grant.kind})"
    for rule in backup.rules.find():
        # One that is made ahead of this clock counts later.
        if rule.is_live(max(now, rule.created)) and rule.id not in taken.rules:
            yield f"the rule {rule.id} for {rule.server}.{rule.tool}"
    for entry in backup.servers.find():
        for said in backup.classifications.find(entry.name).values():
            if said.signature and (entry.name, said.operation) not in taken.classified:
                yield f"{entry.name} {said.operation} classified as {said.level}"


def apply_restore(prepared: PreparedRestore, signer: Signer) -> Restored:
    """Settle the restored home, sign the act, freeze the present one and put the restored one in
    its place. Raises RestoreRefused, BackupRefused, OSError; the home is then as it was.
    """
    settings, staged = prepared.settings, prepared.staged
    if prepared.pin == settings.pin:
        _copy_pin(settings.pin, staged.pin)
    restored = _settle(prepared, signer, time.time())
    _check_nothing_runs(settings)
    _freeze_present(prepared)
    commit_swap(settings.home)
    return restored


def _settle(prepared: PreparedRestore, signer: Signer, now: float) -> Restored:
    staged, plan = prepared.staged, prepared.plan
    database = Database(staged.database_url)
    store, state = Store(database), RestoredState(database)
    try:
        unsettled = state.settle_approvals(now, plan.taken.approvals)
        store.calls.settle_unknown(unsettled.processes, now)
        approved_since = keep_taken_back(store, state, plan.taken, now)
        jobs = [
            job.id for kind in ("queued", "running", "waiting") for job in store.jobs.find(kind)
        ]
        for job in jobs:
            store.jobs.cancel(job, BY, now)
        # Past every freeze that another copy of this home may have lifted.
        after = max(int(now), plan.taken.epoch)
        epoch = store.processes.freeze(now, BY, "restored from a backup", after)
        body = {
            "kind": "restore",
            "backup": plan.manifest.digest,
            "made": plan.manifest.made,
            "restored": now,
            "epoch": epoch,
        }
        payload = {**body, "toolwright": plan.manifest.toolwright, "signature": signer.sign(body)}
        store.audit.add_note(RESTORED, plan.manifest.digest, payload, now)
        notary = HeadSigner(staged.heads)
        named = compute_fingerprint(signer.public)
        notary.sign_heads(
            store.audit, now, named if named != notary.find_pinned_fingerprint() else ""
        )
        _verify("the settled backup", staged, store)
    finally:
        store.close()
    return Restored(epoch, unsettled, tuple(jobs), approved_since)


def _freeze_present(prepared: PreparedRestore) -> None:
    """A process that opened the present home in the last moment goes on with files that are no
    home any more: it is frozen there, and stays so.
    """
    settings = prepared.settings
    if prepared.plan.blind and not (settings.home / DATABASE).exists():
        return
    try:
        with Store.open(settings.database_url) as present:
            if prepared.newest and _find_newest(present) != prepared.newest:
                raise RestoreRefused("the home changed meanwhile; try again")
            present.processes.freeze(time.time(), BY, "replaced by a backup")
    except UNREADABLE:
        if not prepared.plan.blind:
            raise
