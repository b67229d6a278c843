"""An installation's PIN, the key that it opens, and whose signatures count."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.settings import Settings
from registry.authority import Authority
from registry.errors import KeyChanged, NotaryDamaged, PinUnusable
from registry.notary import Notary
from registry.pin import verify_pin
from registry.signing import Signer


@dataclass(frozen=True)
class Opened:
    """The person's key, or why it stays shut."""

    signer: Signer | None = None
    refused: str = ""


def open_key(settings: Settings, pin: str, now: float) -> Opened:
    """The key that this PIN opens, if it is the one that was known before."""
    try:
        checked = verify_pin(settings.pin, pin, now)
        if checked.signer is not None:
            authority(settings).key()
    except (PinUnusable, KeyChanged, NotaryDamaged) as error:
        return Opened(refused=str(error))
    if checked.locked_until is not None:
        seconds = max(1, round(checked.locked_until - now))
        return Opened(refused=f"too many wrong PINs; try again in {seconds} s")
    return Opened(checked.signer, "" if checked.ok else "that is not the PIN; nothing was changed")


def check_pin(settings: Settings, pin: str, now: float) -> str:
    """Why this PIN is not accepted, or nothing where it is."""
    return open_key(settings, pin, now).refused


def authority(settings: Settings) -> Authority:
    """Whose signatures count, beginning with the key that the signed audit heads name."""
    return Authority(settings.pin, lambda: Notary(settings.heads).pinned())
