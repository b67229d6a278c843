"""Opening an installation's signing key with its PIN, and the authority that checks signatures."""

from __future__ import annotations

import importlib
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.settings import Settings
from registry.approvals.authority import Authority
from registry.audit.heads import HeadSigner
from registry.audit.search import AuditTable
from registry.database.audit_chain import ChainHead
from registry.errors import KeyChanged, PinUnusable, RegistryError, SignedHeadsDamaged
from registry.secrets.pin import verify_pin
from registry.secrets.signing import Signer

PIN_REFUSED = "pin.refused"
"""The audit row of a wrong PIN."""


@dataclass(frozen=True)
class OpenedKey:
    """The person's key, or in `refused` the reason why it was not opened."""

    signer: Signer | None = None
    refused: str = ""


def open_key(settings: Settings, pin: str, now: float, by: str = "terminal") -> OpenedKey:
    """Open the key with this PIN, if it is the key that was pinned before. A wrong PIN leaves a row
    in the audit that says that one was given and `by` whom. While the lock lasts none is checked,
    and none leaves a row.
    """
    try:
        checked = verify_pin(settings.pin, pin, now)
        if checked.signer is not None:
            build_authority(settings).load_key()
    except (PinUnusable, KeyChanged, SignedHeadsDamaged) as error:
        return OpenedKey(refused=str(error))
    if checked.locked_until is not None:
        seconds = max(1, round(checked.locked_until - now))
        return OpenedKey(refused=f"too many wrong PINs; try again in {seconds} s")
    if checked.signer is None:
        _record_refusal(settings, checked.failures, by, now)
        return OpenedKey(refused="that is not the PIN; nothing was changed")
    return OpenedKey(checked.signer)


def _record_refusal(settings: Settings, failures: int, by: str, now: float) -> None:
    """Record that a wrong PIN was given. The PIN is refused also where that cannot be stored."""
    # Loaded only here: most commands that take a PIN get the right one.
    store = importlib.import_module("registry.store").Store
    with suppress(RegistryError, OSError), store.open(settings.database_url) as opened:
        opened.audit.add_note(PIN_REFUSED, "PIN", {"wrong_in_a_row": failures, "by": by}, now)


def check_pin(settings: Settings, pin: str, now: float) -> str:
    """The reason why this PIN is not accepted; "" where it is."""
    return open_key(settings, pin, now).refused


def sign_audit(settings: Settings, audit: AuditTable) -> None:
    """Sign the audit's heads now, so that what was just taken away cannot be cut off its end.

    Trouble with the file fails no command: what was stored is stored, `doctor` tells of the file,
    and the next signature covers it as well.
    """
    with suppress(RegistryError, OSError):
        HeadSigner(settings.heads).sign_heads(audit, time.time())


def build_authority(settings: Settings) -> Authority:
    """The authority on signatures; it pins the key that the signed audit heads name."""
    return Authority(
        settings.pin,
        lambda: HeadSigner(settings.heads).find_pinned_fingerprint(),
        _NewHeads(settings.heads),
    )


@dataclass
class _NewHeads:
    """Reads the heads that were signed since it was called last. Opens the file at the first call,
    whose errors are the caller's.
    """

    directory: Path
    signer: HeadSigner | None = None

    def __call__(self) -> tuple[ChainHead, ...]:
        self.signer = self.signer or HeadSigner(self.directory)
        return self.signer.read_new_heads()
