"""Choosing the PIN and making the key: what `setup` does once, and when either changes."""

from __future__ import annotations

import time

from orchestrator.errors import OrchestratorError
from orchestrator.push import reseal
from orchestrator.settings import Settings
from registry.notary import Notary
from registry.pin import change_pin, replace_key, set_pin
from registry.signing import Signer, fingerprint
from registry.store import Store


def choose_pin(settings: Settings, store: Store, pin: str) -> Signer:
    """The first PIN of a home, with its key, which the signed audit heads name from now on.

    Raises PinUnusable, and OrchestratorError where this home had another key before: whoever could
    make a new one in its place would be the person.
    """
    known = Notary(settings.heads).pinned()
    if known and not settings.pin.exists():
        raise OrchestratorError(
            f"this home had a PIN, whose key {known} its signed audit names, and its file "
            f"{settings.pin.name} is gone. Put it back from a backup. If the PIN is forgotten, "
            f"move the directory {settings.heads} away as well: that ends the signed audit, so it "
            "shows."
        )
    signer = set_pin(settings.pin, pin)
    pin_key(settings, store, signer)
    store.note("key.made", fingerprint(signer.public), {}, time.time())
    return signer


def another_pin(settings: Settings, store: Store, signer: Signer, pin: str) -> None:
    """Seal the same key under another PIN. Raises PinUnusable."""
    change_pin(settings.pin, signer, pin)
    store.note("pin.changed", fingerprint(signer.public), {}, time.time())
    pin_key(settings, store, signer)


def another_key(settings: Settings, store: Store, signer: Signer, pin: str) -> Signer:
    """Replace the key by another one, which the old one names. Rules and links end with the old.

    Raises PinUnusable.
    """
    fresh = replace_key(settings.pin, signer, pin)
    reseal(settings.push, signer, fresh)
    payload = {"before": fingerprint(signer.public)}
    store.note("key.replaced", fingerprint(fresh.public), payload, time.time())
    pin_key(settings, store, fresh)
    return fresh


def pin_key(settings: Settings, store: Store, signer: Signer) -> None:
    """Have the signed audit heads name the key."""
    notary = Notary(settings.heads)
    named = fingerprint(signer.public)
    notary.sign_heads(store, time.time(), named if named != notary.pinned() else "")
