"""What tests grant: signed with the key of a PIN that costs nothing to try."""

from __future__ import annotations

import time
from pathlib import Path

from orchestrator.approvals.granting import allow_host, bind_secret
from orchestrator.approvals.grants import Grants, open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.settings import Settings
from registry.secrets.pin import set_pin, verify_pin
from registry.secrets.signing import Signer
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.credentials.uses import SecretUse, list_secret_uses
from sandbox.wire.policy import parse_origin

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


def bind(settings: Settings, store: Store, bundle: Bundle) -> None:
    """What a person's `secret set` does beside keeping the values: each of a server's secrets goes
    where this version would take it.
    """
    for name, uses in list_secret_uses(bundle).items():
        bind_secret(store.grants, bundle.name, name, uses, "test", person(settings.pin))


def bind_to(settings: Settings, store: Store, server: str, name: str, url: str, place: str) -> None:
    """Let a secret go to the origin of a URL, in this place, also before its server is there."""
    origin = parse_origin(url)
    assert origin is not None
    use = SecretUse(origin, place)
    bind_secret(store.grants, server, name, (use,), "test", person(settings.pin))


def consents(settings: Settings, store: Store) -> Grants:
    return open_grants(SignedPolicy(store, build_authority(settings)))
