"""What tests grant: signed with the key of a PIN that costs nothing to try."""

from __future__ import annotations

import time
from pathlib import Path

from orchestrator.approvals.granting import allow_host
from orchestrator.approvals.grants import Grants, open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.settings import Settings
from registry.secrets.pin import set_pin, verify_pin
from registry.secrets.signing import Signer
from registry.store import Store

PIN = "24681012"


def person(pin: Path) -> Signer:
    """The key of a home whose PIN is `PIN`, chosen here where it has none."""
    if not pin.exists():
        set_pin(pin, PIN, cost=2**4)
    signer = verify_pin(pin, PIN, time.time()).signer
    assert signer is not None, "this home has another PIN"
    return signer


def allow(settings: Settings, store: Store, url: str) -> None:
    """What a person's `source allow` does for the host of a URL."""
    host = url.partition("://")[2].partition("/")[0]
    allow_host(store.grants, host, "test", person(settings.pin))


def consents(settings: Settings, store: Store) -> Grants:
    return open_grants(SignedPolicy(store, build_authority(settings)))
