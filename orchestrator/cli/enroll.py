"""Choosing and changing the PIN, and creating and replacing the signing key, for `setup`."""

from __future__ import annotations

import time

from orchestrator.control.notify.targets import reseal_targets
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings
from registry.audit.heads import HeadSigner
from registry.audit.search import AuditTable
from registry.processes import ProcessTable
from registry.secrets.pin import change_pin, replace_key, set_pin
from registry.secrets.signing import Signer, compute_fingerprint, verify_signature
from registry.store import Store


def choose_pin(settings: Settings, audit: AuditTable, pin: str) -> Signer:
    """Set the first PIN of a home and create its key, which the signed audit heads then name.

    Raises PinUnusable, and OrchestratorError where this home had a key before: otherwise whoever
    deletes the PIN's file could take the person's place.
    """
    known = HeadSigner(settings.heads).find_pinned_fingerprint()
    if known and not settings.pin.exists():
        raise OrchestratorError(
            f"this home had a PIN, whose key {known} its signed audit names, and its file "
            f"{settings.pin.name} is gone. Put it back from a backup. If the PIN is forgotten, "
            f"move the directory {settings.heads} away as well: that ends the signed audit, so it "
            "shows."
        )
    signer = set_pin(settings.pin, pin)
    record_key(settings, audit, signer)
    audit.add_note("key.made", compute_fingerprint(signer.public), {}, time.time())
    return signer


def replace_pin(settings: Settings, audit: AuditTable, signer: Signer, pin: str) -> None:
    """Seal the same key under another PIN. Raises PinUnusable."""
    change_pin(settings.pin, signer, pin)
    audit.add_note("pin.changed", compute_fingerprint(signer.public), {}, time.time())
    record_key(settings, audit, signer)


def replace_signing_key(settings: Settings, store: Store, signer: Signer, pin: str) -> Signer:
    """Replace the key; the old key signs the new one. Rules and links of the old key become void; a
    freeze that was lifted stays lifted.

    Raises PinUnusable.
    """
    fresh = replace_key(settings.pin, signer, pin)
    _sign_lift_again(store.processes, signer, fresh)
    reseal_targets(settings.push, signer, fresh)
    payload = {"before": compute_fingerprint(signer.public)}
    store.audit.add_note("key.replaced", compute_fingerprint(fresh.public), payload, time.time())
    record_key(settings, store.audit, fresh)
    return fresh


def _sign_lift_again(processes: ProcessTable, before: Signer, after: Signer) -> None:
    found = processes.get_freeze()
    body = found.to_signed_body()
    if not found.frozen and verify_signature(before.public, body, found.lift):
        processes.replace_lift(found, after.sign(body))


def record_key(settings: Settings, audit: AuditTable, signer: Signer) -> None:
    """Name the key in the signed audit heads."""
    notary = HeadSigner(settings.heads)
    named = compute_fingerprint(signer.public)
    notary.sign_heads(
        audit, time.time(), named if named != notary.find_pinned_fingerprint() else ""
    )
